"""Quantities: one drafter in the words of an effective record, so that files and engines share one table."""

import json
from collections.abc import Mapping, Sequence

from draftproof.config.drafter import DrafterConfig, DrafterLayer, Method
from draftproof.config.parse import parse_config
from draftproof.config.raw import JsonValue, RefusedConfig, parse_raw
from draftproof.config.source import ClassDefault, Derived, Source, Sourced, Unknown, Written
from draftproof.config.target import TargetConfig
from draftproof.runtimes.draft_model import as_draft_model
from draftproof.runtimes.effective import Fact, How
from draftproof.speculation.acceptance import Acceptance

__all__ = ["of_acceptance", "of_drafter", "of_parsed"]


def of_drafter(drafter: DrafterConfig) -> dict[str, Fact]:
    """What a file describes, under the names of an effective record."""
    taps = drafter.taps.hidden_indexes
    indexes: JsonValue = None if taps.value is None else [*taps.value]
    width: JsonValue = None if taps.value is None else len(taps.value)
    method = drafter.method.value
    facts = {
        "method": _fact(None if method is None else method.value, drafter.method.source),
        "k": _of(drafter.num_draft_tokens),
        "mask_id": _of(drafter.mask_token_id),
        "aux_layers": _fact(indexes, taps.source),
        "fc_features": _fact(width, taps.source),
        "shared_embed": _of(drafter.sharing.embeddings),
        "shared_head": _of(drafter.sharing.lm_head),
    }
    return facts | _layers(drafter.layers)


def of_parsed(config: Mapping[str, JsonValue], name: str, method: Method | None) -> dict[str, Fact] | None:
    """The same from a config as a library holds it; None where those values describe no such drafter."""
    try:
        parsed = parse_config(parse_raw(json.dumps(config).encode("utf-8"), name)).config
    except RefusedConfig:
        return None
    if isinstance(parsed, TargetConfig) and method is Method.DRAFT_MODEL:
        parsed = as_draft_model(parsed)
    return of_drafter(parsed) if isinstance(parsed, DrafterConfig) else None


def of_acceptance(acceptance: Acceptance) -> dict[str, Fact]:
    """What an engine counted, under the same names where there is one."""
    figures = {"k": acceptance.num_draft_tokens, "tau": acceptance.tau, "rate": acceptance.rate}
    return {
        name: Fact(figure.value, figure.how, How.READ if figure.value is not None else How.UNKNOWN)
        for name, figure in figures.items()
    }


def _layers(layers: Sequence[DrafterLayer]) -> dict[str, Fact]:
    return {
        f"layers/{index}/{name}": _of(said)
        for index, layer in enumerate(layers)
        for name, said in (("window", layer.window), ("causal", layer.causal))
    }


def _of(said: Sourced[int]) -> Fact:
    return _fact(said.value, said.source)


def _fact(value: JsonValue, source: Source) -> Fact:
    match source:
        case Written(pointer, line):
            return Fact(value, f"{pointer} line {line}", How.READ)
        case ClassDefault(library):
            return Fact(value, f"default of {library}", How.DERIVED)
        case Derived(rule):
            return Fact(value, rule, How.DERIVED)
        case Unknown(reason):
            return Fact(None, reason, How.UNKNOWN)
