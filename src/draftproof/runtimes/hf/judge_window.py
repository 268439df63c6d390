"""The window as parsed: dropped by a gate, kept without a layer to use it, or filled in by the library."""

from collections.abc import Iterator, Mapping

from draftproof.config.raw import JsonValue, RawConfig, pointer_of
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, Severity
from draftproof.findings.place import at_pointer
from draftproof.runtimes.hf.fields import FieldReading, How, is_present
from draftproof.runtimes.hf.reading import Flip, KeyPath

__all__ = ["judge_window", "sliding_layers"]


def judge_window(raw: RawConfig, home: KeyPath, fields: Mapping[KeyPath, FieldReading]) -> Iterator[Finding]:
    """Where the window that the file states, or the layers that use it, are other ones when parsed."""
    window, types = fields.get((*home, "sliding_window")), fields.get((*home, "layer_types"))
    if window is None or types is None:
        return
    slides = sliding_layers(types.value)
    is_written = types.written and types.bytes is not None
    if window.how is How.NULLED and is_written and not slides:
        return  # the file itself says that no layer slides: nobody misses the window
    if window.how is How.NULLED:
        yield from _nulled(raw, window, types)
    elif slides and window.bytes is None and window.value is not None:
        yield found(
            "parsed-hole-filled",
            "sliding_window",
            expected=window.bytes,
            found=window.value,
            at=at_pointer(raw, pointer_of(window.path)),
            detail=f"{window.why}; {len(slides)} layers slide with it",
        )
    elif window.written and window.value is not None and not slides:
        yield from _unused(raw, types)


def _nulled(raw: RawConfig, window: FieldReading, types: FieldReading) -> Iterator[Finding]:
    slides = sliding_layers(types.value)
    if not slides and any(is_present(raw.value, gate.path) for gate in window.gates):
        return  # the file itself switches its window off, and no layer says otherwise
    if slides:
        further = f"a contradiction: layer_types still say sliding on {len(slides)} layers"
    else:
        further = f"layer_types {types.why}" if _gates_that_let_slide(types) else ""
    yield found(
        "parsed-window-nulled",
        "sliding_window",
        expected=window.bytes,
        found=None,
        at=at_pointer(raw, pointer_of(window.path)),
        detail="; ".join(part for part in (window.why, further) if part),
        severity=Severity.ERROR if slides else Severity.WARNING,
    )


def _unused(raw: RawConfig, types: FieldReading) -> Iterator[Finding]:
    gates = _gates_that_let_slide(types)
    if not gates:
        return
    is_said = is_present(raw.value, gates[0].path)
    yield found(
        "parsed-window-unused",
        "layer_types",
        expected=None,
        found=types.value,
        at=at_pointer(raw, pointer_of(types.path)),
        detail=types.why + ("; the file says so itself" if is_said else ""),
        severity=Severity.NOTE if is_said else Severity.WARNING,
    )


def _gates_that_let_slide(types: FieldReading) -> list[Flip]:
    """Settings that were seen to let a layer slide in a list that the library made itself."""
    made = types.gates if types.how is How.SYNTHESISED else ()
    return [gate for gate in made if any("sliding_attention" in _list(m.after) for m in gate.moved)]


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def sliding_layers(value: JsonValue) -> list[int]:
    """The layers that a ``layer_types`` lets slide."""
    return [i for i, kind in enumerate(_list(value)) if isinstance(kind, str) and "sliding" in kind]
