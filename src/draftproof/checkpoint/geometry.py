"""Facts derived from shapes held against the config: what the file says, what the weights are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from draftproof.checkpoint.derive import Fact
from draftproof.checkpoint.expected.table import Dim, times
from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.source import Sourced
from draftproof.config.target import TargetConfig

__all__ = ["Disagreement", "compare_facts", "explains"]

Value = int | bool | str
_EAGLE3 = {Method.EAGLE3, Method.PEAGLE}
_KINDS = {Method.DFLASH: "dflash", Method.DFLASH2: "dflash", Method.EAGLE3: "eagle3", Method.PEAGLE: "eagle3"}
"""Which of the two shapes of decoder layer a method has; others have no table to compare with."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A field on which config and weights differ."""

    field: str
    """The config's field, or ``num_taps``, or a product such as ``num_attention_heads x head_dim``."""

    configured: Value
    entered: tuple[str, ...]
    """Names of the config's values that ``configured`` was computed from."""

    derived: Value
    tensor: str
    rule: str


def compare_facts(facts: tuple[Fact, ...], config: DrafterConfig | TargetConfig) -> tuple[Disagreement, ...]:
    """Every field that both know and that differs. What one of them does not know is not compared."""
    known = {fact.field: fact for fact in facts}
    found = [*_geometry(known, config), *_head_products(known, config)]
    if isinstance(config, DrafterConfig):
        found += [*_method(known, config), *_taps(known, config), *_drafter(known, config)]
    else:
        found += _differ(known, "attention_bias", config.qkv_bias, "qkv_bias")
    return tuple(found)


def explains(disagreement: Disagreement, expected: Sequence[Dim], found: Sequence[int]) -> bool:
    """Whether a shape differs only by this disagreement: every side that is off is off by its factor."""
    told, said = disagreement.derived, disagreement.configured
    if type(told) is not int or type(said) is not int or not said or len(expected) != len(found):
        return False
    wrong = [(want, have) for want, have in zip(expected, found, strict=True) if want not in {None, have}]
    return bool(wrong) and all(want and have * said == want * told for want, have in wrong)


_Known = Mapping[str, Fact]


def _differ(
    known: _Known, field: str, configured: Sourced[int] | Sourced[bool], *entered: str
) -> Iterator[Disagreement]:
    fact, value = known.get(field), configured.value
    if fact is not None and value is not None and value != fact.value:
        yield Disagreement(field, value, entered or (field,), fact.value, fact.tensor, fact.rule)


def _geometry(known: _Known, config: DrafterConfig | TargetConfig) -> Iterator[Disagreement]:
    shapes = config.geometry
    yield from _differ(known, "hidden_size", shapes.hidden_size)
    yield from _differ(known, "intermediate_size", shapes.intermediate_size)
    yield from _differ(known, "num_hidden_layers", shapes.num_hidden_layers)
    yield from _differ(known, "head_dim", shapes.head_dim)
    yield from _differ(known, "num_attention_heads", shapes.num_attention_heads)
    yield from _differ(known, "num_key_value_heads", shapes.num_key_value_heads)
    yield from _differ(known, "vocab_size", config.vocab_size)


def _head_products(known: _Known, config: DrafterConfig | TargetConfig) -> Iterator[Disagreement]:
    """Without head norms only the products of heads and head width are told."""
    if "head_dim" in known:
        return
    shapes = config.geometry
    for field, heads, name in (
        ("attention_width", shapes.num_attention_heads, "num_attention_heads"),
        ("key_rows", shapes.num_key_value_heads, "num_key_value_heads"),
    ):
        fact, product = known.get(field), times(heads, shapes.head_dim)
        if fact is not None and product is not None and product != fact.value:
            entered = (name, "head_dim")
            yield Disagreement(" x ".join(entered), product, entered, fact.value, fact.tensor, fact.rule)


def _method(known: _Known, config: DrafterConfig) -> Iterator[Disagreement]:
    """EAGLE-3 against DFlash, and the tensors of DFlash 2 or P-EAGLE under the older name."""
    fact, method = known.get("method"), config.method.value
    if fact is None or method not in _KINDS:
        return
    derived = Method(str(fact.value))
    is_newer = derived in {Method.DFLASH2, Method.PEAGLE} and derived is not method
    if is_newer or _KINDS[derived] != _KINDS[method]:
        yield Disagreement("method", method.value, ("method",), derived.value, fact.tensor, fact.rule)


def _taps(known: _Known, config: DrafterConfig) -> Iterator[Disagreement]:
    """Columns of fc: taps times the target's width."""
    fact, taps, width = (
        known.get("fc_columns"),
        config.taps.hidden_indexes.value,
        config.target_hidden_size.value,
    )
    if fact is None or not taps or not width or not isinstance(fact.value, int):
        return
    if fact.value == len(taps) * width:
        return
    if fact.value % width == 0:
        derived, rule = fact.value // width, f"{fact.value} columns of fc / target_hidden_size {width}"
        yield Disagreement("num_taps", len(taps), ("taps", "target_hidden_size"), derived, fact.tensor, rule)
    elif fact.value % len(taps) == 0:
        derived, rule = fact.value // len(taps), f"{fact.value} columns of fc / {len(taps)} taps"
        entered = ("target_hidden_size", "taps")
        yield Disagreement("target_hidden_size", width, entered, derived, fact.tensor, rule)
    else:
        entered = ("taps", "target_hidden_size")
        yield Disagreement(
            "num_taps x target_hidden_size", len(taps) * width, entered, fact.value, fact.tensor, fact.rule
        )


def _drafter(known: _Known, config: DrafterConfig) -> Iterator[Disagreement]:
    yield from _differ(known, "draft_vocab_size", config.draft_vocab_size)
    yield from _differ(known, "attention_bias", config.geometry.attention_bias)
    if config.method.value in _EAGLE3:
        yield from _differ(known, "norm_before_fc", config.norms.before_fc, "norms.before_fc")
        yield from _differ(known, "fc_norm", config.norms.fc_norm, "norms.fc_norm")
    for name in ("conv_kernel_size", "selector_rank"):
        if name in config.extras and type(value := config.extras[name].value) is int:
            yield from _differ(known, name, Sourced(value, config.extras[name].source))
