"""runtimes.hf.probe: whatever the library in the other Python does, it is a result or a named silence.

The library here is a small foreign ``transformers`` that misbehaves on purpose; live tests use real ones.
"""

import ast
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from draftproof.config.raw import parse_raw
from draftproof.runtimes.hf.reading import HfReading, read_with
from draftproof.runtimes.interpreter import NoAnswer

PROBE = files("draftproof.runtimes.hf") / "probe.py"

LIBRARY = """
import json
__version__ = "0.0.1"
class TinyConfig:
    attribute_map = {"width": "hidden_size"}
    sub_configs = {}
    def __init__(self, hidden_size=8, window=None, use_window=False, transformers_version=None, **more):
        if "width" in more: hidden_size = more.pop("width")
        self.hidden_size, self.use_window, self.__dict__ = hidden_size, use_window, {**self.__dict__, **more}
        self.hidden_size, self.use_window = hidden_size, use_window
        self.window = window if use_window else None
        self.transformers_version = transformers_version
    @classmethod
    def from_dict(cls, values): return cls(**{k: v for k, v in values.items() if k != "model_type"})
    def to_dict(self): return {**vars(self), "model_type": "tiny"}
class AutoConfig:
    @classmethod
    def from_pretrained(cls, folder, trust_remote_code=None):
        assert trust_remote_code is False
        return TinyConfig.from_dict(json.load(open(folder + "/config.json")))
CONFIG_MAPPING = {"tiny": TinyConfig}
"""


def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, more: str = "") -> HfReading | NoAnswer:
    """What this Python says with the small library, altered by ``more``, in front of all others."""
    package = tmp_path / "site" / "transformers"
    (package / "models" / "auto").mkdir(parents=True)
    (package / "__init__.py").write_text(LIBRARY + more)
    (package / "models" / "__init__.py").write_text("")
    (package / "models" / "auto" / "__init__.py").write_text("")
    (package / "models" / "auto" / "configuration_auto.py").write_text("from transformers import *\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    return read_with(sys.executable, parse_raw(text.encode(), "x.json"), timeout_seconds=20.0)


def test_the_probe_is_standard_library_only() -> None:
    """It runs in anybody's Python: nothing is imported by name but what every Python has."""
    imported = set()
    for node in ast.walk(ast.parse(PROBE.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).split(".")[0])
    assert imported <= set(sys.stdlib_module_names)


def test_the_probe_is_written_for_python_3_9() -> None:
    """Its syntax is that of the oldest Python that a served transformers runs on."""
    ast.parse(PROBE.read_text(encoding="utf-8"), feature_version=(3, 9))


def test_gates_and_names_of_any_class_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing about a particular model is built in: flags are tried, renames are observed."""
    reading = read(tmp_path, monkeypatch, '{"model_type": "tiny", "width": 16, "window": 4, "extra": 1}')
    assert isinstance(reading, HfReading)
    assert reading.trials is not None
    assert reading.values["hidden_size"] == 16
    assert [(flip.path, flip.value) for flip in reading.trials.flips] == [(("use_window",), True)]
    moved = {a.path: [m.path for m in a.moved] for a in reading.trials.ablations}
    assert moved == {("width",): [("hidden_size",)], ("window",): []}


@pytest.mark.parametrize(
    "more",
    [
        "print('draftproof-frame 00 2 00'); import os; os.write(1, b'loud\\n')",
        "import logging; logging.basicConfig(); logging.error('loud')",
    ],
)
def test_a_talkative_library_does_not_disturb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    """What the library prints goes elsewhere."""
    assert isinstance(read(tmp_path, monkeypatch, '{"model_type": "tiny"}', more), HfReading)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("raise ValueError('no\\x1b[2J good')", "ValueError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("raise RecursionError", "RecursionError"),
        ("return 1 / 0", "ZeroDivisionError"),
    ],
)
def test_what_the_library_raises_is_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, kind: str
) -> None:
    """An error while parsing is what this library makes of the file."""
    more = f"\ndef broken(*a, **k):\n    {body}\nAutoConfig.from_pretrained = broken\n"
    reading = read(tmp_path, monkeypatch, '{"model_type": "tiny"}', more)
    assert isinstance(reading, HfReading)
    assert reading.refusal is not None
    assert (reading.refusal.stage, reading.refusal.type) == ("parse", kind)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            "raise RuntimeError('broken build')",
            "no transformers that can be imported (RuntimeError: broken build)",
        ),
        ("import os; os._exit(0)", "0 answers"),
        ("import sys; sys.exit('bye')", "no transformers that can be imported (SystemExit: bye)"),
        ("del CONFIG_MAPPING", "no transformers that can be imported (AttributeError"),
    ],
)
def test_a_library_that_cannot_be_imported_has_not_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, words: str
) -> None:
    """A broken installation is a silence with a reason, never an agreement."""
    answer = read(tmp_path, monkeypatch, '{"model_type": "tiny"}', more)
    assert isinstance(answer, NoAnswer)
    assert words in answer.reason


def test_a_library_that_parses_otherwise_each_time_gives_no_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the same file does not give the same values twice, no trial means anything."""
    more = """
import itertools
count = itertools.count()
TinyConfig.to_dict = lambda self: {"hidden_size": next(count), "model_type": "tiny"}
"""
    reading = read(tmp_path, monkeypatch, '{"model_type": "tiny", "hidden_size": 8}', more)
    assert isinstance(reading, HfReading)
    assert reading.trials is None


def test_values_that_json_has_no_word_for_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinity, sets and objects of the library arrive as text, tuples as lists."""
    more = """
TinyConfig.to_dict = lambda self: {"a": float("inf"), "b": (1, 2), "c": {3}, "model_type": "tiny"}
"""
    reading = read(tmp_path, monkeypatch, '{"model_type": "tiny"}', more)
    assert isinstance(reading, HfReading)
    assert dict(reading.values) == {
        "a": {"__float__": "inf"},
        "b": [1, 2],
        "c": "{3}",
        "model_type": "tiny",
        "transformers_version": None,
    }


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe writes neither into the library's folder nor beside the file."""
    read(tmp_path, monkeypatch, '{"model_type": "tiny"}')
    assert not list(tmp_path.rglob("*.pyc"))
    assert {path.name for path in tmp_path.iterdir()} == {"site"}
