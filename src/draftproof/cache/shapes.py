"""The sizes of everything one sequence must remember, as its model states them."""

from dataclasses import dataclass

import torch

__all__ = ["KvShape", "RecurrentShape", "SessionShape"]


@dataclass(frozen=True, slots=True)
class KvShape:
    """Attention layers that see the same part of the past."""

    num_layers: int
    num_heads: int
    """Heads of the keys and of the values."""

    head_dim: int
    window: int | None
    """Tokens a query sees, itself included; None for all of them."""


@dataclass(frozen=True, slots=True)
class RecurrentShape:
    """Gated DeltaNet layers; value head h belongs to key head ``h // values_per_key``."""

    num_layers: int
    num_key_heads: int
    values_per_key: int
    key_dim: int
    value_dim: int
    conv_channels: int
    conv_taps: int
    """Inputs a convolution reads, the current one included."""


@dataclass(frozen=True, slots=True)
class SessionShape:
    """All memory of one sequence."""

    kv: tuple[KvShape, ...]
    recurrent: RecurrentShape | None
    max_length: int
    """Positions the model knows; a sequence may not grow beyond them."""

    dtype: torch.dtype
    """Of keys, values and convolution inputs."""

    device: torch.device

    @property
    def state_dtype(self) -> torch.dtype:
        """Of recurrent states: 32-bit floats, or 64-bit ones where the model runs in those."""
        return torch.float64 if self.dtype == torch.float64 else torch.float32
