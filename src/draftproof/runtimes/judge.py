"""Which of a library's changes a consumer notices: findings at PARSED, and nothing else is blamed.

A legal normalisation (moved, renamed, rewritten word for word, a number's type) is never a finding.
"""

from collections.abc import Iterator, Mapping, Sequence

from draftproof.config.raw import JsonValue, RawConfig, pointer_of
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, Severity
from draftproof.findings.known_keys import KNOWN_KEYS
from draftproof.findings.place import at_pointer
from draftproof.runtimes.fields import FieldReading, How, home_of, is_present
from draftproof.runtimes.hf import Flip, HfReading, KeyPath, Refusal

__all__ = ["judge"]

SHAPES = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
"""Holes that no class default fills rightly but by luck: they must fit the target and the tensors."""

ADVISORY = frozenset(
    {
        "_name_or_path",
        "architectures",
        "attention_dropout",
        "auto_map",
        "bos_token_id",
        "dtype",
        "eos_token_id",
        "id2label",
        "initializer_range",
        "label2id",
        "model_type",
        "pad_token_id",
        "torch_dtype",
        "transformers_version",
        "use_cache",
    }
)
"""Keys no engine reads while drafting: losing one changes nothing but provenance."""

LANGUAGE_HOMES: tuple[KeyPath, ...] = ((), ("text_config",))
"""Where a drafter's or target's own fields stand; a vision tower's are not drafting's business."""

LOST = (How.DROPPED, How.NULLED)
ROPE = ("rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor")


def judge(
    raw: RawConfig,
    fields: Sequence[FieldReading],
    reading: HfReading,
    *,
    target_vocab_size: int | None = None,
) -> tuple[Finding, ...]:
    """The findings of one library's reading; none where everything it changed means the same."""
    if reading.refusal is not None:
        return (_refused(raw, reading, reading.refusal),)
    by_path = {field.path: field for field in fields}
    homes = dict.fromkeys(home_of((*field.path[:1], ""), reading) for field in fields)
    found_: list[Finding] = []
    for home in [home for home in homes if home in LANGUAGE_HOMES]:
        found_ += _window(raw, home, by_path)
        found_ += _holes(raw, home, by_path, target_vocab_size)
    for field in fields:
        found_ += _value(raw, field, reading)
    return tuple(found_)


def _refused(raw: RawConfig, reading: HfReading, refusal: Refusal) -> Finding:
    says_type = "/model_type" if raw.has("/model_type") else ""
    place = at_pointer(raw, says_type if refusal.stage == "class" else "")
    if refusal.type == "NoModelType" and raw.has("/speculators_model_type"):
        kind = raw.at("/speculators_model_type")
        return found(
            "parsed-no-class",
            "speculators_model_type",
            expected=None,
            found=kind,
            at=at_pointer(raw, "/speculators_model_type"),
            detail=f"a speculators file names no model_type for {reading.name}",
        )
    is_unknown = refusal.type == "UnknownModelType"
    said = (
        f"no class for model_type {refusal.message}" if is_unknown else f"{refusal.type}: {refusal.message}"
    )
    return found(
        "parsed-refused",
        "model_type" if refusal.stage == "class" else "config",
        expected="a file that parses",
        found=said,
        at=place,
        detail=reading.name,
    )


def _window(raw: RawConfig, home: KeyPath, fields: Mapping[KeyPath, FieldReading]) -> Iterator[Finding]:
    window, types = fields.get((*home, "sliding_window")), fields.get((*home, "layer_types"))
    if window is None or types is None:
        return
    slides = _sliding(types.value)
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
    slides = _sliding(types.value)
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


def _holes(
    raw: RawConfig,
    home: KeyPath,
    fields: Mapping[KeyPath, FieldReading],
    target_vocab_size: int | None,
) -> Iterator[Finding]:
    for name in SHAPES:
        field = fields.get((*home, name))
        if field is None or field.how is not How.DEFAULTED or field.value is None:
            continue
        differs = name == "vocab_size" and target_vocab_size not in (None, field.value)
        yield found(
            "parsed-hole-filled",
            name,
            expected=target_vocab_size if differs else None,
            found=field.value,
            at=at_pointer(raw, pointer_of(field.path)),
            detail=field.why + (f"; the target has {target_vocab_size}" if differs else ""),
            severity=Severity.ERROR if differs else Severity.WARNING,
        )


def _value(raw: RawConfig, field: FieldReading, reading: HfReading) -> Iterator[Finding]:
    """A change of a single value that no legal normalisation explains."""
    home = home_of(field.path, reading)
    key = field.path[len(home)]
    if home not in LANGUAGE_HOMES or key in ADVISORY or not field.written or field.bytes is None:
        return
    kind = _kind_of_change(key, field)
    if kind is None:
        return
    is_known = any(part in KNOWN_KEYS for part in field.path)
    yield found(
        kind,
        field.path[-1],
        expected=field.bytes,
        found=field.value,
        at=at_pointer(raw, pointer_of(field.path)),
        detail=field.why + ("" if is_known else "; no reader of this key is known"),
        severity=None if is_known else Severity.NOTE,
    )


def _kind_of_change(key: str, field: FieldReading) -> str | None:
    if field.path[-1] == "sliding_window" and field.how is How.NULLED:
        return None  # the window has rules of its own
    if key in ROPE:
        return "parsed-rope-ignored" if field.how in (*LOST, How.IGNORED, How.CHANGED) else None
    if key == "layer_types" and field.how in (How.REWRITTEN, How.CHANGED):
        return None if _sliding(field.bytes) == _sliding(field.value) else "parsed-layers-changed"
    if field.how in LOST:
        return "parsed-value-dropped"
    return "parsed-value-changed" if field.how in (How.CHANGED, How.IGNORED) else None


def _sliding(value: JsonValue) -> list[int]:
    return [i for i, kind in enumerate(_list(value)) if isinstance(kind, str) and "sliding" in kind]
