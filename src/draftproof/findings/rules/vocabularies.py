"""Reduced draft vocabularies: the map that leads back to the target's ids, and what it leaves out.

Source: SafeAILab/EAGLE cnets.py (d2t holds offsets); vLLM 0.33 llama_eagle3.py (a missing map is identity).
"""

from draftproof.checkpoint.ledger import Checkpoint
from draftproof.checkpoint.values.d2t import check_d2t
from draftproof.checkpoint.values.pages import scan_pages
from draftproof.checkpoint.values.read import read_values
from draftproof.config.drafter import DrafterConfig
from draftproof.config.source import Unknown
from draftproof.findings.catalogue import found
from draftproof.findings.evidence import Evidence, Lacking, NotApplicable
from draftproof.findings.families import BYTE_IDS, family_of
from draftproof.findings.finding import Finding, NotLooked
from draftproof.findings.place import Place, at_file, at_tensor
from draftproof.findings.rule import Answers, Rule

__all__ = ["RULES"]

_MAPS = ("d2t", "model.d2t")
_HEADS = ("lm_head.weight", "model.lm_head.weight")
_MISSING_BYTES = 64
"""A frequency map drops control bytes and bytes that no UTF-8 text has, about 45: a quarter is a loss."""


def _reduced(evidence: Evidence) -> tuple[DrafterConfig, int, int]:
    """The drafter with its draft and target vocabulary sizes."""
    drafter = evidence.drafter
    draft, rows = drafter.draft_vocab_size.value, _target_rows(evidence)
    if draft is None or rows is None:
        raise Lacking("the size of the draft vocabulary or of the target's is not known")
    return drafter, draft, rows


def _target_rows(evidence: Evidence) -> int | None:
    target = evidence.target_model.target if evidence.target_model else None
    known = target.vocab_size.value if target else None
    return known if known is not None else evidence.drafter.vocab_size.value


def _first(weights: Checkpoint, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in weights.tensors), None)


def _require_read(weights: Checkpoint) -> None:
    """A map in a hole of its file reads as zeros and says nothing: the hole is the finding."""
    name = _first(weights, _MAPS)
    if name is not None and name in scan_pages(weights).skipped:
        raise Lacking(f"{name} lies in a hole of {weights.tensors[name].shard}")


def _ask_complete(evidence: Evidence) -> Answers:
    """A reduced vocabulary needs its map and its head inside the checkpoint."""
    _, draft, rows = _reduced(evidence)
    if draft >= rows:
        raise NotApplicable
    weights = evidence.weights
    if weights.unread:
        raise Lacking(f"shards that could not be read: {', '.join(weights.unread)}")
    if _first(weights, _MAPS) is None:
        beside = ", ".join(weights.others)
        yield found(
            "draft-map-absent",
            "d2t",
            expected=f"[{draft}] offsets into {rows} ids",
            found=f"no d2t; files that could hold it: {beside}" if beside else "no d2t",
            at=at_file(weights.root),
            detail=f"side files ({beside}) are not read by the engine" if beside else "",
        )
    if _first(weights, _HEADS) is None:
        yield found(
            "head-missing",
            "lm_head.weight",
            expected=f"[{draft}, hidden_size]",
            found="no head",
            at=at_file(weights.root),
        )


def _ask_map(evidence: Evidence) -> Answers:
    """What the map says: offsets, in order, inside the target's vocabulary."""
    evidence.drafter  # noqa: B018 - raises NotApplicable where there is no drafter
    _require_read(evidence.values)
    defects, reasons = check_d2t(evidence.values, _target_rows(evidence))
    for defect in defects:
        yield found(
            defect.id,
            defect.subject,
            expected=defect.expected,
            found=defect.found,
            at=Place(defect.where),
        )
    for reason in reasons:
        yield NotLooked("map of the draft vocabulary", reason)


def _ask_bytes(evidence: Evidence) -> Answers:
    """The byte-level ids that the draft vocabulary keeps."""
    _, draft, rows = _reduced(evidence)
    weights = evidence.weights
    name = _first(weights, _MAPS)
    if name is None or draft >= rows or family_of(rows) is None:
        raise NotApplicable
    _require_read(evidence.values)
    offsets = read_values(weights, weights.tensors[name])
    if isinstance(offsets, Unknown):
        raise Lacking(offsets.reason)
    kept = {index + int(offset) for index, offset in enumerate(offsets)}
    missing = [token for token in BYTE_IDS if token not in kept]
    if len(missing) >= _MISSING_BYTES:
        yield _no_bytes(weights, name, missing)


def _no_bytes(weights: Checkpoint, name: str, missing: list[int]) -> Finding:
    return found(
        "draft-map-no-bytes",
        name,
        expected=f"ids {BYTE_IDS.start} to {BYTE_IDS.stop - 1}, the single bytes",
        found=f"{len(missing)} of {len(BYTE_IDS)} missing: {', '.join(map(str, missing[:8]))}, ...",
        at=at_tensor(weights.root / weights.tensors[name].shard, name),
    )


RULES = (
    Rule("map and head of a reduced vocabulary", ("draft-map-absent", "head-missing"), _ask_complete),
    Rule("map of the draft vocabulary", (), _ask_map),
    Rule("bytes in the draft vocabulary", ("draft-map-no-bytes",), _ask_bytes),
)
