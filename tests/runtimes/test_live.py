"""The parsed view against real libraries: transformers 4.57.6 and 5.24.0, each in its own environment."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from draftproof.config.raw import read_raw
from draftproof.runtimes.hf.compare import compare
from draftproof.runtimes.hf.fields import How
from draftproof.runtimes.hf.judge import judge
from draftproof.runtimes.hf.reading import HfReading, read_with
from draftproof.runtimes.interpreter import NoAnswer
from environments import NEW, OLD, REPOSITORY, VERSIONS, transformers_python
from runtimes.cases import CASES, CONFIGS, recorded
from runtimes.record import ask_about

pytestmark = pytest.mark.live

GRADES: dict[str, str] = json.loads((CONFIGS.parent / "config_grades.json").read_text())["grades"]
CLEAN = sorted(name for name, grade in GRADES.items() if grade in ("V", "N"))
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")

BLAMED: dict[tuple[str, str], str] = {
    # Both files state their rotary base in rope_parameters alone, which 4.57.6 does not know: 10000.0.
    ("zlab-qwen3.6-35b-a3b-dflash.json", OLD): "parsed-rope-ignored",
    ("zlab-qwen3.8-27b-dflash2.json", OLD): "parsed-rope-ignored",
    # Targets of a family that came with 5.x: 4.57.6 has no class for model_type qwen3_5.
    ("qwen3.5-0.8b-target.json", OLD): "parsed-refused",
    ("qwen3.5-27b-target.json", OLD): "parsed-refused",
    ("qwen3.6-27b-target.json", OLD): "parsed-refused",
}
"""Every clean config on which a library is blamed, each with the reason; on all others none is."""

CHANGES: dict[str, dict[str, set[How]]] = {
    # What the two libraries do to clean drafters beyond keeping them, whatever the drafter. All legal:
    # torch_dtype is an older name of dtype, 5.x folds flat rope fields into rope_parameters and drops the
    # null it finds there, and what a file leaves open is filled by the class and said to be.
    OLD: {
        "": {How.DEFAULTED, How.SYNTHESISED},
        "torch_dtype": {How.RENAMED},
        "rope_parameters": {How.IGNORED},
    },
    NEW: {
        "": {How.DEFAULTED, How.SYNTHESISED},
        "torch_dtype": {How.RENAMED},
        "rope_theta": {How.MOVED},
        "rope_scaling": {How.MOVED, How.DROPPED},
    },
}


@cache
def said_about_cases(version: str) -> dict[str, Mapping[str, Any]]:
    """The real library's answer to every case, as many at once as there are processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(CASES, pool.map(lambda text: ask_about(text, version), CASES.values()), strict=True))


@cache
def readings_of_clean(version: str) -> dict[str, HfReading | NoAnswer]:
    """What the real library makes of every clean config."""
    python = str(transformers_python(version))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        readings = pool.map(lambda name: read_with(python, read_raw(CONFIGS / name)), CLEAN)
        return dict(zip(CLEAN, readings, strict=True))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_the_transcripts_are_still_what_the_libraries_say(case: str, version: str) -> None:
    """Every recorded answer, trials included, is the real library's answer today."""
    assert said_about_cases(version)[case] == recorded(version)[case]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CLEAN)
def test_no_library_is_blamed_on_a_clean_config_but_where_it_did_it(name: str, version: str) -> None:
    """On complete real configs the findings are exactly the known ones."""
    raw, reading = read_raw(CONFIGS / name), readings_of_clean(version)[name]
    assert isinstance(reading, HfReading), reading
    assert reading.version == version
    fields = compare(raw.value, reading)
    expected = {BLAMED[name, version]} if (name, version) in BLAMED else set()
    assert {finding.id for finding in judge(raw, fields, reading)} == expected
    if name.endswith("-target.json"):
        return
    for field in fields:
        place = field.path[0] if field.written and field.bytes is not None else ""
        place = "rope_scaling" if field.path == ("rope_scaling",) else place
        allowed = CHANGES[version].get(place)
        assert field.how is How.KEPT or (allowed is not None and field.how in allowed), field


