"""An engine's record held against the drafter that the file describes: findings at EFFECTIVE."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from draftproof.config.dialects.attention import LINEAR
from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.raw import JsonValue, RawConfig
from draftproof.config.source import Sourced, Written
from draftproof.config.target import TargetConfig
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, Severity
from draftproof.findings.place import Place, at_pointer
from draftproof.runtimes.effective import Effective, Fact, How

__all__ = ["Meant", "judge_effective"]

FAKED = ("synthetic",)
LOSSY = ("fly", "typical_acceptance_sampler")
OVERRIDE = "/eagle_aux_hidden_state_layer_ids"
"""Where it stands, vLLM reads nothing else."""

BLOCK = (Method.DFLASH, Method.DFLASH2)


@dataclass(frozen=True, slots=True)
class Meant:
    """What the file describes and what the engine was asked for."""

    raw: RawConfig
    drafter: DrafterConfig
    vocab_size: int | None
    """Rows of the target's embedding."""

    is_hybrid: bool = False
    """Whether the target has recurrent layers."""

    @classmethod
    def beside(cls, raw: RawConfig, drafter: DrafterConfig, target: TargetConfig | None) -> "Meant":
        """What a drafter's file means beside a target, where one is at hand."""
        if target is None:
            return cls(raw, drafter, None)
        is_hybrid = any(layer.kind.value == LINEAR for layer in target.layers)
        return cls(raw, drafter, target.vocab_size.value, is_hybrid)


def judge_effective(effective: Effective, meant: Meant) -> tuple[Finding, ...]:
    """Every quantity in which the engine differs from the file, and what will break later."""
    judges = (_refused, _taps, _first_draft, _mask, _draft_tokens, _layers, _sharing, _block_drop, _honesty)
    return tuple(finding for judge in judges for finding in judge(effective, meant))


def _refused(effective: Effective, meant: Meant) -> Iterator[Finding]:
    if effective.refusal is not None:
        yield found(
            "effective-refused",
            "config",
            expected="a pair that the engine takes",
            found=effective.refusal,
            at=at_pointer(meant.raw, ""),
            detail=_name(effective),
        )
    raised = {fact.source: name for name, fact in reversed(effective.flat.items()) if fact.how is How.RAISED}
    for words, name in reversed(raised.items()):
        at, detail = at_pointer(meant.raw, ""), f"{_name(effective)}: its own resolver raises"
        yield found("effective-refused", name, expected="a value", found=words, at=at, detail=detail)


def _taps(effective: Effective, meant: Meant) -> Iterator[Finding]:
    fact, taps = effective.fact("aux_layers"), meant.drafter.taps
    wanted = taps.hidden_indexes.value
    if not isinstance(fact.value, list) or wanted is None or fact.value == list(wanted):
        return
    place = _at(meant.raw, taps.hidden_indexes if taps.hidden_indexes.is_written else taps.layer_ids)
    literal = [tap for tap in taps.layer_ids.value or () if tap is not None]
    is_native = taps.layer_ids.is_written and meant.drafter.method.value in BLOCK
    is_literal = is_native and fact.value == literal and not meant.raw.has(OVERRIDE)
    yield found(
        "taps-read-literally" if is_literal else "effective-taps",
        "aux_layers",
        expected=list(wanted),
        found=fact.value,
        at=place,
        detail=_by(effective, fact),
    )


def _first_draft(effective: Effective, meant: Meant) -> Iterator[Finding]:
    held, width = effective.fact("aux_layers"), effective.fact("fc_features")
    depth, raw = effective.fact("num_target_layers"), meant.raw
    taps = meant.drafter.taps
    place = _at(raw, taps.hidden_indexes if taps.hidden_indexes.is_written else taps.layer_ids)
    if isinstance(held.value, list) and isinstance(width.value, int):
        reached = [
            tap for tap in held.value if not isinstance(depth.value, int) or _number(tap) <= depth.value
        ]
        if len(reached) != width.value:
            detail = f"{_name(effective)}: {len(reached)} of the hidden states {held.value} exist once each"
            yield _dies("fc_features", width.value, len(reached), place, detail)
    mask = effective.fact("mask_id").value
    if isinstance(mask, int) and meant.vocab_size is not None and mask >= meant.vocab_size:
        detail = f"{_name(effective)}: the target has {meant.vocab_size} rows"
        at = _at(raw, meant.drafter.mask_token_id)
        yield _dies("mask_id", f"less than {meant.vocab_size}", mask, at, detail)


