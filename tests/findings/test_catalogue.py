"""The catalogue: every id any floor can emit has one entry, and every entry is complete."""

import ast
import re
from pathlib import Path

import pytest

from draftproof.config.json.defects import DEFECTS
from draftproof.errors import UsageError
from draftproof.findings.catalogue import CATALOGUE, found, nearest
from draftproof.findings.check import RULES
from draftproof.findings.effects import EFFECTS
from draftproof.findings.explain import as_dict, kind_of, reference_page
from draftproof.findings.finding import Severity
from draftproof.findings.kind import Kind
from draftproof.findings.kinds import attention, config, drift, pairs, tokenizers, weights
from draftproof.findings.place import Place

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "draftproof"
KINDS = list(CATALOGUE.values())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
def test_a_kind_says_everything(kind: Kind) -> None:
    """An id is lower-case words with hyphens; title, meaning and next step are there, without full stop."""
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", kind.id)
    for text in (kind.title, kind.means, kind.next):
        assert text
        assert not text.endswith(".")
    assert kind.severity not in kind.also


def test_every_id_a_rule_emits_is_catalogued() -> None:
    """What a rule announces, the catalogue explains."""
    assert {name for rule in RULES for name in rule.ids} <= CATALOGUE.keys()


def test_every_id_written_in_a_rule_is_announced() -> None:
    """A rule module emits no id that its rules do not announce."""
    announced = {name for rule in RULES for name in rule.ids}
    for path in sorted((SOURCE / "findings" / "rules").glob("*.py")):
        written = {
            node.args[0].value
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "found"
            and isinstance(node.args[0], ast.Constant)
        }
        assert written <= announced, path.name


def test_every_kind_of_a_rule_is_announced() -> None:
    """No entry explains a finding that no rule can give."""
    announced = {name for rule in RULES for name in rule.ids}
    for module in (attention, config, drift, pairs, tokenizers, weights):
        assert {kind.id for kind in module.KINDS} <= announced, module.__name__


def test_every_defect_of_a_json_file_is_catalogued() -> None:
    """The bytes' defects come from a lower floor and are explained like any other finding."""
    assert DEFECTS.keys() <= CATALOGUE.keys()


def test_every_effect_has_a_source_and_a_use() -> None:
    """A number is published by somebody, and some finding cites it."""
    text = "".join(
        p.read_text("utf-8") for p in (SOURCE / "findings").rglob("*.py") if p.name != "effects.py"
    )
    for name, effect in EFFECTS.items():
        assert effect.source
        assert f'"{name}"' in text, name


def test_a_severity_that_is_not_catalogued_is_refused() -> None:
    """A rule cannot invent a severity that explain does not tell."""
    with pytest.raises(ValueError, match="not catalogued"):
        found("mask-absent", "x", expected=1, found=2, at=Place("x"), severity=Severity.NOTE)


def test_the_meaning_carries_the_published_effect() -> None:
    """The cost of a fault is told with who measured it."""
    finding = found("taps-conflict", "x", expected=[1], found=[2], at=Place("x"))
    assert "vllm-project/vllm#40727" in finding.means


def test_an_unknown_id_is_usage_and_names_the_nearest() -> None:
    """A slip of the pen is answered with what was probably meant."""
    with pytest.raises(UsageError, match="mask-names-token"):
        kind_of("mask-name-token")
    assert nearest("qqq") == []


def test_the_reference_page_is_the_catalogue() -> None:
    """docs/reference/findings.md is what the product prints; write it with draftproof explain --markdown."""
    assert (ROOT / "docs" / "reference" / "findings.md").read_text("utf-8") == reference_page()


def test_as_dict_has_every_part() -> None:
    """The JSON of explain says what the text says."""
    document = as_dict(CATALOGUE["intent-drift"])
    assert document["severity"] == "error"
    assert document["also"] == ["warning"]
    assert as_dict(CATALOGUE["taps-conflict"])["effect"] is not None
