"""Shapes: what the tensors are, held against what the config says they are."""

import re
from collections.abc import Iterable, Iterator

from draftproof.checkpoint.derive import derive_facts
from draftproof.checkpoint.expected import expected_tensors
from draftproof.checkpoint.geometry import Disagreement, compare_facts
from draftproof.checkpoint.ledger import Checkpoint
from draftproof.checkpoint.match import match_tensors
from draftproof.checkpoint.mismatch import match_defects
from draftproof.checkpoint.shard import ArtefactDefect, listed
from draftproof.config.drafter import DrafterConfig
from draftproof.config.facts import as_facts
from draftproof.config.parse import Parsed
from draftproof.config.raw import RawConfig
from draftproof.config.source import Written
from draftproof.config.target import TargetConfig
from draftproof.findings.catalogue import found
from draftproof.findings.evidence import Evidence, Lacking
from draftproof.findings.finding import Finding, NotLooked
from draftproof.findings.place import Place, at_pointer, at_tensor
from draftproof.findings.rule import Answers, Rule

__all__ = ["RULES"]

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")
_TAPS = ("num_taps", "num_taps x target_hidden_size")
_MOST = 4096
"""Layers, or experts of a layer: a larger number is a fault of the file and no table is built for it."""

_ELSEWHERE = ("d2t", "lm_head.weight")
"""Parameters of a reduced vocabulary: the rule on vocabularies says more about them."""


def _ask_tensors(evidence: Evidence) -> Answers:
    """Every parameter filled, every tensor read, both at the config's shapes."""
    for given, weights, parsed, _ in _sides(evidence):
        config = parsed.config
        if isinstance(config, DrafterConfig | TargetConfig):
            _require_possible(config, given)
            table = expected_tensors(config)
            match = match_tensors(table, weights)
            is_drafter = isinstance(config, DrafterConfig)
            yield from _folded(
                d for d in match_defects(table, match, weights) if not _is_elsewhere(d, is_drafter)
            )
            for reason in match.not_judged:
                yield NotLooked("tensors against the config", f"{given}: {reason}")


def _require_possible(config: DrafterConfig | TargetConfig, given: str) -> None:
    """A table of a million layers is not worth building: the number is told as field-invalid."""
    numbers = {"num_hidden_layers": config.geometry.num_hidden_layers.value, "layers": len(config.layers)}
    if isinstance(config, TargetConfig):
        numbers["num_experts"] = config.experts.num_experts.value
        numbers["mtp layers"] = config.mtp.num_layers.value if config.mtp else None
    for name, number in numbers.items():
        if number is not None and number > _MOST:
            raise Lacking(f"{given}: {name} {number} is more than any model has")


def _is_elsewhere(defect: ArtefactDefect, is_drafter: bool) -> bool:  # noqa: FBT001 - a predicate's one word
    return is_drafter and defect.id == "tensor-unfilled" and defect.subject in _ELSEWHERE


def _folded(defects: Iterable[ArtefactDefect]) -> Iterator[Finding]:
    """One finding for layers that differ in their number only."""
    groups: dict[tuple[str, ...], list[ArtefactDefect]] = {}
    for defect in defects:
        alike = tuple(_NUMBER.sub("*", text) for text in (defect.subject, defect.expected, defect.found))
        groups.setdefault((defect.id, *alike), []).append(defect)
    for (kind, pattern, *_), group in groups.items():
        names = [defect.subject for defect in group]
        yield found(
            kind,
            pattern if len(group) > 1 else names[0],
            expected=group[0].expected,
            found=group[0].found,
            at=Place(group[0].where),
            detail=f"{len(names)} of them: {listed(names, 4)}" if len(names) > 1 else "",
        )


def _ask_geometry(evidence: Evidence) -> Answers:
    """Numbers that the shapes tell, against the numbers of the file."""
    for _, weights, parsed, raw in _sides(evidence):
        if isinstance(parsed.config, DrafterConfig | TargetConfig):
            for disagreement in compare_facts(derive_facts(weights), parsed.config):
                yield _disagreeing(disagreement, weights, parsed, raw)


def _disagreeing(said: Disagreement, weights: Checkpoint, parsed: Parsed, raw: RawConfig) -> Finding:
    pointer = _pointer(said, parsed)
    shard = weights.tensors[said.tensor].shard if said.tensor in weights.tensors else ""
    place = at_pointer(raw, pointer) if pointer else at_tensor(weights.root / shard, said.tensor)
    return found(
        "taps-width-conflict" if said.field in _TAPS else "shape-conflict",
        said.field,
        expected=f"{said.derived}, by {said.tensor}",
        found=said.configured,
        at=place,
        detail=said.rule,
    )


def _pointer(said: Disagreement, parsed: Parsed) -> str | None:
    """Where the file states the value that disagrees; None where it does not."""
    for name in said.entered:
        for fact in as_facts(parsed):
            is_it = (
                fact.name.startswith("taps.") if name == "taps" else fact.name.endswith(name.split(".")[-1])
            )
            if is_it and isinstance(fact.source, Written):
                return fact.source.pointer
    return None


def _sides(evidence: Evidence) -> Iterator[tuple[str, Checkpoint, Parsed, RawConfig]]:
    """The subject and the target, as far as both config and weights could be read."""
    subject = evidence.subject
    if not isinstance(subject.weights, Checkpoint):
        raise Lacking(subject.weights.reason)
    yield subject.given, subject.weights, evidence.parsed, evidence.raw
    target = evidence.target_model
    if (
        target
        and isinstance(target.weights, Checkpoint)
        and target.parsed
        and isinstance(target.raw, RawConfig)
    ):
        yield target.given, target.weights, target.parsed, target.raw


RULES = (
    Rule("tensors against the config", (), _ask_tensors),
    Rule("shapes against the config", ("taps-width-conflict", "shape-conflict"), _ask_geometry),
)