def _dies(subject: str, expected: JsonValue, value: JsonValue, at: Place, detail: str) -> Finding:
    return found(
        "effective-fails-at-first-draft", subject, expected=expected, found=value, at=at, detail=detail
    )


def _mask(effective: Effective, meant: Meant) -> Iterator[Finding]:
    fact, said = effective.fact("mask_id"), meant.drafter.mask_token_id
    if not fact.is_known or said.value is None or fact.value == said.value:
        return
    at = _at(meant.raw, said)
    yield found(
        "effective-mask", "mask_id", expected=said.value, found=fact.value, at=at, detail=_by(effective, fact)
    )


def _draft_tokens(effective: Effective, meant: Meant) -> Iterator[Finding]:
    fact, said = effective.fact("k"), meant.drafter.num_draft_tokens
    is_block = meant.drafter.method.value in BLOCK
    if is_block and isinstance(fact.value, int) and said.value is not None and fact.value > said.value:
        yield found(
            "effective-draft-tokens",
            "k",
            expected=said.value,
            found=fact.value,
            at=_at(meant.raw, meant.drafter.block_size),
            detail=_by(effective, fact),
        )


def _layers(effective: Effective, meant: Meant) -> Iterator[Finding]:
    for kind, attribute in (("effective-window", "window"), ("effective-causality", "causal")):
        facts: list[Fact] = [getattr(layer, attribute) for layer in effective.layers or ()]
        wanted: list[Sourced[int]] = [getattr(layer, attribute) for layer in meant.drafter.layers]
        pairs = list(zip(facts, wanted, strict=False))
        wrong = [
            index
            for index, (fact, said) in enumerate(pairs)
            if fact.is_known and said.is_known and fact.value != said.value
        ]
        if wrong:
            fact, said = pairs[wrong[0]]
            yield found(
                kind,
                f"layers {_span(wrong)}",
                expected=_values(pairs[index][1].value for index in wrong),
                found=_values(pairs[index][0].value for index in wrong),
                at=_at(meant.raw, said),
                detail=_by(effective, fact),
            )


def _sharing(effective: Effective, meant: Meant) -> Iterator[Finding]:
    sharing = meant.drafter.sharing
    for name, said in (("shared_embed", sharing.embeddings), ("shared_head", sharing.lm_head)):
        fact = effective.fact(name)
        if not fact.is_known or not said.is_known or said.value is None or fact.value == said.value:
            continue
        if name == "shared_embed" and fact.value is True:
            continue  # an own copy equal to the target's is given up for it: the same rows
        yield found(
            "effective-sharing",
            name,
            expected=said.value,
            found=fact.value,
            at=_at(meant.raw, said),
            detail=_by(effective, fact),
        )


def _block_drop(effective: Effective, meant: Meant) -> Iterator[Finding]:
    fact = effective.fact("block_drop")
    if fact.value is True and meant.drafter.method.value in BLOCK:
        yield found(
            "effective-block-drop",
            "block_drop",
            expected=False,
            found=True,
            at=at_pointer(meant.raw, ""),
            detail=_by(effective, fact),
            severity=Severity.WARNING if meant.is_hybrid else None,
        )


def _honesty(effective: Effective, meant: Meant) -> Iterator[Finding]:
    fact = effective.fact("rejection_sample_method")
    for kind, names in (("acceptance-faked", FAKED), ("acceptance-lossy", LOSSY)):
        if fact.value in names:
            yield found(
                kind,
                "rejection_sample_method",
                expected="standard",
                found=fact.value,
                at=at_pointer(meant.raw, ""),
                detail=_by(effective, fact),
            )


def _values(values: Iterable[JsonValue]) -> JsonValue:
    return [*values]


def _name(effective: Effective) -> str:
    rank = "" if effective.rank is None else f" rank {effective.rank}"
    return f"{effective.engine} {effective.version}{rank}"


def _by(effective: Effective, fact: Fact) -> str:
    return f"{_name(effective)}: {fact.how.value}, {fact.source}"


def _at(raw: RawConfig, said: Sourced[object]) -> Place:
    pointer = said.source.pointer if isinstance(said.source, Written) else ""
    return at_pointer(raw, pointer if raw.has(pointer) else "")


def _span(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) if len(numbers) < 5 else f"{numbers[0]} to {numbers[-1]}"  # noqa: PLR2004


def _number(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0
