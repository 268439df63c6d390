"""Which of a library's changes a consumer notices: findings at PARSED, and nothing else is blamed.

A legal normalisation (moved, renamed, rewritten word for word, a number's type) is never a finding.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from draftproof.config.raw import RawConfig, pointer_of
from draftproof.config.view import leaves
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, Severity
from draftproof.findings.known_keys import KNOWN_KEYS
from draftproof.findings.place import at_pointer
from draftproof.runtimes.hf.fields import FieldReading, How, home_of
from draftproof.runtimes.hf.judge_window import judge_window, sliding_layers
from draftproof.runtimes.hf.reading import HfReading, KeyPath, Refusal

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

NOT_FOR_TRANSFORMERS = {
    "/speculators_model_type": "this is a speculators file",
    "/auto_map/AutoConfig": "its class is code of the checkpoint",
}
"""What a file says that transformers itself is not meant to parse: pointer -> in words."""

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
        found_ += judge_window(raw, home, by_path)
        found_ += _holes(raw, home, by_path, target_vocab_size)
    for field in fields:
        found_ += _value(raw, field, reading)
    return tuple(found_)


def _refused(raw: RawConfig, reading: HfReading, refusal: Refusal) -> Finding:
    says_type = "/model_type" if raw.has("/model_type") else ""
    place = at_pointer(raw, says_type if refusal.stage == "class" else "")
    for pointer, why in NOT_FOR_TRANSFORMERS.items():
        if refusal.stage == "class" and raw.has(pointer):
            return found(
                "parsed-no-class",
                pointer.rpartition("/")[2],
                expected=None,
                found=raw.at(pointer),
                at=at_pointer(raw, pointer),
                detail=f"{reading.name}: {refusal.sentence}; {why}",
            )
    if refusal.stage == "parse":
        place = at_pointer(raw, _named_in(refusal.message, raw))
    return found(
        "parsed-refused",
        "model_type" if refusal.stage == "class" else "config",
        expected="a file that parses",
        found=refusal.sentence,
        at=place,
        detail=reading.name,
    )


def _named_in(message: str, raw: RawConfig) -> str:
    """The pointer of the first key of the file that the library's message puts in quotes; "" for none."""
    quoted = re.findall(r"[`']([^`'\s]+)[`']", message)
    pointers = {path[-1]: pointer_of(path) for path, _ in leaves(raw.value)}
    return next((pointers[name] for name in quoted if name in pointers), "")


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
    is_known = any(part in KNOWN_KEYS for part in field.path)
    if kind is None or (kind == "parsed-value-dropped" and not is_known):
        return  # a setting for text generation, say: shown as dropped, and no reader of drafters misses it
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
        agree = sliding_layers(field.bytes) == sliding_layers(field.value)
        return None if agree else "parsed-layers-changed"
    if field.how in LOST:
        return "parsed-value-dropped"
    return "parsed-value-changed" if field.how in (How.CHANGED, How.IGNORED) else None
