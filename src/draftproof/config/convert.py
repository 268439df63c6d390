"""Native <-> speculators: the converted file is read back, and whatever it no longer says is a named loss.

The losses are not a list kept by hand: both files are brought into canonical form and compared, field by
field, so a field that a writer forgets shows up as lost.
"""

import json
from dataclasses import dataclass

from draftproof.config.dialects.attention import SLIDING
from draftproof.config.dialects.write_native import write_native
from draftproof.config.dialects.write_speculators import proposal_methods, write_mtp_head, write_speculators
from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.fact import Fact, Shape
from draftproof.config.facts import as_facts
from draftproof.config.json.pointer import resolve
from draftproof.config.json.shown import mask_secrets
from draftproof.config.parse import Parsed, parse_config
from draftproof.config.problem import ProblemKind
from draftproof.config.raw import JsonValue, RawConfig, parse_raw
from draftproof.config.source import Unknown, Written
from draftproof.config.target import MtpHead, TargetConfig
from draftproof.errors import RefusedInput

__all__ = ["FORMATS", "Conversion", "Loss", "convert"]

FORMATS = ("native", "speculators")
_CONVERTIBLE = (
    Method.DFLASH,
    Method.DFLASH2,
    Method.DSPARK,
    Method.DOMINO,
    Method.EAGLE3,
    Method.PEAGLE,
)
_LABELS = ("role", "format", "generation", "architecture", "sharing", "mtp")
"""What names the layout of the file or is decided by the tensors, not a field that could be lost."""

_MECHANISMS = (
    "is_causal",
    "causal",
    "use_swa",
    "swa_window_size",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "sliding_window_non_causal",
    "projector_type",
)
"""Fields whose whole meaning is in the canonical method and layers, which are compared."""

_NO_PROPOSAL = (
    "proposal_methods is empty, for the file does not say how many tokens are drafted; "
    "PyPI speculators 0.9.0 refuses that: add one with speculative_tokens"
)


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing the other format cannot say."""

    pointer: str
    """Where the original says it; the fact's name where the original only implies it."""

    value: JsonValue
    """A credential is not shown."""

    why: str


@dataclass(frozen=True, slots=True)
class Conversion:
    """A config in the other format."""

    source_format: str
    target_format: str
    config: dict[str, JsonValue]
    losses: tuple[Loss, ...]
    is_unchanged: bool
    """It was in that format already."""

    notes: tuple[str, ...] = ()
    """What the file says rightly and a known reader takes otherwise, or not at all."""


def convert(raw: RawConfig, parsed: Parsed, to: str) -> Conversion:
    """The config in format ``to``, with everything that is lost on the way.

    Raises:
        RefusedInput: neither a drafter nor a target with a head, or a method that one format cannot hold.
    """
    if isinstance(parsed.config, TargetConfig) and parsed.config.mtp is not None:
        return _convert_head(raw, parsed.config, parsed.config.mtp, to)
    config, method = _convertible(raw, parsed, to)
    here = "speculators" if config.dialect == "speculators" else "native"
    if here == to:
        return Conversion(here, to, raw.value, (), is_unchanged=True)
    written = write_native(config, method) if to == "native" else write_speculators(config, method)
    reread = parse_config(parse_raw(json.dumps(written).encode(), f"{raw.origin} as {to}"))
    losses = (*_differences(parsed, reread, to), *_untold(parsed, raw))
    return Conversion(here, to, written, losses, is_unchanged=False, notes=_notes(config, to))


def _notes(config: DrafterConfig, to: str) -> tuple[str, ...]:
    """What a reader takes otherwise.

    Sources: vLLM 0.33 speculators/algos.py, which makes one flag for all layers out of this one; speculators
    0.9.0 config.py, whose default method must be one of those listed.
    """
    if to != "speculators":
        return ()
    found = [] if config.num_draft_tokens.value is not None else [_NO_PROPOSAL]
    sliding = [layer for layer in config.layers if layer.kind.value == SLIDING]
    if 0 < len(sliding) < len(config.layers) and sliding[0].causal.value:
        found.append(
            "sliding_window_non_causal is false, which speaks of sliding layers only; vLLM 0.33 makes full "
            "layers causal, too (vllm-project/vllm#56692)"
        )
    return tuple(found)


