"""Filled homes to a Decoder: the layers take their weights in the layout they run fastest in."""

from collections.abc import Mapping

import torch
from torch import Tensor

from draftproof.cache.shapes import KvShape, RecurrentShape, SessionShape
from draftproof.models.decoder import Decoder, Layer
from draftproof.models.parts.attention import Attention
from draftproof.models.parts.gated_delta import GatedDelta
from draftproof.models.parts.linear import Linear
from draftproof.models.parts.rows import Mlp, RmsNorm
from draftproof.models.target.shape import DecoderShape

__all__ = ["Building", "build_decoder", "session_shape"]


def session_shape(shape: DecoderShape, *, dtype: torch.dtype, device: torch.device) -> SessionShape:
    """What one sequence must remember: one key-value store for each window, in order of first use."""
    a, d = shape.attention, shape.delta
    windows = [layer.window for layer in shape.layers if not layer.is_recurrent]
    kv = tuple(
        KvShape(windows.count(window), a.num_kv_heads, a.head_dim, window)
        for window in dict.fromkeys(windows)
    )
    recurrent = None
    if d is not None:
        count = sum(layer.is_recurrent for layer in shape.layers)
        recurrent = RecurrentShape(
            num_layers=count,
            num_key_heads=d.num_key_heads,
            values_per_key=d.values_per_key,
            key_dim=d.key_dim,
            value_dim=d.value_dim,
            conv_channels=d.channels,
            conv_taps=d.conv_taps,
        )
    return SessionShape(kv, recurrent, shape.max_length, dtype, device)


def build_decoder(
    shape: DecoderShape, homes: dict[str, Tensor], *, dtype: torch.dtype, device: torch.device
) -> Decoder:
    """The decoder over ``homes``, which is emptied on the way so that no weight is held twice."""
    build = Building(shape, homes, dtype)
    embedding = homes["embedding"]
    head = Linear(homes.pop("head") if not shape.is_tied else embedding)
    return Decoder(
        shape,
        session_shape(shape, dtype=dtype, device=device),
        embedding=homes.pop("embedding"),
        layers=[build.layer(i) for i in range(len(shape.layers))],
        norm=build.norm("norm"),
        head=head,
    )


class Building:
    """Takes homes by name and counts layers into their stores."""

    def __init__(self, shape: DecoderShape, homes: dict[str, Tensor], dtype: torch.dtype) -> None:
        """Take the numbers and the filled homes, which the parts are taken out of."""
        self._shape, self._homes, self._dtype = shape, homes, dtype
        self._exact = torch.float64 if dtype == torch.float64 else torch.float32
        windows = dict.fromkeys(layer.window for layer in shape.layers if not layer.is_recurrent)
        self._stores: Mapping[int | None, int] = {window: i for i, window in enumerate(windows)}
        self._in_store = dict.fromkeys(windows, 0)
        self._num_recurrent = 0

    def layer(self, index: int) -> Layer:
        """One layer, all of its parts."""
        here = f"layers.{index}"
        mixer = self._delta(here) if self._shape.layers[index].is_recurrent else self._attention(here, index)
        return Layer(
            norm=self.norm(f"{here}.input_layernorm"),
            mixer=mixer,
            mlp_norm=self.norm(f"{here}.post_attention_layernorm"),
            mlp=Mlp(self.linear(f"{here}.gate_up"), self.linear(f"{here}.down")),
        )

    def norm(self, home: str) -> RmsNorm:
        """One norm, its weight made plain where it is zero-centred."""
        return RmsNorm(self._centred(home), self._shape.norm_eps, dtype=self._dtype)

    def _centred(self, home: str) -> Tensor:
        # The 1 is added in full precision: 16-bit floats would swallow small deltas.
        weight = self._homes.pop(home)
        return weight + 1 if self._shape.norm_is_zero_centred else weight

    def linear(self, home: str) -> Linear:
        """The linear map whose homes begin with this name."""
        bias = self._homes.pop(f"{home}.bias") if f"{home}.bias" in self._homes else None
        return Linear(self._homes.pop(f"{home}.weight"), bias)

    def _attention(self, here: str, index: int) -> Attention:
        a, window = self._shape.attention, self._shape.layers[index].window
        head_norm = None
        if a.has_qk_norm:
            q, k = self._centred(f"{here}.q_norm"), self._centred(f"{here}.k_norm")
            weight = torch.cat((q.expand(a.num_heads, -1), k.expand(a.num_kv_heads, -1)))
            head_norm = RmsNorm(weight, self._shape.norm_eps, dtype=self._exact)
        layer = self._in_store[window]
        self._in_store[window] += 1
        return Attention(
            a,
            self.linear(f"{here}.qkv"),
            self.linear(f"{here}.o"),
            head_norm,
            store=self._stores[window],
            layer=layer,
            exact=self._exact,
        )

    def _delta(self, here: str) -> GatedDelta:
        d = self._shape.delta
        if d is None:
            raise RuntimeError("a recurrent layer without its shape")
        layer = self._num_recurrent
        self._num_recurrent += 1
        return GatedDelta(
            d,
            self.linear(f"{here}.in"),
            self.linear(f"{here}.out"),
            conv=self._homes.pop(f"{here}.conv"),
            a_log=self._homes.pop(f"{here}.A_log"),
            dt_bias=self._homes.pop(f"{here}.dt_bias"),
            norm=self._homes.pop(f"{here}.gated_norm"),
            eps=self._shape.norm_eps,
            layer=layer,
        )
