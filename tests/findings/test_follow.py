"""Echoes: one fault is told once, and nothing that another fault says is lost."""

from draftproof.config.raw import parse_raw
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding
from draftproof.findings.follow import without_echoes
from draftproof.findings.place import at_pointer, at_tensor

RAW = parse_raw(b'{"a": {"b": "1"}, "c": null, "num_hidden_layers": 4}', origin="config.json")


def _finding(kind: str, subject: str, pointer: str) -> Finding:
    return found(kind, subject, expected=1, found=2, at=at_pointer(RAW, pointer))


def test_a_hole_left_by_a_mistyped_value_is_an_echo() -> None:
    """The same field, and everything below a mistyped object, goes; another field stays."""
    cause = _finding("field-mistyped", "a", "/a")
    below = _finding("mask-absent", "b", "/a/b")
    same = _finding("rope-absent", "a", "")
    other = _finding("rope-absent", "c", "/c")
    assert without_echoes([cause, below, same, other]) == [cause, other]


def test_drift_is_told_whatever_else_is() -> None:
    """A changed key is one difference, mistyped or not."""
    drift = _finding("intent-drift", "a", "/a")
    assert without_echoes([drift, _finding("field-mistyped", "a", "/a")])[0] == drift


def test_a_tensor_that_a_particular_rule_explains_is_not_unread_too() -> None:
    """The same tensor's unread goes, another tensor's stays."""
    cause = found(
        "fc-bias-unannounced", "fc.bias", expected=1, found=2, at=at_tensor("model.safetensors", "fc.bias")
    )
    echo = found("tensor-unread", "fc.bias", expected=1, found=2, at=at_tensor("d", "fc.bias"))
    other = found("tensor-unread", "x", expected=1, found=2, at=at_tensor("d", "x"))
    assert without_echoes([echo, cause, other]) == [cause, other]


def test_findings_without_a_cause_stay_as_they_are() -> None:
    """No finding goes without one that says more."""
    told = [_finding("layer-types-length", "layer_types", "/c"), _finding("rope-absent", "c", "/c")]
    assert without_echoes(told) == told


def test_one_number_explains_the_length_of_the_list() -> None:
    """An edited number of layers is told at the number, not at the list that was right."""
    cause = _finding("shape-conflict", "num_hidden_layers", "/num_hidden_layers")
    echo = _finding("layer-types-length", "layer_types", "/c")
    assert without_echoes([echo, cause]) == [cause]


def test_a_note_about_a_value_that_was_never_meant_is_an_echo() -> None:
    """The drift is told; what the wrong value would do in an engine is not; a warning about it stays."""
    drift = _finding("intent-drift", "a", "/a")
    note = _finding("taps-last-layer", "a", "/a")
    warning = _finding("mask-not-published", "a", "/a")
    assert without_echoes([drift, note, warning]) == [drift, warning]
    assert without_echoes([note, warning]) == [note, warning]
