"""The float type of the weights against the one that the config names."""

import json
from pathlib import Path

import pytest

from cases.builder import build
from draftproof.findings.check import check
from draftproof.findings.evidence import read_evidence
from draftproof.findings.finding import Severity

CASE = {"base": "zlab-qwen3.6-27b-dflash.json", "tiny": True, "weights": {}, "patch": []}


def _told(home: Path, old: bytes, new: bytes) -> list[tuple[str, Severity]]:
    """What is told of the types after the header's ``old`` has become ``new``, of the same length."""
    assert len(old) == len(new)
    (directory,) = build(CASE, home)
    weights = Path(directory) / "model.safetensors"
    data = weights.read_bytes()
    assert old in data
    weights.write_bytes(data.replace(old, new))
    findings = check(read_evidence(directory)).findings
    return [(f.id, f.severity) for f in findings if f.id == "dtype-differs"]


def test_float16_weights_under_a_bfloat16_config_are_a_warning(tmp_path: Path) -> None:
    """What float16 cannot hold was lost before the file was read."""
    assert _told(tmp_path, b'"BF16"', b'"F16" ') == [("dtype-differs", Severity.WARNING)]


@pytest.mark.parametrize("new", [b'"BF16"', b'"U16" '])
def test_the_type_named_or_no_float_type_says_nothing(tmp_path: Path, new: bytes) -> None:
    """Weights as the config names them are silent here, and integers are no float type."""
    assert _told(tmp_path, b'"BF16"', new) == []


def test_a_wider_type_is_a_note(tmp_path: Path) -> None:
    """bfloat16 weights under a float32 config lose nothing."""
    (directory,) = build(CASE, tmp_path)
    config = Path(directory) / "config.json"
    value = json.loads(config.read_text("utf-8"))
    key = "dtype" if "dtype" in value else "torch_dtype"
    config.write_text(json.dumps(value | {key: "float32"}), "utf-8")
    findings = check(read_evidence(directory)).findings
    assert [(f.id, f.severity) for f in findings if f.id.startswith("dtype")] == [
        ("dtype-differs", Severity.NOTE)
    ]
