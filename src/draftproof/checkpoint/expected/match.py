"""The expected table held against the ledger, both ways.

What nobody reads, what nothing fills, what has another shape, what a quantiser left in a parameter's place,
and a prefix that hides all names.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from draftproof.checkpoint.expected.quantised import base_parameter, is_payload
from draftproof.checkpoint.expected.table import ExpectedTable, ExpectedTensor
from draftproof.checkpoint.files.dtypes import FLOATS
from draftproof.checkpoint.files.shard import TensorEntry
from draftproof.checkpoint.ledger import Checkpoint

__all__ = ["Match", "Quantised", "match_tensors"]

_ANCHORS = 64
"""Expected names tried when an unknown prefix is looked for."""

_EXPLAINED = 0.8
"""Share of them that one prefix must explain; a few names may differ for other reasons."""


@dataclass(frozen=True, slots=True)
class Quantised:
    """A parameter and the tensors that a quantiser wrote for it."""

    parameter: ExpectedTensor
    tensors: tuple[TensorEntry, ...]
    has_source: bool
    """Whether the parameter itself is there too, so that the others are only its scales."""


@dataclass(frozen=True, slots=True)
class Match:
    """Both directions."""

    filled: Mapping[str, TensorEntry]
    """Expected name -> the tensor that fills it, whatever its spelling."""

    unread: tuple[TensorEntry, ...]
    """Tensors that no parameter reads."""

    unfilled: tuple[ExpectedTensor, ...]
    """Required parameters that no tensor fills, a quantiser's neither."""

    misshapen: tuple[tuple[ExpectedTensor, TensorEntry], ...]
    quantised: tuple[Quantised, ...]
    prefix: str | None
    """A prefix that no engine strips and that all names carry; the names above are judged without it."""

    not_judged: tuple[str, ...]
    """What could not be held against the table, and why."""


def match_tensors(table: ExpectedTable, checkpoint: Checkpoint) -> Match:
    """Hold the checkpoint's tensors against the table."""
    if table.unknown is not None:
        return Match({}, (), (), (), (), None, (table.unknown,))
    tensors = dict(checkpoint.tensors)
    filled = _fill(table.entries, tensors)
    prefix = None
    if 2 * sum(e.required and e.name in filled for e in table.entries) < sum(
        e.required for e in table.entries
    ):
        prefix = _unknown_prefix(table.entries, tensors)
    if prefix is not None:
        tensors = {n.removeprefix(prefix): t for n, t in tensors.items()}
        filled = _fill(table.entries, tensors)
    quantised = _quantised(table.entries, filled, tensors)
    unfilled, not_judged = _unfilled(table, checkpoint, filled, quantised)
    if table.partial is not None:
        not_judged.append(f"tensors outside the table: {table.partial}")
    scaled = {q.parameter.name for q in quantised}
    misshapen = [(e, t) for e in table.entries if (t := filled.get(e.name)) and not _fits(e, t, scaled)]
    unread = _unread(table, filled, quantised, tensors)
    return Match(filled, unread, unfilled, tuple(misshapen), quantised, prefix, tuple(not_judged))


def _spellings(entry: ExpectedTensor) -> tuple[str, ...]:
    return (entry.name, *entry.alternatives)


def _fill(entries: Sequence[ExpectedTensor], tensors: Mapping[str, TensorEntry]) -> dict[str, TensorEntry]:
    found = ((e.name, next((n for n in _spellings(e) if n in tensors), None)) for e in entries)
    return {name: tensors[spelt] for name, spelt in found if spelt is not None}


def _quantised(
    entries: Sequence[ExpectedTensor], filled: Mapping[str, TensorEntry], tensors: Mapping[str, TensorEntry]
) -> tuple[Quantised, ...]:
    known = {n for e in entries for n in _spellings(e)}
    groups: dict[str, list[TensorEntry]] = defaultdict(list)
    for name, tensor in tensors.items():
        base = base_parameter(name)
        if base is not None and name not in known:
            groups[base].append(tensor)
    if not groups:
        return ()
    found = ((e, next((n for n in _spellings(e) if n in groups), None)) for e in entries)
    return tuple(Quantised(e, tuple(groups[n]), e.name in filled) for e, n in found if n is not None)


def _unfilled(
    table: ExpectedTable,
    checkpoint: Checkpoint,
    filled: Mapping[str, TensorEntry],
    quantised: Sequence[Quantised],
) -> tuple[tuple[ExpectedTensor, ...], list[str]]:
    """Required parameters that nothing fills; those an unreadable shard may hold are told apart."""
    given = {*filled, *(q.parameter.name for q in quantised if any(is_payload(t.name) for t in q.tensors))}
    given |= {name for e in table.entries if e.name in given for name in e.stands_for}
    missing = [e for e in table.entries if e.required and e.name not in given]
    lost = set(checkpoint.unread)
    if not lost or not missing:
        return tuple(missing), []
    if not checkpoint.weight_map:
        reason = (
            f"{len(missing)} parameters: they may be in {', '.join(sorted(lost))}, which could not be read"
        )
        return (), [reason]
    weight_map = checkpoint.weight_map
    sure = [e for e in missing if not any(n in weight_map and weight_map[n] in lost for n in _spellings(e))]
    reason = f"{len(missing) - len(sure)} parameters that the index puts in {', '.join(sorted(lost))}"
    return tuple(sure), [reason] if len(sure) < len(missing) else []


def _unread(
    table: ExpectedTable,
    filled: Mapping[str, TensorEntry],
    quantised: Sequence[Quantised],
    tensors: Mapping[str, TensorEntry],
) -> tuple[TensorEntry, ...]:
    if table.partial is not None:
        return ()
    read = {t.name for t in filled.values()} | {t.name for q in quantised for t in q.tensors}
    ignored = tuple(prefix for prefix, _ in table.ignored)
    return tuple(t for n, t in tensors.items() if t.name not in read and not n.startswith(ignored))


def _fits(entry: ExpectedTensor, tensor: TensorEntry, scaled: set[str]) -> bool:
    """Whether the shape is the expected one; a packed tensor with scales beside it has a width of its own."""
    if entry.shape is None or (entry.name in scaled and tensor.dtype not in FLOATS):
        return True
    same = (want is None or want == have for want, have in zip(entry.shape, tensor.shape, strict=False))
    return len(entry.shape) == len(tensor.shape) and all(same)


def _unknown_prefix(entries: Sequence[ExpectedTensor], tensors: Mapping[str, TensorEntry]) -> str | None:
    """The prefix under which most expected names are found, if there is one."""
    required = [e for e in entries if e.required]
    step = max(1, len(required) // _ANCHORS)
    anchors = {min(_spellings(e), key=len) for e in required[::step]}
    prefixes: Counter[str] = Counter()
    for name in tensors:
        words = name.split(".")
        for i in range(1, len(words)):
            if ".".join(words[i:]) in anchors:
                prefixes[".".join(words[:i]) + "."] += 1
    if not prefixes:
        return None
    prefix, count = prefixes.most_common(1)[0]
    return prefix if count >= _EXPLAINED * len(anchors) else None
