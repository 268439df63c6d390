"""A value in ``rope_parameters`` where the class looks for ``rope_theta`` and ``rope_scaling``."""

from draftproof.config.raw import JsonValue, pointer_of
from draftproof.config.view import same_json
from draftproof.runtimes.hf.fields import FieldReading, How, equal, find, home_of, is_present
from draftproof.runtimes.hf.reading import HfReading, KeyPath

__all__ = ["unread_rope"]


def unread_rope(path: KeyPath, value: JsonValue, reading: HfReading) -> FieldReading | None:
    """A value in ``rope_parameters`` where the class looks for ``rope_theta`` and ``rope_scaling``."""
    home = home_of(path, reading)
    key, below = path[: len(home) + 1], path[len(home) + 1 :]
    unknown = key[-1:] == ("rope_parameters",) and not is_present(reading.defaults, key)
    if not unknown or len(below) != 1 or not is_present(reading.defaults, (*home, "rope_theta")):
        return None
    name = below[0]
    scaling = find(reading.values, (*home, "rope_scaling"))
    if name in ("rope_theta", "partial_rotary_factor"):
        seen = find(reading.values, (*home, name))
    elif isinstance(scaling, dict) and name in scaling:
        seen = scaling[name]
    else:
        seen = "default" if name in ("rope_type", "type") else None
    reader = f"{reading.name} has no rope_parameters: an attribute nobody reads"
    now = (*home, name) if is_present(reading.values, (*home, name)) else None
    if equal(seen, value):
        return FieldReading(path, True, value, seen, How.KEPT, f"{reader}; what the class holds agrees", now)
    why = f"{reader}; {_where_from((*home, name), seen, reading)}"
    hoists = reading.trials.hoists if reading.trials else ()
    if any(hoist.path == path for hoist in hoists):
        why += f"; tried: written as {pointer_of((*home, name))} the same value is taken"
    return FieldReading(path, True, value, seen, How.IGNORED, why, now)


def _where_from(path: KeyPath, seen: JsonValue, reading: HfReading) -> str:
    if seen is None:
        return "the class holds nothing in its place"
    if is_present(reading.defaults, path) and same_json(find(reading.defaults, path), seen):
        return f"{path[-1]} is the class default {seen}"
    return f"{path[-1]} is {seen}, from elsewhere in the file"
