"""``model.safetensors.index.json``: read strictly, as the map from tensor to shard.

What it promises is held against the shards in ``completeness``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from draftproof.checkpoint.files.members import Member, MemberKind
from draftproof.checkpoint.files.shard import ArtefactDefect, listed
from draftproof.config.raw import JsonValue, RefusedConfig, read_raw
from draftproof.errors import CouldNotLook

__all__ = ["INDEX_SUFFIX", "Index", "read_index"]

INDEX_SUFFIX = ".safetensors.index.json"
_USUAL = "model" + INDEX_SUFFIX


@dataclass(frozen=True, slots=True)
class Index:
    """The index of a directory, as far as it could be read."""

    name: str
    weight_map: Mapping[str, str] | None
    """Tensor name -> shard name, only plain file names; None where the file is refused."""

    total_size: int | None
    """``metadata.total_size``; None where it is absent or not a number of bytes."""

    defects: tuple[ArtefactDefect, ...]


def read_index(members: tuple[Member, ...]) -> Index | None:
    """The index among the files of a directory; None where there is none.

    One that cannot be opened is refused like one that cannot be parsed: the shards are looked at either way.
    """
    found = [m for m in members if m.name.endswith(INDEX_SUFFIX) and m.kind is not MemberKind.DIRECTORY]
    if not found:
        return None
    chosen = next((m for m in found if m.name == _USUAL), found[0])
    defects: list[ArtefactDefect] = []
    if len(found) > 1:
        names = listed([m.name for m in found])
        defects.append(ArtefactDefect("index-several", chosen.name, "one index", names, str(chosen.path)))
    if chosen.kind is not MemberKind.FILE:
        what = "link" if chosen.links else "file"
        defects.append(_refused(chosen, f"{chosen.path}, {chosen.kind.value}, behind this {what}"))
        return Index(chosen.name, None, None, tuple(defects))
    try:
        raw = read_raw(chosen.path)
    except RefusedConfig as error:
        defects.append(_refused(chosen, ", ".join(f"{d.id} ({d.found})" for d in error.defects)))
        return Index(chosen.name, None, None, tuple(defects))
    except CouldNotLook as error:
        defects.append(_refused(chosen, error.found))
        return Index(chosen.name, None, None, tuple(defects))
    return _parse(chosen, raw.value, defects)


def _parse(member: Member, value: dict[str, JsonValue], defects: list[ArtefactDefect]) -> Index:
    mapped = value.get("weight_map")
    if not isinstance(mapped, dict):
        found = "none" if mapped is None else f"a {type(mapped).__name__}"
        where = f"{member.path}#/weight_map"
        expected = "an object from tensor name to file name"
        defects.append(ArtefactDefect("index-malformed", member.name, expected, found, where))
        return Index(member.name, None, None, tuple(defects))
    weight_map = {n: file for n, file in mapped.items() if isinstance(file, str) and _is_plain(file)}
    bad = {n: file for n, file in mapped.items() if n not in weight_map}
    for file in dict.fromkeys(f for f in bad.values() if isinstance(f, str)):
        names = [n for n, f in bad.items() if f == file]
        where = f"{member.path}#/weight_map"
        found = f"{file!r} for {listed(names)}"
        expected = "a plain file name of this directory"
        defects.append(ArtefactDefect("index-path-escape", file, expected, found, where))
    if odd := [n for n, f in bad.items() if not isinstance(f, str)]:
        where = f"{member.path}#/weight_map"
        defects.append(ArtefactDefect("index-malformed", odd[0], "a file name", listed(odd), where))
    return Index(member.name, weight_map, _total(member, value, defects), tuple(defects))


def _total(member: Member, value: dict[str, JsonValue], defects: list[ArtefactDefect]) -> int | None:
    metadata = value.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    if isinstance(total, float) and total.is_integer() and total >= 0:
        return int(total)  # some exporters write 5.4e10: the same number
    if total is None or (type(total) is int and total >= 0):
        return total
    where = f"{member.path}#/metadata/total_size"
    defects.append(ArtefactDefect("index-malformed", member.name, "a number of bytes", repr(total), where))
    return None


def _is_plain(file: str) -> bool:
    return (
        bool(file) and "/" not in file and "\\" not in file and "\0" not in file and file not in {".", ".."}
    )


def _refused(member: Member, found: str) -> ArtefactDefect:
    return ArtefactDefect("index-refused", member.name, "one strict JSON object", found, str(member.path))