def _convert_head(raw: RawConfig, target: TargetConfig, head: MtpHead, to: str) -> Conversion:
    """The MTP head of a target; the target itself stays what it is, so nothing of it counts as lost."""
    if to == "native":
        return Conversion("native", to, raw.value, (), is_unchanged=True)
    text = resolve(raw.value, target.text_pointer)
    names = raw.value.get("architectures", [])
    layers = text if isinstance(text, dict) else {}
    written = write_mtp_head(head, layers, names)
    reread = parse_config(parse_raw(json.dumps(written).encode(), f"{raw.origin} as {to}"))
    before = Parsed(config=head.drafter, unparsed=(), superseded=(), problems=())
    losses = tuple(_differences(before, reread, to))
    return Conversion("native", to, written, losses, is_unchanged=False, notes=(_NO_PROPOSAL,))


def _convertible(raw: RawConfig, parsed: Parsed, to: str) -> tuple[DrafterConfig, Method]:
    config = parsed.config
    if isinstance(config, DrafterConfig):
        method = config.method.value
        if method in _CONVERTIBLE or (config.dialect == to and method is not None):
            return config, method
    found = type(config).__name__.removesuffix("Config").lower()
    if isinstance(config, DrafterConfig):
        found = f"method {config.method.value or 'unknown'}"
    raise RefusedInput(
        raw.origin,
        expected=f"a drafter of one of the methods {', '.join(_CONVERTIBLE)}",
        found=found,
        where=raw.origin,
        means="only those have a config of their own in both formats; nothing was converted",
        next_step=f"draftproof facts {raw.origin}",
    )


def _differences(before: Parsed, after: Parsed, to: str) -> list[Loss]:
    """Every fact that the converted file does not repeat."""
    now = {_name(fact): fact for fact in as_facts(after) if fact.shape is Shape.VALUE}
    losses: list[Loss] = []
    for fact in as_facts(before):
        name = _name(fact)
        if fact.shape is not Shape.VALUE or _is_implied(name, fact, before):
            continue
        if name not in now:
            losses.append(_loss(fact, f"the {to} format has no place for it"))
        elif now[name].value != fact.value:
            losses.append(_loss(fact, _why(fact, now[name], to)))
    return losses


def _why(before: Fact, after: Fact, to: str) -> str:
    if isinstance(before.source, Unknown):
        return f"not known here, but a {to} file that is silent about it means {json.dumps(after.value)}"
    if isinstance(after.source, Unknown):
        return f"the {to} format has no place for it: {after.source.reason}"
    return f"the {to} format can only say {json.dumps(after.value)}"


def _loss(fact: Fact, why: str) -> Loss:
    pointer = fact.source.pointer if isinstance(fact.source, Written) else fact.name
    return _masked_loss(pointer, fact.value, why)


def _masked_loss(place: str, value: JsonValue, why: str) -> Loss:
    """``place`` is a pointer, or the name of a fact: either may run through a secret's name."""
    pointer = place if place.startswith("/") else f"/{place.replace('.', '/')}"
    return Loss(place, mask_secrets(value, pointer), why)


def _name(fact: Fact) -> str:
    """Advisory fields of the layers stand one level deeper in the speculators format."""
    return ".".join((*fact.path[:-1], fact.path[-1].removeprefix("transformer_layer_config.")))


def _is_implied(name: str, fact: Fact, before: Parsed) -> bool:
    """A label, a mechanism whose meaning is compared elsewhere, or what both formats take for granted."""
    if fact.path[0] in _LABELS or name == "advisory.algorithm":
        return True
    if fact.path[0] == "extras":
        return fact.path[-1] in _MECHANISMS
    if name == "advisory.default_proposal_method":
        return fact.value == "greedy"
    if name == "advisory.proposal_methods" and isinstance(before.config, DrafterConfig):
        return fact.value == proposal_methods(before.config.num_draft_tokens.value)
    return name == "advisory.verifier.architectures" and fact.value == []


def _untold(parsed: Parsed, raw: RawConfig) -> list[Loss]:
    """What the file says and the canonical form does not hold: unread, mistyped, or overruled by a field."""
    why = dict.fromkeys(parsed.unparsed, "read by nobody here, so its place in the other format is not known")
    for problem in parsed.problems:
        if problem.pointer and problem.kind is not ProblemKind.ODD:
            why[problem.pointer] = f"expected {problem.expected}: only what is expected goes over"
    return [_masked_loss(pointer, resolve(raw.value, pointer), reason) for pointer, reason in why.items()]
