"""Shapes and rope of a Hugging Face style object, with the holes filled by the class that reads it."""

from collections.abc import Mapping
from typing import Never

from draftproof.config.defaults import ClassDefaults
from draftproof.config.drafter import Geometry, Rope
from draftproof.config.problem import ProblemKind
from draftproof.config.raw import JsonValue
from draftproof.config.reader import Reader, default, derived, unknown
from draftproof.config.source import Sourced, Unknown

__all__ = ["Holes", "parse_geometry", "parse_rope", "partial_rotary"]

_SHAPES = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
)
_ROPE_OWN = ("rope_theta", "rope_type", "type", "partial_rotary_factor")


class Holes:
    """What stands where the file is silent.

    A flat file that leaves out a shape is incomplete: its class would fill in a number nobody meant,
    so the shape is unknown. Inside a speculators file absence means the class default, because such
    files are written as the difference to it.
    """

    def __init__(
        self, known: ClassDefaults | None, *, fill_shapes: bool, disputes_head_dim: bool = False
    ) -> None:
        """``known`` is None where no table of the reading class is kept here.

        ``disputes_head_dim``: engines fill in different head sizes for this kind of file.
        """
        self.known = known
        self.fill_shapes = fill_shapes
        self.disputes_head_dim = disputes_head_dim

    def integer(self, read: Reader, key: str) -> Sourced[int]:
        """The integer at ``key``, or what fills the hole."""
        value = self._value(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return read.integer(key, absent=default(value, self._library))
        return read.integer(key, absent=unknown(self._reason(read, key)))

    def number(self, read: Reader, key: str) -> Sourced[float]:
        """The number at ``key``, or what fills the hole."""
        value = self._value(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return read.number(key, absent=default(value, self._library))
        return read.number(key, absent=unknown(self._reason(read, key)))

    def boolean(self, read: Reader, key: str) -> Sourced[bool]:
        """The boolean at ``key``, or what fills the hole."""
        value = self._value(key)
        if isinstance(value, bool):
            return read.boolean(key, absent=default(value, self._library))
        return read.boolean(key, absent=unknown(self._reason(read, key)))

    def string(self, read: Reader, key: str) -> Sourced[str]:
        """The string at ``key``, or what fills the hole."""
        value = self._value(key)
        if isinstance(value, str):
            return read.string(key, absent=default(value, self._library))
        return read.string(key, absent=unknown(self._reason(read, key)))

    @property
    def _library(self) -> str:
        return self.known.library if self.known else "the reading class"

    def _value(self, key: str) -> int | float | bool | str | None:
        if self.known is None or key not in self.known.values:
            return None
        return self.known.values[key] if self.fill_shapes or key not in _SHAPES else None

    def _reason(self, read: Reader, key: str) -> str:
        pointer = read.pointer(key)
        if self.known is not None and key in self.known.values:
            filler = self.known.values[key]
            return f"no {pointer}; {self._library} would fill in {filler}, which nobody wrote"
        return f"the file does not say: no {pointer}"


def parse_geometry(read: Reader, holes: Holes) -> Geometry:
    """The shapes of the object ``read`` stands on."""
    hidden, heads = holes.integer(read, "hidden_size"), holes.integer(read, "num_attention_heads")
    return Geometry(
        hidden_size=hidden,
        intermediate_size=holes.integer(read, "intermediate_size"),
        num_hidden_layers=holes.integer(read, "num_hidden_layers"),
        num_attention_heads=heads,
        num_key_value_heads=_kv_heads(read, holes, heads),
        head_dim=_head_dim(read, holes, hidden, heads),
        attention_bias=holes.boolean(read, "attention_bias"),
        hidden_act=read.string("hidden_act", "hidden_activation", absent=holes.string(read, "hidden_act")),
        rms_norm_eps=holes.number(read, "rms_norm_eps"),
        max_position_embeddings=holes.integer(read, "max_position_embeddings"),
    )


def _kv_heads(read: Reader, holes: Holes, heads: Sourced[int]) -> Sourced[int]:
    said = holes.integer(read, "num_key_value_heads")
    silent = not read.has("num_key_value_heads") or read.is_null("num_key_value_heads")
    if silent and holes.known is not None and holes.known.kv_heads_are_heads and heads.value is not None:
        return derived(heads.value, f"num_attention_heads, as {holes.known.library} does")
    return said


def _head_dim(read: Reader, holes: Holes, hidden: Sourced[int], heads: Sourced[int]) -> Sourced[int]:
    said, pointer = read.integer("head_dim"), read.pointer("head_dim")
    if read.says("head_dim"):
        return said
    quotient: Sourced[int] = unknown(f"no {pointer}, and hidden_size / num_attention_heads is not known")
    if hidden.value is not None and heads.value:
        rule = "hidden_size / num_attention_heads, the rule of classes without a head_dim"
        quotient = derived(hidden.value // heads.value, rule)
    known = holes.known
    if known is None or known.head_dim_is_quotient or said.is_written:
        return quotient
    filler = known.values.get("head_dim")
    if not isinstance(filler, int):
        return unknown(f"no {pointer}, and what {known.library} fills in is not known here")
    if not holes.disputes_head_dim:
        return default(filler, known.library)
    if quotient.value == filler:
        return derived(filler, f"hidden_size / num_attention_heads; {known.library} fills in the same")
    return unknown(
        f"no {pointer}; {known.library} fills in {filler}, vLLM 0.33 takes "
        f"hidden_size / num_attention_heads = {quotient.value}"
    )


def partial_rotary(known: ClassDefaults) -> Sourced[float]:
    """The part of a head that a class rotates where its file does not say."""
    return default(float(known.values.get("partial_rotary_factor", 1.0)), known.library)


def parse_rope(
    read: Reader,
    *,
    theta_absent: Sourced[float],
    partial_absent: Sourced[float],
    type_absent: Sourced[str] | None = None,
    is_neox_absent: Sourced[bool] | None = None,
) -> Rope:
    """The rotary embedding, from the 4.x keys, the 5.x object, or its part for full attention.

    ``type_absent`` stands in where the file says nothing at all about its rope's scaling.
    Where both styles stand in one file a non-empty ``rope_scaling`` wins over ``rope_parameters``, and the
    object's theta over the flat one, as transformers 5 does; values that differ are a Problem.
    Source: transformers 5.24.0 modeling_rope_utils, RotaryEmbeddingConfigMixin.
    """
    flat, nested = read.mapping("rope_scaling"), read.mapping("rope_parameters")
    unread = _unread(read, flat, nested)
    if unread is not None:
        theta_absent = partial_absent = unread
    whole = flat if read.is_null("rope_scaling") and nested.value is None else None
    first = "rope_scaling" if flat.value else "rope_parameters"
    second = "rope_parameters" if flat.value else "rope_scaling"
    if nested.value is not None and isinstance(nested.value.get("full_attention"), dict):
        first = "rope_parameters/full_attention"
    elif flat.value and nested.value and _scaling(flat.value) != _scaling(nested.value):
        read.complain(ProblemKind.CONFLICT, second, "the same as rope_scaling", "another rope")
    return Rope(
        theta=read.number(f"{first}/rope_theta", "rope_theta", f"{second}/rope_theta", absent=theta_absent),
        type=unread or _rope_type(read, first, type_absent),
        partial_rotary_factor=read.number(
            f"{first}/partial_rotary_factor", "partial_rotary_factor", absent=partial_absent
        ),
        scaling=unread or _remaining(whole or read.mapping(first)),
        is_neox=read.boolean(
            "rope_is_neox_style",
            "is_neox_style",
            absent=is_neox_absent or default(True, "vLLM 0.33 and SGLang 0.5.23: half-split"),
        ),
    )


def _unread(
    read: Reader, flat: Sourced[Mapping[str, JsonValue]], nested: Sourced[Mapping[str, JsonValue]]
) -> Sourced[Never] | None:
    """Why nothing is known of a rope whose only object is something else; None where one can be read."""
    if flat.value or nested.value:
        return None
    for name, said in (("rope_scaling", flat), ("rope_parameters", nested)):
        if isinstance(said.source, Unknown) and read.says(name):
            return unknown(said.source.reason)
    return None


def _rope_type(read: Reader, home: str, absent: Sourced[str] | None) -> Sourced[str]:
    said = read.string(f"{home}/rope_type", f"{home}/type")
    if said.value is None and not read.has(f"{home}/rope_type") and not read.has(f"{home}/type"):
        if read.is_null("rope_scaling"):
            return derived("default", f"{read.pointer('rope_scaling')} is null: nothing is scaled")
        silent = not read.has("rope_scaling") and not read.has("rope_parameters")
        if absent is not None and silent:
            return absent
        return derived("default", "no rope type and no scaling is written")
    return said


def _remaining(whole: Sourced[Mapping[str, JsonValue]]) -> Sourced[Mapping[str, JsonValue]]:
    if whole.value is None:
        return whole if whole.is_written else derived(None, "no scaling parameters are written")
    rest = _scaling(whole.value)
    return Sourced(rest, whole.source) if rest else derived(None, "no scaling parameters are written")


def _scaling(rope: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {key: value for key, value in rope.items() if key not in _ROPE_OWN}
