"""cli.main: every way out of the command has its documented status, and --json is always one object."""

import json
import re
import subprocess
import sys

import pytest

from draftproof import __version__
from draftproof.cli.verbs import VERBS, Verb


def run(*args: str) -> subprocess.CompletedProcess[str]:
    """The installed command as a user runs it, standard output not a terminal."""
    command = [sys.executable, "-m", "draftproof", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_version_is_the_package_version() -> None:
    """--version shows what is installed."""
    assert run("--version").stdout == f"draftproof {__version__}\n"


@pytest.mark.parametrize(
    "call", [["--nonsense"], ["nonsense"], ["check"], ["diff", "a"], ["check", "x", "--bad"]]
)
def test_a_wrong_call_is_usage(call: list[str]) -> None:
    """A call that cannot be understood exits 2 and says so on standard error."""
    result = run(*call)
    assert (result.returncode, result.stdout) == (2, "")
    assert "usage" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("call", [["--nonsense"], ["nonsense"], ["check"], ["diff", "a"]])
def test_a_wrong_call_with_json_is_one_object(call: list[str]) -> None:
    """--json promises exactly one JSON object on standard output, usage errors included."""
    result = run(*call, "--json")
    assert result.returncode == 2
    assert json.loads(result.stdout)["error"]["id"] == "usage"
    assert result.stderr == ""


def test_a_missing_argument_is_named() -> None:
    """Not "no command": the verb is there, what it needs is not."""
    assert "Missing argument 'DIR'" in run("facts").stderr
    assert "Missing option '--to'" in run("convert", "x").stderr


def test_no_verb_shows_the_help_and_is_usage() -> None:
    """Called alone it shows what it can do; nothing was done, so it is not success."""
    result = run()
    assert result.returncode == 2
    assert "Usage: draftproof" in result.stdout


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_has_help(verb: Verb) -> None:
    """--help of each verb exits 0, names --json, shows an example and every exit status."""
    result = run(verb.name, "--help")
    assert result.returncode == 0
    assert "--json" in result.stdout
    assert f"Example: draftproof {verb.name}" in result.stdout
    assert re.search(r"[Ee]xit", result.stdout)


def test_the_list_of_verbs_is_not_cut() -> None:
    """Every verb's line is whole at 80 columns."""
    listed = run("--help").stdout
    assert all(verb.short in listed for verb in VERBS)


def test_a_closed_pipe_is_no_finding() -> None:
    """``| head -1`` ends the command as the signal would, not with the status that means findings."""
    script = f"{sys.executable} -m draftproof explain | head -1; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (result.returncode, result.stderr) == (141, "")


def test_piped_output_has_no_colour() -> None:
    """Nothing that is not a terminal gets an escape sequence."""
    assert "\x1b" not in run("--help").stdout + run("nonsense").stderr


@pytest.mark.parametrize("as_json", [False, True])
def test_a_fault_of_ours_is_told_from_a_finding(*, as_json: bool) -> None:
    """A bug in draftproof exits 10, never 1, and keeps the promise of one object under --json."""
    script = (
        "import sys, draftproof.cli.main as m\n"
        "def boom(json: bool = False) -> int:\n    return 1 // 0\n"
        "m.app.command()(boom)\n"
        "sys.exit(m.main(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", script, "boom", *(["--json"] if as_json else [])]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 10
    told = json.loads(result.stdout)["error"]["found"] if as_json else result.stderr
    assert "ZeroDivisionError" in told
