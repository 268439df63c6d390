"""The programs of hosts without Python, mutated: each step of shell and SFTP removed or altered is noticed.

A mutant meets the one test that is to notice it, called in a process forked for it: nothing is set up twice.
"""

import importlib
import inspect
import json
import os
import shutil
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from draftproof.deploy.ledger.ledger import Ledger
from draftproof.host import program as programs
from loopback import Sshd
from totals import record

pytestmark = [pytest.mark.root, pytest.mark.ssh, pytest.mark.slow]
ROOT = Path(__file__).parents[3]
SUITES = {
    "shell": ("tests/deploy/faults/test_shell_steps.py", "tests/host/test_shell.py"),
    "sftp": ("tests/deploy/ssh/test_sftp_steps.py", "tests/deploy/ssh/test_sftp.py"),
}
PASSED, FAILED, BROKEN = 0, 1, 99
MODULES = ("sftp_place.py", "sftp_write.py", "sftp.py")


@dataclass(frozen=True)
class Mutant:
    """Edits of the product's text, the test that is to notice them, or why none can."""

    name: str
    program: str
    edits: list[list[str]]
    """module below host/, what stands there once, and what takes its place."""

    test: str
    equivalent: str = ""
    """Why it breaks no promise; its test then shows the second net."""


MUTANTS = [
    Mutant(**fields)
    for fields in json.loads(Path(__file__).with_name("mutants_elsewhere.json").read_text("utf-8"))
]


def edited(mutant: Mutant, directory: Path) -> Path:
    """A copy of host/ with the edits, which must each hit exactly one place."""
    host = directory / "host"
    shutil.copytree(ROOT / "src" / "draftproof" / "host", host, ignore=shutil.ignore_patterns("__pycache__"))
    for module, old, new in mutant.edits:
        text = (host / module).read_text("utf-8")
        assert text.count(old) == 1, f"{mutant.name}: {text.count(old)} places for {old!r}"
        (host / module).write_text(text.replace(old, new), "utf-8")
    return host


def take_in(program: str, host: Path) -> None:
    """Put the mutant in the product's place: shell texts by their directory, modules by their names."""
    setattr(programs, "files", lambda _package: host)  # noqa: B010 - no part of what it exports
    for name in MODULES if program == "sftp" else ():
        module = importlib.import_module(f"draftproof.host.{name[:-3]}")
        exec(compile((host / name).read_text("utf-8"), name, "exec"), module.__dict__)  # noqa: S102 - ours


def module_at(file: str) -> ModuleType:
    """A file of tests, imported once."""
    folder = str((ROOT / file).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(Path(file).stem)


def called(mutant: Mutant) -> tuple[ModuleType, str, dict[str, object]]:
    """Module, function and parameters of ``name[id]`` in the suites of a mutant's program."""
    name, _, wanted = mutant.test.removesuffix("]").partition("[")
    (module,) = [each for each in map(module_at, SUITES[mutant.program]) if hasattr(each, name)]
    for mark in getattr(getattr(module, name), "pytestmark", []):
        if mark.name == "parametrize":
            names = [mark.args[0]] if isinstance(mark.args[0], str) else mark.args[0]
            rows = [row if isinstance(row, tuple) else (row,) for row in mark.args[1]]
            told = {"-".join(getattr(v, "__name__", str(v)) for v in row): row for row in rows}
            return module, name, dict(zip(names, told[wanted], strict=True))
    assert not wanted
    return module, name, {}


def meet(mutant: Mutant, sshd: Sshd, directory: Path) -> int:
    """The forked process: its exit status says whether the test held, anything else is told there."""
    module, name, values = called(mutant)
    function = getattr(module, name)
    scratch = directory / "scratch"
    scratch.mkdir()
    given: dict[str, Any] = {"sshd": sshd, "tmp_path": scratch, "ledger": Ledger(scratch / "state" / "l")}
    wanted = [each for each in inspect.signature(function).parameters if each not in values]
    if "target" in wanted:
        given["target"] = module.target_in(scratch)
    take_in(mutant.program, edited(mutant, directory))
    try:
        function(**values, **{each: given[each] for each in wanted})
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - a mutant may break in any way; each is a kill
        traceback.print_exc()
        return FAILED
    return PASSED


def verdicts(mutants: Sequence[Mutant], sshd: Sshd, directory: Path) -> Iterator[tuple[Mutant, int, str]]:
    """Each mutant with what its test said."""
    for number, mutant in enumerate(mutants):
        place = directory / str(number)
        place.mkdir()
        pid = os.fork()
        if not pid:
            code = BROKEN
            try:
                output = os.open(place / "said", os.O_WRONLY | os.O_CREAT)
                os.dup2(output, 1)
                os.dup2(output, 2)
                sys.stdout = sys.stderr = os.fdopen(output, "w")
                code = meet(mutant, sshd, place)
                sys.stderr.flush()
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        said = (place / "said").read_text("utf-8", "replace")
        yield mutant, os.waitstatus_to_exitcode(status), said[-600:]


@pytest.mark.parametrize("program", sorted(SUITES))
def test_the_product_itself_passes(sshd: Sshd, tmp_path: Path, program: str) -> None:
    """Each test that kills a mutant holds without one; otherwise a kill below would mean nothing."""
    tests = dict.fromkeys(mutant.test for mutant in MUTANTS if mutant.program == program)
    unedited = [Mutant("none", program, [], test) for test in tests]
    for mutant, code, said in verdicts(unedited, sshd, tmp_path):
        assert code == PASSED, f"{mutant.test}: {said}"


@pytest.mark.parametrize("program", sorted(SUITES))
def test_every_mutant_is_caught(sshd: Sshd, tmp_path: Path, program: str) -> None:
    """Each breaks the promise of its test; those that can break none are listed with the reason."""
    mutants = [mutant for mutant in MUTANTS if mutant.program == program]
    told = list(verdicts(mutants, sshd, tmp_path))
    assert not [f"{m.name}: {said}" for m, code, said in told if code not in {PASSED, FAILED}]
    survivors = {m.name for m, code, _ in told if code == PASSED}
    equivalent = {m.name for m in mutants if m.equivalent}
    counts = {"mutants": len(mutants), "caught": len(mutants) - len(survivors)}
    record("S11 mutants", f"of the {program} program", counts | {"equivalent": sorted(equivalent)})
    assert survivors == equivalent
    assert len(mutants) == {"shell": 55, "sftp": 32}[program]
