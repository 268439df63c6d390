"""What a row of the table of semantics gives for one drafter: the answer where the engine has no function.

Computed from the canonical reading of the file and the version; every value is marked as derived, with its
row.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from draftproof.config.drafter import DrafterConfig, DrafterLayer, Method
from draftproof.config.raw import JsonValue
from draftproof.findings.semantics.row import Quantity, Semantic
from draftproof.findings.semantics.table import SEMANTICS, semantic
from draftproof.findings.versions import Engine
from draftproof.runtimes.effective import Effective, Fact, How, LayerFacts, unknown

__all__ = ["complete", "engine_of"]

_V1 = {
    Method.DFLASH: "DFlashProposer",
    Method.EAGLE3: "EagleProposer",
    Method.PEAGLE: "EagleProposer",
    Method.MTP: "EagleProposer",
    Method.DRAFT_MODEL: "DraftModelProposer",
}
_V2 = {
    Method.DFLASH: "DFlashSpeculator",
    Method.DFLASH2: "DFlash2Speculator",
    Method.DSPARK: "DSparkSpeculator",
    Method.EAGLE3: "EagleSpeculator",
    Method.MTP: "MTPSpeculator",
    Method.DRAFT_MODEL: "StandaloneARSpeculator",
}
_QUANTITIES = (
    Quantity.TAPS,
    Quantity.MASK,
    Quantity.DRAFT_TOKENS,
    Quantity.RUNNER,
    Quantity.DRAFTER,
    Quantity.BLOCK_DROP,
    Quantity.EMBEDDINGS,
    Quantity.HEAD,
)


@dataclass(frozen=True, slots=True)
class Drafted:
    """What a row computes from."""

    drafter: DrafterConfig
    facts: Mapping[str, Fact]
    tensors: tuple[str, ...] | None
    num_draft_tokens: int | None
    """As asked of the engine."""


def engine_of(name: str, version: str) -> Engine | None:
    """The engine at its released version; None where the text begins with none (``dev``)."""
    match = re.match(r"\d+(?:\.\d+){1,3}", version)
    return Engine(name, tuple(int(part) for part in match[0].split("."))) if match else None


def complete(
    effective: Effective,
    drafter: DrafterConfig,
    *,
    tensors: tuple[str, ...] | None,
    num_draft_tokens: int | None,
    missing: Mapping[str, str],
) -> Effective:
    """The record with what the engine did not tell, where a row tells it; the rest is named unknown."""
    engine = engine_of(effective.engine, effective.version)
    given = Drafted(drafter, effective.facts, tensors, num_draft_tokens)
    facts = dict(effective.facts)
    for quantity in _QUANTITIES:
        if quantity.value not in facts and _applies(quantity, effective.engine, drafter):
            facts[quantity.value] = _derived(engine, quantity, replace(given, facts=facts), missing)
    if "fc_features" not in facts and drafter.method.value in (Method.DFLASH, Method.DFLASH2):
        facts["fc_features"] = _features(facts, drafter)
    layers = effective.layers if effective.layers is not None else _layers(engine, given)
    return replace(effective, facts=facts, layers=layers)


def _applies(quantity: Quantity, engine: str, drafter: DrafterConfig) -> bool:
    """Whether any version of the engine has such a thing for such a drafter."""
    method = drafter.method.value
    return any(
        row.quantity is quantity and row.versions.engine == engine and method in row.methods
        for row in SEMANTICS
    )


def _derived(engine: Engine | None, quantity: Quantity, given: Drafted, missing: Mapping[str, str]) -> Fact:
    lack = missing.get(quantity.value)
    why = f"the engine has no function for it ({lack})" if lack else "the engine has no function for it"
    row = _row(engine, quantity, given.drafter)
    if row is None:
        return unknown(f"{why}, and no row of the table was read for {engine or 'this version'}")
    value = RULES[row.id](given)
    if isinstance(value, Fact):
        return value
    return Fact(value, row.told, How.DERIVED)


def _row(engine: Engine | None, quantity: Quantity, drafter: DrafterConfig) -> Semantic | None:
    method = drafter.method.value
    if engine is None or method is None:
        return None
    return semantic(engine, quantity, method, drafter.dialect)


def _layers(engine: Engine | None, given: Drafted) -> tuple[LayerFacts, ...] | None:
    if not given.drafter.layers:
        return None
    rows = [_row(engine, quantity, given.drafter) for quantity in (Quantity.WINDOW, Quantity.CAUSAL)]
    layers = given.drafter.layers
    return tuple(LayerFacts(*(_of_layer(row, layer, layers) for row in rows)) for layer in layers)


def _of_layer(row: Semantic | None, layer: DrafterLayer, layers: tuple[DrafterLayer, ...]) -> Fact:
    if row is None:
        return unknown("the engine has no function for it, and no row was read for this version")
    value = LAYER_RULES[row.id](layer, layers)
    return value if isinstance(value, Fact) else Fact(value, row.told, How.DERIVED)


def _features(facts: Mapping[str, Fact], drafter: DrafterConfig) -> Fact:
    """Columns of ``fc`` in target widths: one per tap asked for, else one per drafter layer."""
    asked = facts.get("aux_requested", facts["aux_layers"])
    if isinstance(asked.value, list):
        return Fact(len(asked.value), "one per requested tap (_get_dflash_fc_input_size)", How.DERIVED)
    count = drafter.geometry.num_hidden_layers.value
    return Fact(count, "no taps named: one per drafter layer", How.DERIVED) if count else unknown("no taps")


def _literal_taps(given: Drafted) -> JsonValue | Fact:
    return _taps([tap for tap in given.drafter.taps.layer_ids.value or () if tap is not None])


def _hidden_taps(given: Drafted) -> JsonValue | Fact:
    return _taps(list(given.drafter.taps.hidden_indexes.value or ()))


def _taps(ids: list[int]) -> JsonValue | Fact:
    in_layer_order: list[JsonValue] = [*sorted(set(ids))]
    return in_layer_order or unknown("the file names no taps")


def _mask(given: Drafted) -> JsonValue | Fact:
    said = given.drafter.mask_token_id
    if said.value is None:
        return unknown("the file names no mask token")
    return int(said.value)


def _nested_mask(given: Drafted) -> JsonValue | Fact:
    source = given.drafter.mask_token_id.source
    pointer = getattr(source, "pointer", "")
    if given.drafter.dialect in ("native", "modelopt") and pointer == "/mask_token_id":
        return unknown("the file names it at the top, where this version does not look: it refuses to start")
    return _mask(given)


def _asked(given: Drafted) -> JsonValue | Fact:
    return given.num_draft_tokens or unknown("no number of draft tokens was named")


def _of_block(given: Drafted) -> JsonValue | Fact:
    if given.num_draft_tokens:
        return given.num_draft_tokens
    block = given.drafter.block_size.value
    return (block or 16) - 1


def _class(given: Drafted) -> JsonValue | Fact:
    runner, method = given.facts.get("runner"), given.drafter.method.value
    classes = _V2 if runner is not None and runner.value == "v2" else _V1
    if runner is None or not runner.is_known or method not in classes:
        return unknown("depends on the model runner, which is not known")
    return classes[method]


def _carries(name: str) -> Callable[[Drafted], JsonValue | Fact]:
    def is_shared(given: Drafted) -> JsonValue | Fact:
        if not given.tensors:
            return unknown("the names of the drafter's tensors are not at hand")
        return not any(one.endswith(f"{name}.weight") for one in given.tensors)

    return is_shared


RULES: Mapping[str, Callable[[Drafted], JsonValue | Fact]] = {
    "taps-literal": _literal_taps,
    "taps-plus-one": _hidden_taps,
    "taps-as-hidden-states": _hidden_taps,
    "mask-nested": _nested_mask,
    "mask-nested-or-top": _mask,
    "draft-tokens-as-asked": _asked,
    "draft-tokens-of-block": _of_block,
    "blocks-dropped": lambda _given: True,
    "blocks-kept": lambda _given: False,
    "runner-one": lambda _given: "v1",
    "drafter-by-method": _class,
    "embeddings-unless-carried": _carries("embed_tokens"),
    "head-unless-carried": _carries("lm_head"),
}
"""Row -> what it gives for a drafter."""


def _as_sliding(_layer: DrafterLayer, layers: tuple[DrafterLayer, ...]) -> JsonValue | Fact:
    """What the file says of its sliding layers, for every layer."""
    said = [one.causal.value for one in layers if one.kind.value == "sliding_attention"]
    return said[0] if said else unknown("decided by sliding_window_non_causal; no layer slides here")


LAYER_RULES: Mapping[str, Callable[[DrafterLayer, tuple[DrafterLayer, ...]], JsonValue | Fact]] = {
    "window-none": lambda _layer, _layers: None,
    "window-by-kind": lambda layer, _layers: layer.window.value,
    "causal-never": lambda _layer, _layers: False,
    "causal-always": lambda _layer, _layers: True,
    "causal-by-kind": lambda layer, _layers: layer.causal.value,
    "causal-for-all": _as_sliding,
}
"""Row -> what it gives for one drafter layer, all layers at hand."""