def views(python: Path | str, *argv: str | Path) -> tuple[int, dict[str, Any]]:
    """The verb as a process of its own, with one interpreter."""
    command = [
        sys.executable,
        "-m",
        "draftproof",
        "views",
        *map(str, argv),
        "--python",
        str(python),
        "--json",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    document: dict[str, Any] = json.loads(ran.stdout)
    return ran.returncode, document


def test_the_case_study_end_to_end() -> None:
    """A real 5.x keeps the five stale values as the file says; the first wrong layer is BYTES."""
    stale = CONFIGS / "casestudy-qwen3.6-27b-dflash-STALE-reconstructed.json"
    code, document = views(
        transformers_python(NEW), stale, "--intent", CONFIGS / "zlab-qwen3.6-27b-dflash.json"
    )
    assert code == 1
    wrong = [row for row in document["fields"] if row["first_wrong"]]
    assert len(wrong) == 5
    assert {row["first_wrong"] for row in wrong} == {"BYTES"}
    assert {one["how"] for row in wrong for one in row["parsed"].values()} == {"kept"}
    assert {finding["layer"] for finding in document["findings"]} == {"BYTES"}


def test_code_in_the_checkpoint_does_not_run(tmp_path: Path) -> None:
    """A config class named by auto_map lies beside the file and stays unread, whatever the model_type."""
    for model_type in ("qwen3", "evil"):
        folder = tmp_path / model_type
        folder.mkdir()
        (folder / "configuration_evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
        config = {"model_type": model_type, "auto_map": {"AutoConfig": "configuration_evil.EvilConfig"}}
        (folder / "config.json").write_text(json.dumps(config))
        views(transformers_python(NEW), folder)
    assert not (tmp_path / "ran").exists()


def test_a_python_without_transformers_is_said_to_have_none(tmp_path: Path) -> None:
    """An interpreter of the same machine without the library gives status 3 and no verdict."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    code, document = views(tmp_path / "bare" / "bin" / "python", CONFIGS / "zlab-qwen3.6-27b-dflash.json")
    assert code == 3
    assert "No module named 'transformers'" in document["interpreters"][0]["reason"]


def test_the_demo_shows_what_it_claims(tmp_path: Path) -> None:
    """The demo runs from any directory, in under 70 lines, and ends well."""
    demo = REPOSITORY / "examples" / "stale_config" / "demo.py"
    command = [sys.executable, str(demo), str(transformers_python(NEW))]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert len(lines) < 70
    assert "the library is innocent" in lines[-1]
    for words in (
        "write never took effect (bytes equal the recorded pre-image)",
        "config.json: L",
        "L4 not shown: ",
        "exit 0: no fault found",
        # The name stands there whether the step was shown or, without openssh-server, left out by name.
        "$ draftproof write .demo/intended.json loopback:" if SSHD else "not shown here: sshd",
    ):
        assert any(words in line for line in lines), words


def test_the_demo_names_what_it_cannot_show(tmp_path: Path) -> None:
    """Where there is no ssh the last step is left out by name, and the rest is shown."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "cat", "cp"):
        (tools / name).symlink_to(str(shutil.which(name)))
    demo = REPOSITORY / "examples" / "stale_config" / "demo.py"
    command = [sys.executable, str(demo), str(transformers_python(NEW))]
    environment = os.environ | {"PATH": str(tools)}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert re.search(r"not shown here: .*ssh, ssh-keygen not installed", ran.stdout)


def test_the_demo_fails_where_the_claim_does(tmp_path: Path) -> None:
    """With a Python that has no transformers the library cannot be acquitted, and the demo says so."""
    demo = REPOSITORY / "examples" / "stale_config" / "demo.py"
    command = [sys.executable, str(demo), str(tmp_path / "no-python")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 1
    assert "NOT shown" in ran.stderr
