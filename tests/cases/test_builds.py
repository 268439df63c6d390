"""Cases of builds: real reports as files, each a clean installation with one fault, put to ``build``."""

import json
import mmap
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from runtimes.build.toy import METADATA, VERSION, Installation, installed

HERE = Path(__file__).parent / "bld"
CASES = sorted(HERE.glob("BLD-*/case.json"))
REASONS: dict[str, str] = json.loads((HERE / "undecidable" / "reasons.json").read_text("utf-8"))["records"]
LIBRARY = b"\x7fELF" + bytes(5000)

Case = dict[str, Any]


def load(path: Path) -> Case:
    """A case file."""
    case: Case = json.loads(path.read_text("utf-8"))
    return case


def base(case: Case, folder: Path) -> Installation:
    """The clean installation of a case."""
    there = installed(folder / "env")
    there.write(case.get("files", {}))
    for name in case.get("libraries", []):
        (there.site / name).write_bytes(LIBRARY)
    there.pack()
    return there


@contextmanager
def faulty(there: Installation, fault: Case, folder: Path) -> Iterator[list[str]]:
    """Make the fault; the options that it needs."""
    options: list[str] = []
    there.write(fault.get("write", {}))
    if fault.get("is_packed"):
        there.pack()
    if "editable" in fault or "is_moved" in fault:
        _in_place(there, fault, folder)
    if "path_inside" in fault:
        (there.site / "inside.pth").write_text(f"{there.site / fault['path_inside']}\n")
    for name, text in fault.get("cwd", {}).items():
        (folder / "cwd" / name).parent.mkdir(parents=True)
        (folder / "cwd" / name).write_text(text)
        options = ["--cwd", str(folder / "cwd")]
    with ExitStack() as stack:
        if "mapped" in fault:
            library = folder / fault["mapped"] / "vllm" / "_C.abi3.so"
            library.parent.mkdir(parents=True)
            library.write_bytes(LIBRARY)
            file = stack.enter_context(library.open("rb"))
            stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            options = ["--pid", str(os.getpid())]
        yield options


def _in_place(there: Installation, fault: Case, folder: Path) -> None:
    """An editable installation: the package in a work tree, found by a finder behind the path."""
    tree = folder / "tree"
    shutil.move(there.package, tree / "vllm")
    version = fault.get("version", VERSION)
    (tree / "vllm" / "_version.py").write_text(f"__version__ = '{version}'\n")
    finder = FINDER.replace("TREE", str(tree))
    there.write({"__editable___finder.py": finder, "__editable__.pth": "import __editable___finder\n"})
    (there.info / "METADATA").write_text(METADATA.replace(VERSION, version))
    (there.info / "RECORD").write_text("__editable__.pth,,\n")
    direct = {"url": f"file://{tree}", "dir_info": {"editable": True}}
    (there.info / "direct_url.json").write_text(json.dumps(direct))


FINDER = """import importlib.util
import sys


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "vllm":
            return importlib.util.spec_from_file_location(
                name, "TREE/vllm/__init__.py", submodule_search_locations=["TREE/vllm"]
            )


sys.meta_path.append(Finder)
"""


def run(there: Installation, options: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, Case]:
    """The verb's status and document."""
    capsys.readouterr()
    code = main(["build", "vllm", "--python", str(there.python), *options, "--json"])
    document: Case = json.loads(capsys.readouterr().out)
    return code, document


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_case(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the fault the case's findings are heard, and without it nothing is."""
    case = load(path)
    there = base(case, tmp_path)
    options = case.get("options", [])
    code, document = run(there, options, capsys)
    assert (code, document["findings"]) == (0, [])
    with faulty(there, case["fault"], tmp_path) as further:
        code, document = run(there, [*options, *further], capsys)
    told = {finding["id"] for finding in document["findings"]}
    assert told == set(case["must_say"]), document
    for text in case["must_mention"]:
        assert text in json.dumps(document["findings"], ensure_ascii=False), text
    assert code == case["exit"]
    assert {finding["layer"] for finding in document["findings"]} == {"BUILD"}


def test_every_record_has_a_case_or_a_reason() -> None:
    """The nine reports of builds, none twice."""
    covered = [load(path)["record"] for path in CASES]
    assert sorted([*covered, *REASONS]) == [f"BLD-0{number}" for number in range(1, 10)]
    assert [load(path)["record"] for path in CASES] == [path.parent.name for path in CASES]
