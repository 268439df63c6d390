"""DecoderShape: the numbers a decoder is built from, none of them guessed.

A field that a model needs and that nobody knows is an error that names it; so is a field of the file that
would change the forward pass in a way not built here.
"""

from dataclasses import dataclass

from draftproof.config.source import Source

__all__ = ["AttentionShape", "DecoderShape", "DeltaShape", "LayerShape", "RopeShape"]


@dataclass(frozen=True, slots=True)
class RopeShape:
    """Rotary position embedding."""

    theta: float
    kind: str
    """``default``, ``linear``, ``llama3`` or ``yarn``."""

    rotary_dim: int
    """Leading dimensions of a head that rotate."""

    scaling: tuple[tuple[str, float | bool], ...]
    """Parameters of a scaled rope, by name, sorted."""

    divisors: tuple[float, ...] = ()
    """What each pair's frequency is divided by, where a file says so pair by pair (GGUF); else empty."""


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Softmax attention, the same in every layer that has it."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    has_qkv_bias: bool
    has_output_bias: bool
    has_qk_norm: bool
    has_gate: bool
    """``q_proj`` puts out a gate beside each head; the heads' outputs are multiplied by its sigmoid."""


@dataclass(frozen=True, slots=True)
class DeltaShape:
    """Gated DeltaNet, the same in every layer that has it."""

    num_key_heads: int
    num_value_heads: int
    key_dim: int
    value_dim: int
    conv_taps: int

    @property
    def values_per_key(self) -> int:
        """Value heads served by one key head; value head h belongs to key head ``h // values_per_key``."""
        return self.num_value_heads // self.num_key_heads

    @property
    def channels(self) -> int:
        """Inputs of the short convolution: queries, keys and values."""
        return 2 * self.num_key_heads * self.key_dim + self.num_value_heads * self.value_dim

    @property
    def width(self) -> int:
        """Outputs of all value heads."""
        return self.num_value_heads * self.value_dim


@dataclass(frozen=True, slots=True)
class LayerShape:
    """How one layer mixes positions."""

    is_recurrent: bool
    window: int | None
    """Tokens a query sees, itself included; None for all."""


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """A decoder-only language model."""

    family: str
    hidden_size: int
    intermediate_size: int
    vocab_size: int
    max_length: int
    norm_eps: float
    norm_is_zero_centred: bool
    """Norms multiply by 1 + w; the gated norm inside DeltaNet never does."""

    has_mlp_bias: bool
    is_tied: bool
    """The output head is the embedding."""

    attention: AttentionShape
    delta: DeltaShape | None
    layers: tuple[LayerShape, ...]
    rope: RopeShape
    sources: tuple[tuple[str, Source], ...]
    """Where each number came from, by field."""
