"""A match in words: one defect for each fault, names that differ only in a layer number told together."""

import re
from collections import defaultdict
from collections.abc import Sequence

from draftproof.checkpoint.expected.match import Match, Quantised
from draftproof.checkpoint.expected.table import Dim, ExpectedTable, ExpectedTensor
from draftproof.checkpoint.files.dtypes import FLOATS, WHOLE
from draftproof.checkpoint.files.shard import ArtefactDefect, listed
from draftproof.checkpoint.geometry import Disagreement, explains
from draftproof.checkpoint.ledger import Checkpoint

__all__ = ["match_defects"]

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")
_LAYER = re.compile(r"(^|\.)layers\.\d+\.|^midlayer\.")


def match_defects(
    table: ExpectedTable,
    match: Match,
    checkpoint: Checkpoint,
    told: Sequence[Disagreement] = (),
) -> tuple[ArtefactDefect, ...]:
    """Every disagreement between the table and the checkpoint as a named defect.

    Args:
        table: what the architecture reads.
        match: the table held against ``checkpoint``.
        checkpoint: the ledger.
        told: fields told elsewhere; a tensor misshapen by one of them alone is not told again.
    """
    root = str(checkpoint.root)
    if table.unknown is not None:
        return ()
    if not checkpoint.tensors and checkpoint.defects:
        return ()  # an index or a shard that could not be read, or held nothing, is told: not a foreign model
    is_whole = table.partial is None
    if is_whole and not match.filled and not match.quantised and match.unfilled and not checkpoint.unread:
        return (_foreign(table, checkpoint),)
    defects = [] if match.prefix is None else [_prefix(match, match.prefix, root)]
    defects += _unfilled(table, match.unfilled, root)
    for expected, tensor in match.misshapen:
        if any(explains(d, expected.shape or (), tensor.shape) for d in told):
            continue
        where = f"{checkpoint.root / tensor.shard} tensor {tensor.name}"
        found = _shape(tensor.shape)
        defects.append(
            ArtefactDefect("tensor-misshapen", expected.name, _shape(expected.shape or ()), found, where)
        )
    defects += _not_float(match, checkpoint)
    for pattern, names in _folded([t.name for t in match.unread]):
        found = listed(names, 4)
        expected_text = f"a parameter of {table.family} that reads it"
        defects.append(ArtefactDefect("tensor-unread", pattern, expected_text, found, root))
    return (*defects, *_quantised(table, match.quantised, root))


def _not_float(match: Match, checkpoint: Checkpoint) -> list[ArtefactDefect]:
    """Weights without a fraction and with nothing beside them that could hold their scale."""
    filling = {t.name for t in match.filled.values()}
    beside = {name.rpartition(".")[0] for name in checkpoint.tensors if name not in filling}
    defects = []
    for name, tensor in match.filled.items():
        has_company = tensor.name in beside or tensor.name.rpartition(".")[0] in beside
        if name.endswith((".weight", ".bias")) and tensor.dtype in WHOLE and not has_company:
            where = f"{checkpoint.root / tensor.shard} tensor {tensor.name}"
            expected = f"one of {', '.join(sorted(FLOATS))}, or scales beside it"
            defects.append(ArtefactDefect("tensor-not-float", name, expected, tensor.dtype, where))
    return defects


def _foreign(table: ExpectedTable, checkpoint: Checkpoint) -> ArtefactDefect:
    expected = f"tensors of {table.family}: {listed([e.name for e in table.entries if e.required], 4)}"
    found = f"{len(checkpoint.tensors)} tensors, none of them: {listed(list(checkpoint.tensors), 4)}"
    return ArtefactDefect("tensor-names-foreign", table.family, expected, found, str(checkpoint.root))


def _prefix(match: Match, prefix: str, root: str) -> ArtefactDefect:
    names = [t.name for t in match.filled.values()]
    found = f"{len(names)} names under {prefix!r}: {listed(names, 3)}"
    return ArtefactDefect("tensor-prefix-unknown", prefix, "a prefix that engines strip", found, root)


def _unfilled(table: ExpectedTable, unfilled: Sequence[ExpectedTensor], root: str) -> list[ArtefactDefect]:
    """A part that is missing whole is one defect; other parameters are told by name."""
    required: dict[str, int] = defaultdict(int)
    for entry in table.entries:
        required[entry.part] += entry.required
    parts: dict[str, list[ExpectedTensor]] = defaultdict(list)
    for entry in unfilled:
        parts[entry.part].append(entry)
    defects, loose = [], []
    for part, entries in parts.items():
        if len(entries) > 1 and len(entries) >= required[part]:
            found = f"0 of its {required[part]} tensors"
            expected = listed([e.name for e in entries], 4)
            kind = "mtp-missing" if part == "mtp" else "tensor-unfilled"
            defects.append(ArtefactDefect(kind, f"{part}.*", expected, found, root))
        else:
            loose += entries
    by_name = {e.name: e for e in loose}
    for pattern, names in _folded(list(by_name)):
        first = by_name[names[0]]
        expected = f"{_shape(first.shape or ())} ({first.why})"
        found = "no tensor" if len(names) == 1 else f"no tensor for {listed(names, 4)}"
        defects.append(ArtefactDefect("tensor-unfilled", pattern, expected, found, root))
    return defects


def _quantised(table: ExpectedTable, quantised: Sequence[Quantised], root: str) -> list[ArtefactDefect]:
    """What a quantiser left of parameters that engines keep plain, and how many it took inside the layers.

    A target's linear layers are quantised by rule, and its loader knows: nothing is said of them.
    """
    if not table.is_drafter:
        return []
    sourceless = [q for q in quantised if not q.has_source]
    inside = [q.parameter.name for q in sourceless if _LAYER.search(q.parameter.name)]
    defects = [
        ArtefactDefect(
            "tensor-quantised-leftover",
            q.parameter.name,
            f"{q.parameter.name} {_shape(q.parameter.shape or ())}",
            listed([t.name for t in q.tensors]) + " in its place",
            root,
        )
        for q in sourceless
        if q.parameter.name not in inside
    ]
    for pattern, names in _folded(inside):
        found = f"quantised: {listed(names, 3)}"
        defects.append(ArtefactDefect("layer-quantised", pattern, "a plain tensor", found, root))
    return defects


def _folded(names: list[str]) -> list[tuple[str, list[str]]]:
    """Names that differ only in numbers, under one pattern with ``*``; a lone name keeps its own."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[_NUMBER.sub("*", name)].append(name)
    return [(pattern if len(group) > 1 else group[0], group) for pattern, group in groups.items()]


def _shape(shape: Sequence[Dim]) -> str:
    return "[" + ", ".join("?" if d is None else str(d) for d in shape) + "]"
