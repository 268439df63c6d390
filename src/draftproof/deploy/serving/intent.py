"""Intent: what the drafter must do once it runs, read from its own config; unknown stays unknown."""

import json
from dataclasses import dataclass
from pathlib import Path

from draftproof.config.dialects.attention import SLIDING
from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.parse import Parsed, find_config, parse_config
from draftproof.config.raw import JsonValue, RawConfig, parse_raw, read_raw
from draftproof.config.source import Derived, Sourced, Unknown, Written
from draftproof.deploy.serving.plan import ServePlan
from draftproof.deploy.serving.reason import Said, Unlooked
from draftproof.errors import RefusedInput

__all__ = ["DrafterFile", "differences", "drafter_file", "num_draft_tokens", "parsed_drafter"]

METHODS_OF = {
    "dflash": frozenset({Method.DFLASH, Method.DFLASH2}),
    "eagle3": frozenset({Method.EAGLE3, Method.PEAGLE}),
}


@dataclass(frozen=True, slots=True)
class DrafterFile:
    """The drafter's config as it is intended."""

    raw: RawConfig
    config: DrafterConfig

    def at(self, value: Sourced[object]) -> str:
        """Where a value comes from, in words."""
        match value.source:
            case Written(pointer=pointer, line=line):
                return f"{self.raw.origin}#{pointer} line {line}"
            case Derived(rule=rule):
                return rule
            case Unknown(reason=reason):
                return reason
            case source:
                return source.library

    @property
    def is_mixed(self) -> bool:
        """Whether some layers slide and some do not."""
        kinds = {layer.kind.value == SLIDING for layer in self.config.layers}
        return len(kinds) > 1


def drafter_file(plan: ServePlan) -> DrafterFile | Unlooked:
    """The intended config of the plan's drafter, or why there is none at hand.

    It is the file that ``drafter_config`` names, else the source of the ``[[files]]`` entry that is meant
    for ``DRAFTER/config.json``, else the file that lies there.

    Raises:
        CouldNotLook, RefusedConfig: a named file cannot be read, or is not one strict JSON object.
        RefusedInput: it is no drafter's, or of another method than the plan's.
    """
    path = _named(plan)
    if path is None:
        drafter = plan.text("drafter")
        if not drafter:
            return Unlooked("the drafter's config", f"method {plan.method} has no drafter file")
        if not Path(drafter).exists():
            return Unlooked(
                "the drafter's config",
                f"{drafter} is no directory here: taps, windows and mask are not known; name drafter_config",
            )
        path = find_config(Path(drafter))
    raw = read_raw(path)
    return _of_method(plan, raw, parsed_drafter(raw))


def parsed_drafter(raw: RawConfig) -> DrafterConfig:
    """The drafter that a file describes. Raises RefusedInput where it describes none."""
    parsed: Parsed = parse_config(raw)
    if isinstance(parsed.config, DrafterConfig):
        return parsed.config
    raise _refused(raw, "the config of a drafter", "another file", f"draftproof facts {raw.origin}")


def num_draft_tokens(plan: ServePlan, file: DrafterFile | Unlooked) -> Said | None:
    """Tokens proposed per step, and who says so; None where nobody does.

    Raises:
        RefusedInput: the plan asks for more slots than the drafter was made for.
    """
    said = _planned(plan)
    if not isinstance(file, DrafterFile):
        return said
    trained = file.config.num_draft_tokens
    if said is None:
        if trained.value is None:
            return None
        return Said(trained.value, "the drafter's own block, without the anchor", file.at(trained))
    is_block = file.config.method.value in METHODS_OF["dflash"]
    if is_block and trained.value is not None and isinstance(said.value, int) and said.value > trained.value:
        raise _refused(
            file.raw,
            f"at most {trained.value} drafted tokens, as the drafter was made for ({file.at(trained)})",
            f"{said.value} ({said.source})",
            "say block_size or num_draft_tokens no larger than the drafter's own",
        )
    return said


def differences(intended: DrafterConfig, other: DrafterConfig) -> list[tuple[str, JsonValue, JsonValue]]:
    """What a config says otherwise than the intended one, in canonical form: name, intended, other."""
    pairs: list[tuple[str, JsonValue, JsonValue]] = [
        ("taps", _ids(intended), _ids(other)),
        ("mask_token_id", intended.mask_token_id.value, other.mask_token_id.value),
        ("num_draft_tokens", intended.num_draft_tokens.value, other.num_draft_tokens.value),
        ("rope.theta", intended.rope.theta.value, other.rope.theta.value),
        ("rope.type", intended.rope.type.value, other.rope.type.value),
        ("draft_vocab_size", intended.draft_vocab_size.value, other.draft_vocab_size.value),
        *(
            (f"layers.{number}", _layer(intended, number), _layer(other, number))
            for number in range(max(len(intended.layers), len(other.layers)))
        ),
    ]
    return [(name, before, after) for name, before, after in pairs if before != after and before is not None]


def _ids(config: DrafterConfig) -> JsonValue:
    indexes = config.taps.hidden_indexes.value
    return None if indexes is None else list(indexes)


def _layer(config: DrafterConfig, number: int) -> JsonValue:
    if number >= len(config.layers):
        return None
    layer = config.layers[number]
    window = layer.window.value if layer.kind.value == SLIDING else None
    return {"kind": layer.kind.value, "window": window, "causal": layer.causal.value}


def _named(plan: ServePlan) -> Path | None:
    if plan.text("drafter_config"):
        return plan.origin.parent / plan.text("drafter_config")
    wanted = f"{plan.text('drafter').rstrip('/')}/config.json"
    for file in plan.files.files if plan.files else ():
        if file.place.path == wanted:
            return file.source
    return None


def _of_method(plan: ServePlan, raw: RawConfig, config: DrafterConfig) -> DrafterFile:
    wanted = METHODS_OF.get(plan.method)
    if wanted is not None and config.method.value is not None and config.method.value not in wanted:
        raise _refused(
            raw,
            f"a drafter of method {plan.method}, as {plan.said['method'].source} says",
            f"one of method {config.method.value}",
            "mend the method, or name another drafter",
        )
    return DrafterFile(raw, config)


def _planned(plan: ServePlan) -> Said | None:
    if "num_draft_tokens" in plan.said:
        return plan.said["num_draft_tokens"]
    if "block_size" in plan.said:
        said = plan.said["block_size"]
        slots = plan.number("block_size")
        return Said(slots - 1, f"a block of {slots} slots, one of them the anchor", said.source)
    return None


def _refused(raw: RawConfig, expected: str, found: str, next_step: str) -> RefusedInput:
    return RefusedInput(
        raw.origin,
        expected=expected,
        found=found,
        where=raw.origin,
        means="nothing was rendered and nothing was started",
        next_step=next_step,
    )


def reread(config: dict[str, JsonValue], origin: str) -> DrafterConfig:
    """A rendered config as this product reads it."""
    return parsed_drafter(parse_raw(json.dumps(config).encode(), origin))
