"""Why a field changed: what the library was seen to do with variations of the same file."""

from collections.abc import Mapping

from draftproof.config.raw import JsonValue, pointer_of
from draftproof.config.view import leaves, same_json
from draftproof.runtimes.hf.fields import equal, find, home_of, is_present, word
from draftproof.runtimes.hf.reading import Flip, HfReading, KeyPath

__all__ = ["gate_reason", "restoring", "shaping", "shaping_reason", "twin", "went_to"]


def went_to(path: KeyPath, value: JsonValue, reading: HfReading) -> KeyPath | None:
    """Where the value is now: seen by removing the key and looking what moves, or by the class's own map."""
    home = home_of(path, reading)
    if path[-1] in reading.aliases and len(path) == len(home) + 1:
        renamed = (*home, reading.aliases[path[-1]])
        if same_json(find(reading.values, renamed), value):
            return renamed
    ablations = reading.trials.ablations if reading.trials else ()
    moved = [m for a in ablations if a.path == path[: len(a.path)] for m in a.moved if m.path != path]
    named = [m.path for m in moved if m.path[-1] == path[-1] and equal(m.before, value)]
    valued = [m.path for m in moved if same_json(m.before, value)]
    return next(iter(named + valued), None)


def restoring(path: KeyPath, value: JsonValue, reading: HfReading) -> tuple[Flip, ...]:
    """Single settings that bring the written value back exactly."""
    flips = reading.trials.flips if reading.trials else ()
    return tuple(
        flip
        for flip in flips
        if flip.given is None and any(m.path == path and same_json(m.after, value) for m in flip.moved)
    )


def gate_reason(gate: Flip, disk: Mapping[str, JsonValue], reading: HfReading) -> str:
    """The gate in words: what stands in the file, and what was tried."""
    name = pointer_of(gate.path)
    stands = f"is {word(find(disk, gate.path))} in the file" if is_present(disk, gate.path) else "is absent"
    kept = f"with {gate.path[-1]} {word(gate.value)} it is kept"
    return f"{name} {stands}, so {reading.name} drops it; tried: {kept}"


def twin(path: KeyPath, reading: HfReading) -> KeyPath | None:
    """Where the library holds the same name a second time, in the same home."""
    home = home_of(path, reading)
    below = find(reading.values, home) if home else dict(reading.values)
    others = [(*home, *other) for other, _ in leaves(below)] if isinstance(below, dict) else []
    return next((other for other in others if other[-1] == path[-1] and other != path), None)


def shaping(path: KeyPath, reading: HfReading) -> tuple[Flip, ...]:
    """Settings that change the field otherwise than in length."""
    flips = reading.trials.flips if reading.trials else ()
    return tuple(
        flip for flip in flips for m in flip.moved if m.path == path and not _only_length(m.before, m.after)
    )


def shaping_reason(gate: Flip, reading: HfReading) -> str:
    """A setting that shapes the field, in words: what it is, and what had to be set for it to matter."""
    stands = f"{gate.path[-1]} is {word(find(reading.values, gate.path))}"
    if same_json(find(reading.defaults, gate.path), find(reading.values, gate.path)):
        stands += " (the class default)"
    given = f" once {gate.given[0][-1]} is {word(gate.given[1])}" if gate.given else ""
    return f"tried: it depends on {gate.path[-1]}{given}, and {stands}"


def _only_length(before: JsonValue, after: JsonValue) -> bool:
    if not isinstance(before, list) or not isinstance(after, list):
        return False
    shorter = min(len(before), len(after))
    return len(before) != len(after) and before[:shorter] == after[:shorter]
