"""Shapes: what the tensors are, held against what the config says they are."""

import re
from collections.abc import Iterable, Iterator, Sequence

from draftproof.checkpoint.derive import Fact, derive_facts
from draftproof.checkpoint.expected.match import match_tensors
from draftproof.checkpoint.expected.mismatch import match_defects
from draftproof.checkpoint.expected.tables import expected_tensors
from draftproof.checkpoint.files.shard import ArtefactDefect, listed
from draftproof.checkpoint.geometry import Disagreement, compare_facts
from draftproof.checkpoint.ledger import Checkpoint
from draftproof.config.drafter import DrafterConfig
from draftproof.config.facts import as_facts
from draftproof.config.parse import Parsed
from draftproof.config.raw import RawConfig
from draftproof.config.source import Written
from draftproof.config.target import TargetConfig
from draftproof.findings.catalogue import found
from draftproof.findings.evidence import Evidence, Lacking
from draftproof.findings.fields import layer_base, says, value_at
from draftproof.findings.finding import Finding, NotLooked
from draftproof.findings.place import Place, at_pointer, at_tensor
from draftproof.findings.rule import Answers, Rule

__all__ = ["RULES"]

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")
_TAPS = ("num_taps", "num_taps x target_hidden_size")
_MOST = 4096
"""Layers, or experts of a layer: a larger number is a fault of the file and no table is built for it."""

_ZERO = re.compile(r"[\[ ]0[,\]]")
_LAYER = re.compile(r"(?:model\.)?layers\.(\d+|\*)\.")
_FLAGS = (
    ("attention_bias", "_proj.bias "),
    ("norm_before_fc", "input_norm.weight "),
    ("fc_norm", "fc_norm."),
)
"""A flag of the config -> how the tensors end that it brings."""

_TOP = ("draft_vocab_size", "norm_before_fc", "fc_norm")
"""Fields that stand at the top of a drafter's file in every dialect."""

_ELSEWHERE = ("d2t", "lm_head.weight")
"""Parameters of a reduced vocabulary: the rule on vocabularies says more about them."""


def _ask_tensors(evidence: Evidence) -> Answers:
    """Every parameter filled, every tensor read, both at the config's shapes."""
    for given, weights, parsed, raw in _sides(evidence):
        config = parsed.config
        if isinstance(config, DrafterConfig | TargetConfig):
            _require_possible(config, given, raw)
            table = expected_tensors(config)
            match = match_tensors(table, weights)
            told = compare_facts(derive_facts(weights), config)
            defects = match_defects(table, match, weights, told)
            yield from _folded(
                d for d in defects if d.id != "tensor-unread" and not _is_elsewhere(d, config, told)
            )
            unread = [d for d in defects if d.id == "tensor-unread" and not _is_elsewhere(d, config, told)]
            yield from _unread(unread, weights)
            for reason in match.not_judged:
                yield NotLooked("tensors against the config", f"{given}: {reason}")


def _require_possible(config: DrafterConfig | TargetConfig, given: str, raw: RawConfig) -> None:
    """A table of a million layers, or of class defaults alone, is not worth building: the field is told."""
    if isinstance(config, DrafterConfig) and layer_base(config) and not says(raw, layer_base(config)):
        raise Lacking(f"{given}: {layer_base(config)} is absent, so no shape is known")
    numbers = {"num_hidden_layers": config.geometry.num_hidden_layers.value, "layers": len(config.layers)}
    if isinstance(config, TargetConfig):
        numbers["num_experts"] = config.experts.num_experts.value
        numbers["mtp layers"] = config.mtp.num_layers.value if config.mtp else None
    for name, number in numbers.items():
        if number is not None and number > _MOST:
            raise Lacking(f"{given}: {name} {number} is more than any model has")


def _is_elsewhere(
    defect: ArtefactDefect, config: DrafterConfig | TargetConfig, told: Sequence[Disagreement]
) -> bool:
    """Whether a field that disagrees, or another rule, says the same and more."""
    if isinstance(config, DrafterConfig) and defect.id == "tensor-unfilled" and defect.subject in _ELSEWHERE:
        return True
    if defect.id == "tensor-misshapen":
        # Sides of 0 come from a number told as invalid, or from an empty list of taps.
        return bool(_ZERO.search(defect.expected))
    if defect.id not in ("tensor-unfilled", "tensor-unread"):
        return False
    return any(_follows(defect, said, config) for said in told)


def _follows(defect: ArtefactDefect, said: Disagreement, config: DrafterConfig | TargetConfig) -> bool:
    """Whether a missing or an extra tensor is what this disagreement is about."""
    for field, ending in _FLAGS:
        if said.field == field and ending in f"{defect.subject} ":
            return True
    if said.field == "target_hidden_size":
        return defect.subject == "embed_tokens.weight"
    layer = _LAYER.match(defect.subject)
    if said.field != "num_hidden_layers" or layer is None or not isinstance(said.derived, int):
        return False
    # The number is the fault where the list of layer types, or the tensors beyond it, say so.
    is_beyond = layer[1] == "*" or int(layer[1]) >= min(said.derived, int(said.configured))
    return is_beyond and (defect.id == "tensor-unread" or _types_of(config) == said.derived)


