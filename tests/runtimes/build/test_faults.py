"""Faults made on installations of a toy engine, each found by the verb, and controls that stay clean."""

import json
import mmap
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from runtimes.build.toy import FILES, METADATA, VERSION, Installation

DFLASH = "vllm/v1/spec_decode/dflash.py"
RESOLVER = "class GPUModelRunner:\n def _get_eagle3_aux_layers_from_config(self):\n"


def build(
    there: Installation, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, dict[str, Any]]:
    """The verb's status and its one JSON object."""
    capsys.readouterr()
    code = main(["build", "vllm", "--python", str(there.python), *options, "--json"])
    output = capsys.readouterr()
    assert output.err == ""
    document: dict[str, Any] = json.loads(output.out)
    assert document["schema"] == "draftproof.build/1"
    assert document["exit"] == code
    return code, document


def ids(document: dict[str, Any]) -> list[str]:
    """What was found, notes included."""
    return [finding["id"] for finding in document["findings"]]


def of(document: dict[str, Any], kind: str) -> dict[str, Any]:
    """The one finding of a kind."""
    (finding,) = [one for one in document["findings"] if one["id"] == kind]
    assert finding["layer"] == "BUILD"
    found: dict[str, Any] = finding
    return found


def test_a_clean_installation_is_clean(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is found, everything was read, and what it can do is told."""
    there.compile()
    code, document = build(there, capsys, "--need", "dflash", "--expect-commit", "4ba787ec9")
    assert (code, ids(document), document["not_looked"]) == (0, [], [])
    told = document["build"]
    assert told["imported"]["root"] == str(there.package)
    assert (told["version"], told["commit"]["sha"]) == (VERSION, "4ba787ec9")
    record = told["contents"]["record"]
    assert record["checked"] == record["with_digest"] == len(FILES)
    assert told["contents"]["bytecode"]["current"] == len(FILES)
    features = {one["id"]: one["outcome"] for one in document["features"]}
    assert features["dflash"] == "yes"
    assert {outcome for name, outcome in features.items() if name != "dflash"} == {"no"}


def test_an_edited_file(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """A hot patch is named by its file."""
    (there.site / DFLASH).write_text("class DFlashProposer:\n    width = 2\n")
    code, document = build(there, capsys)
    assert (code, ids(document)) == (1, ["build-modified"])
    assert of(document, "build-modified")["found"] == [DFLASH]


def test_files_that_are_gone_and_files_that_came(
    there: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    """A library that is gone is told apart from a source that is, and what came is a warning or a note."""
    (there.package / "_C.abi3.so").write_bytes(b"\x7fELF" + bytes(100))
    there.pack()
    (there.package / "_C.abi3.so").unlink()
    (there.site / "vllm/model_executor/models/registry.py").unlink()
    (there.package / "patch.py").write_text("")
    code, document = build(there, capsys)
    assert code == 1
    assert of(document, "build-native-missing")["found"] == ["vllm/_C.abi3.so"]
    assert of(document, "build-missing")["found"] == ["vllm/model_executor/models/registry.py"]
    assert of(document, "build-extra")["severity"] == "warning"
    assert of(document, "build-feature-partial")["subject"].startswith("dflash:")


def test_a_file_that_cannot_run_is_a_note(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """A stray text file does not make the status 1."""
    (there.package / "notes.txt").write_text("x")
    code, document = build(there, capsys)
    assert (code, ids(document)) == (0, ["build-extra"])


def test_a_library_that_is_none(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty or foreign file under a library's name."""
    (there.package / "_C.abi3.so").write_text("version https://git-lfs.github.com/spec/v1\n")
    there.pack()
    assert ids(build(there, capsys)[1]) == ["build-native-broken"]


def test_bytecode_that_hides_an_edit(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """An edit of the same size with its date put back is not run: Python itself shows it, and so do we."""
    there.compile()
    source = there.site / DFLASH
    before = source.stat()
    source.write_text(source.read_text().replace("width = 1", "width = 7"))
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    there.pack()
    says = "import vllm.v1.spec_decode.dflash as m; print(m.DFlashProposer.width)"
    ran = subprocess.run([str(there.python), "-c", says], capture_output=True, text=True, check=True)
    assert ran.stdout == "1\n"
    code, document = build(there, capsys)
    assert (code, ids(document)) == (1, ["build-bytecode-stale"])
    assert of(document, "build-bytecode-stale")["found"] == ["v1/spec_decode/dflash.py"]


def test_bytecode_that_is_never_checked(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """A compiled file by hash, unchecked, is run whatever its source says; a checked one is not."""
    source = there.site / "vllm/_version.py"
    for mode, found in (
        ("UNCHECKED_HASH", "build-bytecode-stale"),
        ("CHECKED_HASH", "build-bytecode-outdated"),
    ):
        there.write({"vllm/_version.py": FILES["vllm/_version.py"]})
        py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode[mode])
        source.write_text(source.read_text().replace("g4ba787ec9", "g000000000"))
        there.pack()
        assert ids(build(there, capsys)[1]) == [found]


def test_bytecode_without_a_source(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """A compiled module beside the sources is imported though nobody can read it."""
    (there.package / "hidden.py").write_text("x = 1\n")
    py_compile.compile(str(there.package / "hidden.py"), cfile=str(there.package / "hidden.pyc"))
    (there.package / "hidden.py").unlink()
    assert set(ids(build(there, capsys)[1])) == {"build-bytecode-sourceless", "build-extra"}


def test_a_second_copy_on_pythonpath(
    there: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy that shadows the installed one is named, and what put it there."""
    shutil.copytree(there.package, tmp_path / "patched" / "vllm")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "patched"))
    code, document = build(there, capsys)
    assert code == 1
    finding = of(document, "build-shadowed")
    assert str(there.site) in finding["expected"]
    assert str(tmp_path / "patched" / "vllm") in finding["found"]
    assert "PYTHONPATH" in finding["found"]
    assert {entry["check"] for entry in document["not_looked"]} == {
        "files against RECORD",
        "version and requirements",
    }


def test_a_second_copy_behind_the_installed_one(
    there: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy that is not imported is a warning: a patch of it would change nothing."""
    shutil.copytree(there.package, tmp_path / "other" / "vllm")
    (there.site / "other.pth").write_text(f"{tmp_path / 'other'}\n")
    code, document = build(there, capsys)
    assert (code, ids(document)) == (1, ["build-copies"])
    assert "other.pth" in of(document, "build-copies")["found"][0]


def test_a_directory_of_the_name_in_front_of_an_editable_finder(
    there: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The work tree's own directory becomes a namespace package where the server is started above it."""
    tree = tmp_path / "home" / "vllm"
    shutil.copytree(there.package, tree / "vllm")
    shutil.rmtree(there.package)
    there.write(
        {
            "__editable___vllm_finder.py": FINDER.format(tree=str(tree)),
            "__editable__.pth": "import __editable___vllm_finder\n",
        }
    )
    clean, _ = build(there, capsys)
    code, document = build(there, capsys, "--cwd", str(tmp_path / "home"))
    assert clean == 1  # RECORD still names the files that moved away
    assert code == 1
    assert "without __init__.py" in of(document, "build-not-the-package")["found"]
    ran = subprocess.run(
        [str(there.python), "-c", "from vllm import __version__"],
        cwd=tmp_path / "home",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "unknown location" in ran.stderr  # as reported from the field


FINDER = """
import importlib.machinery, importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "vllm":
            return importlib.util.spec_from_file_location(name, {tree!r} + "/vllm/__init__.py",
                submodule_search_locations=[{tree!r} + "/vllm"])
sys.meta_path.append(Finder)
"""


def test_an_editable_installation(
    there: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The work tree owns its copy; its commit, read from git's files, is told from the installed one."""
    tree = tmp_path / "tree"
    shutil.move(there.package, tree / "vllm")
    (there.site / "vllm.pth").write_text(f"{tree}\n")
    version = "0.99.1.dev57+g1111111aa.precompiled"
    (tree / "vllm" / "_version.py").write_text(f"__version__ = '{version}'\n")
    (there.info / "METADATA").write_text(METADATA.replace(VERSION, version))
    (there.info / "RECORD").write_text("vllm.pth,,\n")
    (there.info / "direct_url.json").write_text(
        json.dumps({"url": f"file://{tree}", "dir_info": {"editable": True}})
    )
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in ([*git, "init", "-q"], [*git, "add", "."], [*git, "commit", "-qm", "x"]):
        subprocess.run(command, cwd=tree, check=True)
    called = [*git, "rev-parse", "HEAD"]
    head = subprocess.run(called, cwd=tree, check=True, capture_output=True, text=True).stdout.strip()
    code, document = build(there, capsys, "--expect-commit", head[:12])
    assert code == 1
    assert document["build"]["commit"]["sha"] == head
    assert set(ids(document)) == {"build-editable", "build-precompiled", "build-tree-moved"}
    subprocess.run([*git, "pack-refs", "--all"], cwd=tree, check=True)
    assert build(there, capsys)[1]["build"]["commit"]["sha"] == head
    code, document = build(there, capsys, "--expect-commit", "f" * 40)
    assert of(document, "build-commit")["expected"] == "f" * 40


def test_a_commit_that_nothing_states(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown commit is not the expected one: could not look."""
    there.write({"vllm/_version.py": f"__version__ = '{VERSION}'\ncommit_id = None\n"})
    there.pack()
    code, document = build(there, capsys, "--expect-commit", "4ba787ec9")
    assert (code, ids(document)) == (3, [])
    assert "states one" in document["not_looked"][0]["reason"]


def test_source_and_metadata_of_different_versions(
    there: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    """A package copied over another one's metadata; a builder's local label is no conflict."""
    there.write({"vllm/_version.py": "__version__ = '0.98.0'\n"})
    there.pack()
    assert ids(build(there, capsys)[1]) == ["build-version-conflict"]
    there.write({"vllm/_version.py": f"__version__ = '{VERSION}+cpu'\n"})
    there.pack()
    assert build(there, capsys)[0] == 0


def test_torch_and_its_companion(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """Companions for another accelerator do not load; the same label is fine."""
    there.other("torchvision", "0.28.0", "__version__ = '0.28.0+cpu'\n")
    finding = of(build(there, capsys)[1], "build-torch-skew")
    assert "cpu" in finding["found"]
    there.other("torchvision", "0.28.0", "__version__ = '0.28.0+cu130'\n")
    assert build(there, capsys)[0] == 0


def test_requirements(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong torch is an error, an absent helper a warning, another platform's or an extra's nothing."""
    there.pack(
        METADATA.replace("torch==2.13.0", "torch<2.12")
        + "Requires-Dist: einops\nRequires-Dist: x; os_name == 'nt'\nRequires-Dist: y; extra == 'z'\n"
    )
    code, document = build(there, capsys)
    assert code == 1
    assert [(one["subject"], one["severity"]) for one in document["findings"]] == [
        ("torch", "error"),
        ("einops", "warning"),
    ]


def test_the_copy_that_serves(
    there: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that has another copy's library mapped is told from one that has this one's."""
    library = b"\x7fELF" + bytes(5000)
    (there.package / "_C.abi3.so").write_bytes(library)
    there.pack()
    served = tmp_path / "served" / "vllm"
    served.mkdir(parents=True)
    (served / "_C.abi3.so").write_bytes(library)
    with (served / "_C.abi3.so").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        code, document = build(there, capsys, "--pid", str(os.getpid()))
    assert code == 1
    assert of(document, "build-served-elsewhere")["found"] == [str(served)]
    with (
        (there.package / "_C.abi3.so").open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ),
    ):
        assert build(there, capsys, "--pid", str(os.getpid()))[0] == 0
    code, document = build(there, capsys, "--pid", str(os.getpid()))
    assert (code, ids(document)) == (3, [])


def test_a_directory_inside_the_package_on_the_path(
    there: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    """A module that can be imported under two names exists twice once both are; the child shows it."""
    (there.site / "inside.pth").write_text(f"{there.package / 'v1' / 'spec_decode'}\n")
    there.write(
        {"vllm/__init__.py": f"__version__ = '{VERSION}'\nimport dflash\nimport vllm.v1.spec_decode.dflash\n"}
    )
    there.write({"vllm/platforms.py": "class Cpu:\n    pass\ncurrent_platform = Cpu()\n"})
    there.pack()
    code, document = build(there, capsys, "--import")
    assert code == 1
    assert of(document, "build-path-inside")["found"] == [str(there.package / "v1" / "spec_decode")]
    assert of(document, "build-imported-twice")["found"] == [["dflash", "vllm.v1.spec_decode.dflash"]]


def test_importing_that_fails_or_hangs(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """The child's own error, or that its time was up; the parent is not held."""
    there.write({"vllm/__init__.py": "raise ImportError('undefined symbol: _ZN3c105Error')\n"})
    there.pack()
    assert "undefined symbol" in of(build(there, capsys, "--import")[1], "build-import-failed")["found"]
    there.write({"vllm/__init__.py": "import time\ntime.sleep(3600)\n"})
    there.pack()
    found = of(build(there, capsys, "--import", "--timeout", "3")[1], "build-import-failed")["found"]
    assert "within 3 s" in found


def test_a_needed_feature_that_is_not_there(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """What a deployment depends on can be asked for by name."""
    code, document = build(there, capsys, "--need", "dflash-windows")
    assert (code, ids(document)) == (1, ["build-feature-needed"])


def test_a_version_that_lacks_what_it_is_known_for(
    there: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    """0.22.0 that reads ids literally is not that version; 0.20.1 that adds one is patched."""
    literal = f"{RESOLVER}  layer_ids = c.get('target_layer_ids')\n"
    plus_one = literal.replace(
        "c.get('target_layer_ids')", "[i + 1 for i in (c.get('target_layer_ids') or [])]"
    )
    for version, text, kind in (("0.22.0", literal, "missing"), ("0.20.1", plus_one, "early")):
        there.write(
            {"vllm/v1/worker/gpu_model_runner.py": text, "vllm/_version.py": f"__version__ = '{version}'\n"}
        )
        there.pack()
        found = [one for one in build(there, capsys)[1]["findings"] if one["id"] == f"build-feature-{kind}"]
        assert "taps-plus-one" in [one["subject"].partition(":")[0] for one in found]


def test_code_of_another_form_is_not_looked_at(
    there: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither the one nor its absence: unknown, and not counted as good where it is needed."""
    there.write({"vllm/v1/worker/gpu_model_runner.py": f"{RESOLVER}  return f('target_layer_ids')\n"})
    there.pack()
    code, document = build(there, capsys, "--need", "taps-plus-one")
    assert code == 3
    assert [entry["check"] for entry in document["not_looked"]] == ["feature taps-plus-one"]


def test_a_source_that_is_no_python(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that does not parse, or nests without end, is not read as the absence of a feature."""
    for text in ("def (:\n", "(" * 3000 + ")" * 3000 + "\n"):
        there.write({DFLASH: text})
        there.pack()
        document = build(there, capsys)[1]
        assert "feature dflash" in [entry["check"] for entry in document["not_looked"]]


def test_rows_that_lead_elsewhere(
    there: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe, a device or an unknown algorithm in RECORD neither holds the probe nor passes as good."""
    os.mkfifo(tmp_path / "pipe")
    record = there.info / "RECORD"
    rows = ("../../../../pipe,sha256=x,0", "/dev/zero,sha256=x,0", "vllm/__init__.py,crc32=x,0")
    record.write_text(record.read_text() + "\n".join(rows) + "\n")
    code, document = build(there, capsys)
    assert code == 3
    reasons = " ".join(entry["reason"] for entry in document["not_looked"])
    assert "not a regular file" in reasons
    assert "unsupported hash type" in reasons


def test_no_engine(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """An absent engine is not a clean one."""
    shutil.rmtree(there.package)
    shutil.rmtree(there.info)
    code, document = build(there, capsys)
    assert (code, document["features"]) == (3, [])
    assert "finds no vllm" in document["not_looked"][0]["reason"]


SAY = (
    "#!/usr/bin/env python3\nimport json, sys, time, hashlib\nnonce = json.loads(sys.stdin.read())['nonce']\n"
)
FRAME = (
    "def frame(b):\n digest = hashlib.sha256(b).hexdigest()\n"
    " print(f'draftproof-frame {nonce} {len(b)} {digest}\\n' + b.decode())\n"
)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("print('hello')", "0 answers"),
        ("time.sleep(3600)", "no answer within"),
        ("[print('x' * (1 << 20)) for _ in range(64)]", "it wrote more than"),
        ("frame(b'[]')", "not a JSON object"),
        ("frame(b'{}')", "another form than agreed"),
        ("frame(json.dumps({'python': 3}).encode())", "another form than agreed"),
        ("sys.exit(7)", "status 7"),
    ],
)
def test_a_python_that_answers_nonsense(
    script: str,
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever stands under the interpreter's name: could not look, status 3, bounded time."""
    monkeypatch.setattr("draftproof.runtimes.build.asking._GRACE_SECONDS", 2.0)
    program = tmp_path / "python"
    program.write_text(SAY + FRAME + script + "\n")
    program.chmod(0o755)
    limit = "2" if "sleep" in script else "60"
    code = main(["build", "vllm", "--python", str(program), "--timeout", limit, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert code == 3
    assert document["build"] is None
    assert reason in document["not_looked"][0]["reason"]


def test_behind_a_prefix(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """A command that leads there, as a container's does, with options of its own."""
    code, document = build(there, capsys, "--prefix", "env -u PYTHONPATH nice -n 1")
    assert (code, ids(document)) == (0, [])
    code = main(["build", "vllm", "--python", str(there.python), "--prefix", "no-such-tool exec", "--json"])
    assert code == 3


@pytest.mark.parametrize(
    "options",
    [
        ["tensorrt"],
        ["vllm", "--need", "magic"],
        ["vllm", "--expect-commit", "xyz"],
        ["vllm", "--prefix", "'open"],
    ],
)
def test_calls_that_are_wrong(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown engine, feature or commit is a wrong call, not a missing engine."""
    assert main(["build", *options]) == 2
    said = capsys.readouterr().err
    assert "nothing was looked at" in said or "no engine was asked" in said


def test_the_text_says_the_same(there: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    """The text names copy, version, findings; nothing of a file name drives the terminal."""
    (there.package / "evil\x1b[2J.py").write_text("")
    assert main(["build", "vllm", "--python", str(there.python)]) == 1
    text = capsys.readouterr().out
    assert str(there.package) in text
    assert f"version   {VERSION}, commit 4ba787ec9 (its version file)" in text
    assert "warning build-extra BUILD" in text
    assert "\x1b" not in text


def test_this_python_is_asked_where_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --python it is our own, which has no sglang."""
    assert main(["build", "sglang", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["python"] == sys.executable
