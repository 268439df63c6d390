"""Every tensor exactly once, every shard there, no shard too many: the index held against the headers."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from draftproof.checkpoint.files.index import Index
from draftproof.checkpoint.files.shard import ArtefactDefect, Shard, listed

__all__ = ["check_names", "check_tensors"]

_NUMBERED = re.compile(r"(?P<base>.+)-(?P<number>\d{5})-of-(?P<total>\d{5})\.safetensors")
"""Source: huggingface_hub ``split_state_dict_into_shards``: model-00001-of-00014.safetensors."""


@dataclass(frozen=True, slots=True)
class _Promise:
    """A readable index and where it stands."""

    root: Path
    index_name: str
    weight_map: Mapping[str, str]

    def at(self, pointer: str) -> str:
        """A place in the index."""
        return f"{self.root / self.index_name}#{pointer}"


def check_names(root: Path, names: Sequence[str], index: Index | None) -> list[ArtefactDefect]:
    """What the file names alone tell: several sets, members of a set missing, an index missing."""
    sets = _sets(names)
    mixed = _mixed_sets(names)
    defects = [
        ArtefactDefect("shard-sets-mixed", base, f"one set of {base} shards", ", ".join(files), str(root))
        for base, files in mixed.items()
    ]
    if index is not None:
        return defects
    for (base, total), numbers in sets.items():
        if base in mixed:
            continue  # which set is meant is not known, so neither is called incomplete
        for number in sorted(set(range(1, total + 1)) - numbers):
            file = f"{base}-{number:05d}-of-{total:05d}.safetensors"
            found = f"{len(numbers)} of {total} shards, this one absent"
            defects.append(ArtefactDefect("shard-missing", file, "a file", found, str(root / file)))
    if len(names) > 1:
        found = f"{len(names)} safetensors files and no index: {listed(list(names))}"
        expected = "model.safetensors.index.json"
        defects.append(ArtefactDefect("index-missing", expected, expected, found, str(root)))
    return defects


def check_tensors(
    root: Path, shards: Sequence[Shard], unread: Sequence[str], present: Sequence[str], index: Index | None
) -> list[ArtefactDefect]:
    """What names and headers tell together.

    Args:
        root: the checkpoint directory.
        shards: those whose header could be read.
        unread: shards that are there and could not be read: what they hold is not judged.
        present: every safetensors name in the directory.
        index: the index, if there is one.
    """
    named = (
        None if index is None or index.weight_map is None else _Promise(root, index.name, index.weight_map)
    )
    extra = set(present) - set(named.weight_map.values()) if named is not None else set()
    kept = [shard for shard in shards if shard.name not in extra]
    holders: dict[str, list[str]] = defaultdict(list)
    for shard in kept:
        for tensor in shard.tensors:
            holders[tensor.name].append(shard.name)
    defects = _duplicates(root, holders)
    if index is None or named is None:
        return defects
    defects += _missing_shards(named, present)
    defects += _misplaced(named, holders, set(present) - set(unread))
    defects += _unindexed(named, kept)
    if not defects and not unread and index.total_size is not None:
        defects += _total_size(named, index.total_size, kept)
    mixed = {file for files in _mixed_sets(present).values() for file in files}
    return defects + [_stray(root, file, shards, holders) for file in sorted(extra - mixed)]


def _sets(names: Sequence[str]) -> dict[tuple[str, int], set[int]]:
    sets: dict[tuple[str, int], set[int]] = defaultdict(set)
    for name in names:
        if match := _NUMBERED.fullmatch(name):
            sets[match["base"], int(match["total"])].add(int(match["number"]))
    return sets


def _mixed_sets(names: Sequence[str]) -> dict[str, list[str]]:
    """Base -> files, for each base with two numbered sets, or with a numbered set beside its single file."""
    sets = _sets(names)
    mixed = {}
    for base in dict.fromkeys(base for base, _ in sets):
        single = f"{base}.safetensors"
        if single in names or sum(b == base for b, _ in sets) > 1:
            mixed[base] = [n for n in names if n == single or _base(n) == base]
    return mixed


def _base(name: str) -> str | None:
    match = _NUMBERED.fullmatch(name)
    return match["base"] if match else None


def _duplicates(root: Path, holders: Mapping[str, list[str]]) -> list[ArtefactDefect]:
    return [
        ArtefactDefect("tensor-duplicate", name, "one shard", f"in {listed(files)}", f"{root} tensor {name}")
        for name, files in holders.items()
        if len(files) > 1
    ]


def _missing_shards(named: _Promise, present: Sequence[str]) -> list[ArtefactDefect]:
    by_file: dict[str, list[str]] = defaultdict(list)
    for tensor, file in named.weight_map.items():
        by_file[file].append(tensor)
    defects = []
    for file in sorted(by_file.keys() - set(present)):
        expected = f"a file with {len(by_file[file])} tensors: {listed(by_file[file])}"
        defects.append(ArtefactDefect("shard-missing", file, expected, "no file", str(named.root / file)))
    return defects


def _misplaced(named: _Promise, holders: Mapping[str, list[str]], read: set[str]) -> list[ArtefactDefect]:
    """Tensors that are not in the shard the index names, though that shard could be read."""
    defects = []
    for tensor, file in named.weight_map.items():
        if file in read and file not in holders.get(tensor, ()):
            kind = "tensor-misplaced" if tensor in holders else "tensor-missing"
            found = f"in {listed(holders[tensor])}" if tensor in holders else "in no shard"
            defects.append(
                ArtefactDefect(kind, tensor, f"a tensor of {file}", found, named.at(f"/weight_map/{tensor}"))
            )
    return defects


def _unindexed(named: _Promise, shards: Sequence[Shard]) -> list[ArtefactDefect]:
    expected = f"an entry of weight_map in {named.index_name}"
    return [
        ArtefactDefect(
            "tensor-unindexed", t.name, expected, f"a tensor of {t.shard} only", str(named.root / t.shard)
        )
        for shard in shards
        for t in shard.tensors
        if t.name not in named.weight_map
    ]


def _stray(
    root: Path, file: str, shards: Sequence[Shard], holders: Mapping[str, list[str]]
) -> ArtefactDefect:
    found = "a file of the loaders' glob *.safetensors that the index does not name"
    if names := [t.name for s in shards if s.name == file for t in s.tensors]:
        double = sum(n in holders for n in names)
        found += f"; {double} of its {len(names)} tensors also stand in indexed shards"
    return ArtefactDefect("shard-stray", file, "a name in weight_map", found, str(root / file))


def _total_size(named: _Promise, total: int, shards: Sequence[Shard]) -> list[ArtefactDefect]:
    summed = sum(t.end - t.begin for s in shards for t in s.tensors)
    if summed == total:
        return []
    expected = f"{summed}, the bytes of all tensors"
    found = f"{total}, {abs(total - summed)} bytes too {'many' if total > summed else 'few'}"
    where = named.at("/metadata/total_size")
    return [ArtefactDefect("total-size-mismatch", named.index_name, expected, found, where)]
