"""Field by field: what became of the file's value inside transformers, and why.

Every reason is an observation: the library parsed variations of the same file, and the reason names the
variation that brought the value back, or moved it. Where no variation did, that is said.
"""

from collections.abc import Mapping

from draftproof.config.raw import JsonValue, pointer_of
from draftproof.config.view import leaves, same_json
from draftproof.runtimes.hf.causes import gate_reason, restoring, shaping, shaping_reason, twin, went_to
from draftproof.runtimes.hf.fields import FieldReading, How, equal, find, home_of, is_present, word
from draftproof.runtimes.hf.reading import HfReading, KeyPath
from draftproof.runtimes.hf.unread_rope import unread_rope

__all__ = ["compare"]

SHOWN_WHEN_SILENT = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_act",
    "rms_norm_eps",
    "attention_bias",
    "max_position_embeddings",
    "tie_word_embeddings",
    "layer_types",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "rope_theta",
    "rope_parameters",
)
"""Fields a drafter or target depends on: shown even where the file does not name them."""


def compare(disk: Mapping[str, JsonValue], reading: HfReading) -> tuple[FieldReading, ...]:
    """Every field of the file, then those it is silent about and a consumer depends on."""
    if reading.refusal is not None:
        why = reading.refusal.sentence
        return tuple(FieldReading(path, True, value, None, How.REFUSED, why) for path, value in leaves(disk))
    written = tuple(_written(path, value, disk, reading) for path, value in leaves(disk))
    taken = {field.path for field in written} | {field.now for field in written}
    silent = tuple(
        _silent((*home, name, *below), value, None, reading, written=False)
        for home in _homes(disk, reading)
        for name in SHOWN_WHEN_SILENT
        for below, value in _opened(find(reading.values, (*home, name)))
        if (*home, name, *below) not in taken and value is not None
    )
    return written + silent


def _homes(disk: Mapping[str, JsonValue], reading: HfReading) -> list[KeyPath]:
    has_text = isinstance(find(disk, ("text_config",)), dict) and home_of(("text_config", ""), reading)
    return [(), ("text_config",)] if has_text else [()]


def _opened(value: JsonValue) -> list[tuple[KeyPath, JsonValue]]:
    return list(leaves(value)) if isinstance(value, dict) and value else [((), value)]


def _written(
    path: KeyPath, value: JsonValue, disk: Mapping[str, JsonValue], reading: HfReading
) -> FieldReading:
    held = find(reading.values, path)
    unread = unread_rope(path, value, reading)
    if unread is not None:
        return unread
    if is_present(reading.values, path) and same_json(value, held):
        return FieldReading(path, True, value, held, How.KEPT, _why_kept(path, reading))
    if value is None:
        if held is not None:
            return _silent(path, held, value, reading, written=True)
        return FieldReading(path, True, None, None, How.DROPPED, "a null, and the class has no such key")
    if held is None or isinstance(held, dict):
        return _lost(path, value, disk, reading)
    return _altered(path, value, held, reading)


def _why_kept(path: KeyPath, reading: HfReading) -> str:
    home = home_of(path, reading)
    key = path[: len(home) + 1]
    if is_present(reading.defaults, key):
        return ""
    return f"{reading.class_name} does not know /{'/'.join(key)}: stored as it is, for whoever reads it"


def _lost(path: KeyPath, value: JsonValue, disk: Mapping[str, JsonValue], reading: HfReading) -> FieldReading:
    """A written value that is not under its own name any more."""
    went = went_to(path, value, reading)
    if went is not None:
        home = home_of(path, reading)
        how = How.RENAMED if len(went) == len(path) == 1 + len(home) else How.MOVED
        why = f"{reading.name} holds it as {pointer_of(went)}"
        return FieldReading(path, True, value, find(reading.values, went), how, why, went)
    gates = restoring(path, value, reading)
    if gates:
        return FieldReading(
            path, True, value, None, How.NULLED, gate_reason(gates[0], disk, reading), None, gates
        )
    if is_present(reading.values, path):
        why = f"{reading.name} sets it to null; no single setting tried brings it back"
        return FieldReading(path, True, value, None, How.NULLED, why)
    return _gone(path, value, reading)


def _gone(path: KeyPath, value: JsonValue, reading: HfReading) -> FieldReading:
    """A key that is not there any more, and whose removal changes nothing."""
    again = twin(path, reading)
    if again is None:
        why = f"{reading.name} does not keep this key, and nothing parsed depends on it"
        return FieldReading(path, True, value, None, How.DROPPED, why)
    held, place = find(reading.values, again), pointer_of(again)
    if equal(held, value):
        why = f"{reading.name} holds the same value as {place}"
        return FieldReading(path, True, value, held, How.MOVED, why, again)
    why = f"{reading.name} reads {place} instead, and that is {word(held)}"
    return FieldReading(path, True, value, held, How.IGNORED, why, again)


def _altered(path: KeyPath, value: JsonValue, held: JsonValue, reading: HfReading) -> FieldReading:
    """A written value that is another one now."""
    if equal(value, held):
        why = f"{type(value).__name__} became {type(held).__name__}; the number is the same"
        return FieldReading(path, True, value, held, How.TYPE_CHANGED, why)
    words = _consistent_words(value, held)
    if words:
        renames = ", ".join(f"{old} -> {new}" for old, new in words.items() if old != new)
        return FieldReading(path, True, value, held, How.REWRITTEN, f"{reading.name} writes {renames}")
    return FieldReading(path, True, value, held, How.CHANGED, f"{reading.name} holds another value")


def _consistent_words(value: JsonValue, held: JsonValue) -> dict[str, str]:
    """The word-for-word translation between two lists of labels; empty where there is none."""
    if not isinstance(value, list) or not isinstance(held, list) or len(value) != len(held):
        return {}
    words: dict[str, str] = {}
    for old, new in zip(value, held, strict=True):
        if not isinstance(old, str) or not isinstance(new, str) or words.setdefault(old, new) != new:
            return {}
    return words


def _silent(
    path: KeyPath, held: JsonValue, value: JsonValue, reading: HfReading, *, written: bool
) -> FieldReading:
    """A field the file leaves open (absent or null) and the library fills."""
    state = "null in the file" if written else "absent"
    if same_json(find(reading.defaults, path), held):
        why = f"{state}: class default of {reading.name}"
        return FieldReading(path, written, value, held, How.DEFAULTED, why)
    gates = shaping(path, reading)
    if gates and all(moved.after is None for gate in gates for moved in gate.moved if moved.path == path):
        reasons = "; ".join(dict.fromkeys(shaping_reason(gate, reading) for gate in gates))
        why = f"{state}: a constant of {reading.name}; {reasons}"
        return FieldReading(path, written, value, held, How.DEFAULTED, why, None, gates)
    made = f"{state}: made by {reading.name}"
    told = dict.fromkeys(shaping_reason(gate, reading) for gate in gates)
    return FieldReading(path, written, value, held, How.SYNTHESISED, "; ".join((made, *told)), None, gates)