def _types_of(config: DrafterConfig | TargetConfig) -> int | None:
    """Entries of the list of layer types, where the file has one."""
    return len(config.layers) if isinstance(config.layers_source, Written) else None


def _unread(defects: Sequence[ArtefactDefect], weights: Checkpoint) -> Iterator[Finding]:
    """A subtree of which nothing is read is one finding, whatever its size."""
    groups: dict[str, list[ArtefactDefect]] = {}
    for defect in defects:
        root = _root(defect.subject)
        whole = root if root and _all_unread(root, defects, weights) else defect.subject
        groups.setdefault(whole, []).append(defect)
    for root, group in groups.items():
        if len(group) == 1:
            yield from _folded(group)
            continue
        names = [defect.subject for defect in group]
        yield found(
            "tensor-unread",
            f"{root}*",
            expected=group[0].expected,
            found=f"{len(names)} kinds of tensor: {listed(names, 4)}",
            at=Place(group[0].where),
        )


def _root(name: str) -> str:
    """The subtree a tensor belongs to: its layer, or its first word."""
    layer = _LAYER.match(name)
    if layer is not None:
        return layer[0]
    first, dot, _ = name.removeprefix("model.").partition(".")
    return f"{first}." if dot else ""


def _all_unread(root: str, defects: Sequence[ArtefactDefect], weights: Checkpoint) -> bool:
    """Whether every tensor below ``root`` is among the unread ones."""
    patterns = {defect.subject for defect in defects}
    below = [name for name in weights.tensors if name.startswith((root, f"model.{root}"))]
    return all(name in patterns or _NUMBER.sub("*", name) in patterns for name in below)


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
    for given, weights, parsed, raw in _sides(evidence):
        if isinstance(parsed.config, DrafterConfig | TargetConfig):
            _require_possible(parsed.config, given, raw)
            facts = derive_facts(weights)
            told = compare_facts(facts, parsed.config)
            for disagreement in told:
                if not _says_nested(raw, disagreement) and not _is_repeated(
                    disagreement, told, parsed.config
                ):
                    yield _disagreeing(disagreement, weights, parsed, raw)
            if isinstance(parsed.config, DrafterConfig):
                yield from _ask_silent(facts, parsed.config, raw)


def _says_nested(raw: RawConfig, said: Disagreement) -> bool:
    """NVIDIA's heads put their flags into eagle_config: which engine reads them there is told elsewhere."""
    pointer = f"/eagle_config/{said.field}"
    return says(raw, pointer) and value_at(raw, pointer) == said.derived


def _is_repeated(
    said: Disagreement, told: Sequence[Disagreement], config: DrafterConfig | TargetConfig
) -> bool:
    """A number below 1 is told as invalid; a width taken from another field is told with that field."""
    if type(said.configured) is int and said.configured < 1:
        return True
    if said.field == "num_hidden_layers" and isinstance(said.derived, int):
        # Fewer layers on disk than both the number and the list of layer types say: told as missing tensors.
        return said.derived < int(said.configured) and _types_of(config) in (None, said.configured)
    is_derived = isinstance(config, DrafterConfig) and not config.target_hidden_size.is_written
    return said.field == "target_hidden_size" and is_derived and any(d.field == "hidden_size" for d in told)


def _ask_silent(facts: Sequence[Fact], config: DrafterConfig, raw: RawConfig) -> Iterator[Finding]:
    """Truths of the weights on which the file is silent, so that readers take their default against them."""
    known = {fact.field: fact for fact in facts}
    for field, pointer, value, usual in (
        (
            "attention_bias",
            f"{layer_base(config)}/attention_bias",
            config.geometry.attention_bias.value,
            False,
        ),
        ("draft_vocab_size", "/draft_vocab_size", config.draft_vocab_size.value, config.vocab_size.value),
    ):
        if field in known and value is None and known[field].value != usual:
            yield _silent(pointer, known[field], raw)


def _silent(pointer: str, fact: Fact, raw: RawConfig) -> Finding:
    return found(
        "shape-conflict",
        pointer.rpartition("/")[2],
        expected=f"{fact.value}, by {fact.tensor}",
        found="absent" if not says(raw, pointer) else None,
        at=at_pointer(raw, pointer),
        detail=fact.rule,
    )


def _disagreeing(said: Disagreement, weights: Checkpoint, parsed: Parsed, raw: RawConfig) -> Finding:
    pointer = _pointer(said, parsed) or _home(said, parsed)
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
    # Where fc is as wide as another target, no list of taps is the field to mend.
    names = [n for n in said.entered if said.field != "target_hidden_size" or n != "taps"]
    for name in names:
        for fact in as_facts(parsed):
            is_it = (
                fact.name.startswith("taps.") if name == "taps" else fact.name.endswith(name.split(".")[-1])
            )
            if is_it and isinstance(fact.source, Written):
                return fact.source.pointer
    return None


def _home(said: Disagreement, parsed: Parsed) -> str | None:
    """Where a field would stand that the file leaves to its reader's default; None where that is unclear."""
    config = parsed.config
    if not isinstance(config, DrafterConfig) or said.field not in _TOP:
        return None
    return f"/{said.field}"


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
    Rule(
        "tensors against the config",
        (),
        _ask_tensors,
    ),
    Rule("shapes against the config", ("taps-width-conflict", "shape-conflict"), _ask_geometry),
)
