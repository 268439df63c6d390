"""``draftproof preflight`` on engines that are absent, broken or hung, and what carries it to them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from draftproof.cli.main import main
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.interpreter import Answer, NoAnswer
from draftproof.runtimes.lifting import lifted
from runtimes.asked_engines import Capture, preflight, program
from runtimes.effective_cases import laid_out


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_an_engine_that_is_not_there(engine: str, capsys: Capture, tmp_path: Path) -> None:
    """This Python has no engine: said so by itself, exit 3."""
    code, told = preflight(capsys, tmp_path, "full", sys.executable, "--engine", engine)
    assert code == 3
    assert told["effective"] is None
    assert "no engine that can be imported" in told["not_looked"][0]["reason"]
    assert engine in told["not_looked"][0]["reason"]


HALVES = {
    "of nothing": ({"__init__.py": "import nothing_of_this_name\n"}, "nothing_of_this_name"),
    "no version": ({"__init__.py": ""}, "without a version"),
    "no config": ({"__init__.py": "__version__ = '0.32.0'\n"}, "no vllm.config"),
    "no arguments": (
        {"__init__.py": "__version__ = '0.32.0'\n", "config.py": ""},
        "no vllm.engine.arg_utils: ModuleNotFoundError",
    ),
    "no models": (
        {
            "__init__.py": "__version__ = '0.32.0'\n",
            "config.py": "",
            "engine/arg_utils.py": "def EngineArgs(**_):\n    import vllm.model_executor.models\n",
        },
        "No module named 'vllm.model_executor'",
    ),
}
"""What is left of an engine -> its files, and what must be said of it."""


@pytest.mark.parametrize("name", HALVES)
def test_an_engine_half_installed(
    name: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that are gone are no refusal of the pair: could not look, in Python's own words."""
    files, reason = HALVES[name]
    for path, text in files.items():
        place = tmp_path / "half" / "vllm" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "half"))
    code, told = preflight(capsys, tmp_path, "full", sys.executable)
    assert code == 3
    assert told["findings"] == []
    assert reason in told["not_looked"][0]["reason"]


def test_an_engine_that_hangs(capsys: Capture, tmp_path: Path) -> None:
    """It is stopped when its time is up."""
    hung = program(tmp_path, "#!/bin/sh\nexec sleep 600\n")
    code, told = preflight(capsys, tmp_path, "full", hung, "--timeout", "0.5")
    assert code == 3
    assert "no answer within 0.5 s" in told["not_looked"][0]["reason"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#!/bin/sh\necho nonsense\n", "0 answers"),
        ("#!/bin/sh\nkill -9 $$\n", "status -9"),
        ("#!/bin/sh\necho 'Segmentation fault' >&2; exit 139\n", "Segmentation fault"),
    ],
)
def test_an_engine_that_answers_nonsense(text: str, reason: str, capsys: Capture, tmp_path: Path) -> None:
    """What it wrote is no answer; its last words are told."""
    code, told = preflight(capsys, tmp_path, "full", program(tmp_path, text))
    assert code == 3
    assert reason in told["not_looked"][0]["reason"]


def test_no_such_interpreter(capsys: Capture, tmp_path: Path) -> None:
    """A path to nothing."""
    code, told = preflight(capsys, tmp_path, "full", tmp_path / "none")
    assert code == 3
    assert "no such file" in told["not_looked"][0]["reason"]


def test_behind_a_prefix(tmp_path: Path) -> None:
    """The words of the prefix come first, and standard input passes through them."""
    there = EnginePython(sys.executable, None, ("env", "VLLM_X=1"))
    answer = there.ask("sglang.preflight", {"pairs": []}, timeout_seconds=60)
    assert isinstance(answer, Answer)
    assert answer.body["engine"] is None
    silent = program(tmp_path, '#!/bin/sh\nexec "$@" </dev/null\n')
    shut = EnginePython(sys.executable, None, (str(silent),))
    refused = shut.ask("sglang.preflight", {"pairs": []}, timeout_seconds=60)
    assert isinstance(refused, NoAnswer)
    assert "standard input" in refused.reason


def test_the_number_of_draft_tokens_must_be_known(capsys: Capture, tmp_path: Path) -> None:
    """EAGLE-3 files do not name it: usage, before anything is started."""
    drafter, target = laid_out(tmp_path, "eagle3")
    code = main(["preflight", drafter.given, "--target", target.given, "--engine", "vllm"])
    assert code == 2
    assert "--k" in capsys.readouterr().err


def test_a_function_is_lifted_with_what_it_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants, helpers and classes of the file come along; that it cannot be imported does not matter."""
    package = tmp_path / "brokenengine"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('no kernels')\n", encoding="utf-8")
    (package / "m.py").write_text(
        "import nothing_of_this_name\nfrom dataclasses import dataclass\nSTEP = 1\n"
        "@dataclass\nclass Taps:\n    ids: nothing_of_this_name.T\n"
        "def shifted(ids):\n    return [one + STEP for one in ids]\n"
        "class Runner:\n"
        "    @nothing_of_this_name.decorator\n"
        "    def taps(self, ids) -> nothing_of_this_name.T:\n"
        "        return Taps(shifted(ids)).ids + [foreign()]\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    taps = lifted("brokenengine/m.py", "Runner.taps", {"foreign": lambda: 9})
    assert taps(None, [1, 3]) == [2, 4, 9]
    with pytest.raises(KeyError):
        lifted("brokenengine/m.py", "Runner.gone", {})
    with pytest.raises(ModuleNotFoundError):
        lifted("noengineofthisname/m.py", "f", {})
