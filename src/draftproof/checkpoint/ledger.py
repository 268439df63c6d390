"""The tensor ledger: every tensor of a directory, where it stands, what is odd about it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from draftproof.checkpoint.files.completeness import check_names, check_tensors
from draftproof.checkpoint.files.header import HeaderRead, read_header
from draftproof.checkpoint.files.index import Index, read_index
from draftproof.checkpoint.files.members import (
    Member,
    MemberKind,
    is_in_hub_cache,
    open_member,
    read_members,
    read_root,
)
from draftproof.checkpoint.files.shard import ArtefactDefect, Shard, TensorEntry, listed
from draftproof.errors import CouldNotLook

__all__ = ["ArtefactDefect", "Checkpoint", "NoWeights", "Shard", "TensorEntry", "read_checkpoint"]

_SHARD_SUFFIX = ".safetensors"
_OTHER_SUFFIXES = (
    *(".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".gguf", ".ggml", ".h5", ".msgpack"),
    *(".onnx", ".npz", ".npy", ".tflite", ".mlmodel", ".zip", ".tar", ".gz", ".py", ".so", ".incomplete"),
)
"""Files that hold, or could hold, weights or code; a loader that opens some of them runs what they say."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything the files of a directory say about its weights."""

    root: Path
    shards: tuple[Shard, ...]
    index_name: str | None
    """``model.safetensors.index.json`` where there is one."""

    tensors: Mapping[str, TensorEntry]
    """By name. Of a name in two shards (a defect) the one the index means is kept, else the first."""

    defects: tuple[ArtefactDefect, ...]
    others: tuple[str, ...]
    """Weight-like files that are not safetensors (pickle, GGUF, side files): never opened, always named."""

    weight_map: Mapping[str, str] = field(default_factory=dict)
    """The index's promise, tensor name -> shard name; empty without a readable index."""

    unread: tuple[str, ...] = ()
    """Shards, by name, of which no header could be read or that are missing: what they hold is not known."""


@dataclass(frozen=True, slots=True)
class NoWeights:
    """There is no safetensors file to look at. Never to be read as "fine"."""

    reason: str
    others: tuple[str, ...] = ()
    """Weight-like files of other kinds, named and not opened."""


def read_checkpoint(root: Path) -> Checkpoint | NoWeights:
    """Read the headers of every safetensors file in ``root`` and hold them against the index.

    Args:
        root: a directory, its ``config.json``, or one safetensors file.

    Raises:
        CouldNotLook: there is no such path, or the directory cannot be listed.
    """
    # os.path: unlike pathlib it answers False where it may not look, and read_root says why.
    is_directory, is_file = os.path.isdir(root), os.path.isfile(root)  # noqa: PTH112, PTH113
    single = root.name if root.name.endswith(_SHARD_SUFFIX) and not is_directory else None
    if single is None and is_file and root.name != "config.json":
        return NoWeights(f"{root.name} is a single file: no weights are looked for beside it")
    is_inside = os.path.lexists(root) and (single is not None or is_file)
    real = read_root(root.parent if is_inside else root)
    members = tuple(m for m in read_members(real) if single is None or m.name == single)
    shards = [m for m in members if m.name.endswith(_SHARD_SUFFIX) and m.kind is not MemberKind.DIRECTORY]
    others = tuple(m.name for m in members if m.name.lower().endswith(_OTHER_SUFFIXES))
    index = read_index(members)
    if not shards and index is None:
        besides = f"; not opened: {listed(list(others))}" if others else ""
        return NoWeights(f"no *.safetensors file in {root}{besides}", others)
    return _assemble(real, shards, index, others)


def _assemble(root: Path, members: list[Member], index: Index | None, others: tuple[str, ...]) -> Checkpoint:
    reads = [(m, _read_shard(m)) for m in members]
    shards = tuple(read.shard for _, read in reads if read.shard is not None)
    unread = [m.name for m, read in reads if read.shard is None]
    present = [m.name for m in members]
    weight_map = index.weight_map if index is not None and index.weight_map is not None else {}
    defects = [d for _, read in reads for d in read.defects]
    defects += index.defects if index is not None else ()
    defects += check_names(root, present, index)
    defects += check_tensors(root, shards, unread, present, index)
    missing = [d.subject for d in defects if d.id == "shard-missing"]
    name = None if index is None else index.name
    tensors = _by_name(shards, weight_map)
    gone = tuple(dict.fromkeys([*unread, *missing]))
    return Checkpoint(root, shards, name, tensors, tuple(defects), others, weight_map, gone)


def _read_shard(member: Member) -> HeaderRead:
    where = str(member.path)
    if member.kind is MemberKind.OUTSIDE:
        expected = "a file of this directory or of a Hugging Face cache"
        found = f"a link to {member.path}, not followed"
        outside = ArtefactDefect("shard-link-outside", member.name, expected, found, str(member.links[0]))
        return HeaderRead(None, (outside,))
    if member.kind is MemberKind.DANGLING and is_in_hub_cache(member.path):
        return HeaderRead(None, ())  # told by hub.read_hub, with every other file of the snapshot
    if member.kind is MemberKind.DANGLING:
        found = f"a link to {member.path}, where nothing is"
        dangling = ArtefactDefect("shard-link-dangling", member.name, "a file", found, str(member.links[0]))
        return HeaderRead(None, (dangling,))
    if member.kind is MemberKind.SPECIAL:
        special = ArtefactDefect(
            "shard-not-regular", member.name, "a regular file", "a FIFO, socket or device, not opened", where
        )
        return HeaderRead(None, (special,))
    try:
        descriptor = open_member(member)
    except CouldNotLook as error:
        unreadable = ArtefactDefect("shard-unreadable", member.name, error.expected, error.found, where)
        return HeaderRead(None, (unreadable,))
    try:
        return read_header(descriptor, member.name, member.path)
    finally:
        os.close(descriptor)


def _by_name(shards: tuple[Shard, ...], weight_map: Mapping[str, str]) -> dict[str, TensorEntry]:
    tensors: dict[str, TensorEntry] = {}
    for shard in shards:
        for tensor in shard.tensors:
            if tensor.name not in tensors or weight_map.get(tensor.name) == shard.name:
                tensors[tensor.name] = tensor
    return tensors
