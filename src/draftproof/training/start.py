"""Where training begins: seeded weights that copy from the first step on.

Text with long-range copying is learned in two parts: what it is shaped like, at once, and to copy, after a
plateau longer than the whole of a small budget (measured: nothing copied after 900 steps of 2560 tokens). So
the residual stream begins in three parts, and with the layers that pass between them in place:

- axis 0, the same for all ids: it opens the gates and steers heads that look by position alone;
- *now*, half of the rest: the embedding. Ids that differ in case and space only begin half alike there;
- *before*, the other half: the first layer writes the token before into it.

Attention asks with its own token for one whose token before it was the same, and adds that token to *now*,
where a tied head reads it. Nothing holds the parts apart once training has begun.

Source: mimetic starts: Trockman, Kolter 2023, arXiv:2305.09828; Trockman et al. 2024, arXiv:2410.11135;
induction heads: Olsson et al. 2022, arXiv:2209.11895.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from draftproof.models.mtp.load import bill_of_mtp
from draftproof.models.parts.rope import inverse_frequencies
from draftproof.models.target.parameters import bill_of
from draftproof.models.target.shape import DecoderShape
from draftproof.training.nets.target import PREFIX

__all__ = ["initial_weights"]

_EMBEDDING_SIZE = 0.07
"""Standard deviation of *now* in an embedding."""

_COMMON = 0.15
"""Axis 0 of every embedding."""

_OPEN = 0.6
"""What the gates of recurrent layers read of axis 0."""

_WRITING = 1.5
"""What the first layer's rate of correction reads of axis 0: it keeps nothing but the newest."""

_QUIET = 0.05
"""Size of weights that are to say little at first, as a share of the usual."""

_SHARPER = 1.5
"""Added to the norms of queries and keys: a match stands out among hundreds."""

_BEFORE = 0.07
"""How loud the first layer says which token came before."""

_COPYING = 3.0
"""What each attention layer puts out of the token it looked up."""

_READING = 0.01
"""What each later recurrent layer puts out of what followed the last time."""

_FAST = 4
"""Rotating pairs that tell one token from its neighbours; looking up by content leaves them out."""


def initial_weights(
    shape: DecoderShape, seed: int, texts: Sequence[str], *, with_mtp: bool
) -> dict[str, Tensor]:
    """Seeded leaves under the checkpoint's names.

    Args:
        shape: of the target.
        seed: of all draws.
        texts: what each id stands for.
        with_mtp: draw the head's as well.
    """
    generator = torch.Generator().manual_seed(seed)
    pieces = bill_of(shape, PREFIX).pieces | (bill_of_mtp(shape).pieces if with_mtp else {})
    drawn = {name: _drawn(name, pieces[name].shape, shape, generator) for name in sorted(pieces)}
    start = _Start(shape, drawn)
    start.embed(texts, generator)
    for index, layer in enumerate(shape.layers):
        name = f"{PREFIX}layers.{index}"
        if layer.is_recurrent:
            start.recall(f"{name}.linear_attn", is_first=index == 0)
        elif index == 0:
            start.look_back(f"{name}.self_attn")
        else:
            start.look_up(f"{name}.self_attn")
    return {name: tensor.requires_grad_() for name, tensor in drawn.items()}


def _drawn(name: str, shape: tuple[int, ...], decoder: DecoderShape, generator: torch.Generator) -> Tensor:
    if name.endswith("linear_attn.norm.weight"):
        return torch.ones(shape)
    if "norm" in name:
        return torch.zeros(shape) if decoder.norm_is_zero_centred else torch.ones(shape)
    if name.endswith("A_log"):
        return torch.rand(shape, generator=generator).mul_(7).add_(1).log_()
    if name.endswith("dt_bias"):
        # Steps of 0.0005 to 0.05: with the decays above, memories from a few tokens to a thousand.
        step = torch.exp(torch.rand(shape, generator=generator) * 4.6 - 7.6)
        return step + torch.log(-torch.expm1(-step))
    noise = torch.randn(shape, generator=generator)
    if "embed_tokens" in name or "lm_head" in name:
        return noise * _EMBEDDING_SIZE
    noise *= 0.7 * shape[-1] ** -0.5
    return (
        noise * _QUIET if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight")) else noise
    )


@dataclass(frozen=True, slots=True)
class _Start:
    """Weights as they were drawn, put in place."""

    shape: DecoderShape
    drawn: dict[str, Tensor]

    @property
    def now(self) -> slice:
        return slice(1, 1 + self.half)

    @property
    def before(self) -> slice:
        return slice(1 + self.half, 1 + 2 * self.half)

    @property
    def half(self) -> int:
        return (self.shape.hidden_size - 1) // 2

    def embed(self, texts: Sequence[str], generator: torch.Generator) -> None:
        """Embeddings of equal size in *now*, half of it shared by ids that differ in case and space only."""
        embedding = self.drawn[f"{PREFIX}embed_tokens.weight"]
        folded = [text.strip().lower() or text for text in texts]
        first = [folded.index(text) for text in folded]
        shared = torch.randn(embedding.shape, generator=generator) * _EMBEDDING_SIZE
        embedding.add_(shared[first]).mul_(0.5**0.5)
        embedding[:, 0] = _COMMON
        embedding[:, self.before.start :] = 0

    def look_back(self, name: str) -> None:
        """Every head looks at the token before, by the fast pairs alone, and writes it into *before*."""
        queries, keys = self._maps(name)
        a, angles = self.shape.attention, inverse_frequencies(self.shape.rope)[0][:_FAST]
        half = self.shape.rope.rotary_dim // 2
        queries.mul_(_QUIET)[:, : len(angles), 0] = 1
        keys.mul_(_QUIET)[:, : len(angles), 0] = angles.cos()
        keys[:, half : half + len(angles), 0] = angles.sin()
        self._pass(name, self.before, _BEFORE * a.num_kv_heads / a.num_heads)

    def look_up(self, name: str) -> None:
        """Every head asks with *now* for a position with the same in *before*, and writes its *now*."""
        queries, keys = self._maps(name)
        half, a = self.shape.rope.rotary_dim // 2, self.shape.attention
        for fast in (slice(0, min(_FAST, half)), slice(half, half + min(_FAST, half))):
            keys[:, fast] *= _QUIET
        content = keys[:, :, self.now].clone()
        queries.mul_(_QUIET)[:, :, self.now] = content.repeat_interleave(a.num_heads // a.num_kv_heads, 0)
        keys.mul_(_QUIET)[:, :, self.before] = content
        self._pass(name, self.now, _COPYING * a.num_kv_heads / a.num_heads)

    def recall(self, name: str, *, is_first: bool) -> None:
        """The first layer writes the token before into *before*; a later one what followed the last time.

        Raises:
            ValueError: the shape has no recurrent layer.
        """
        d = self.shape.delta
        if d is None:
            raise ValueError("a recurrent layer without its shape")
        width = d.num_key_heads * d.key_dim
        inputs, taps = self.drawn[f"{name}.in_proj_qkv.weight"], self.drawn[f"{name}.conv1d.weight"]
        content = inputs[:width, self.now].clone()
        inputs.mul_(_QUIET)
        inputs[:width, self.now] = content
        inputs[width : 2 * width, self.now if is_first else self.before] = content
        count = min(self.half, d.width)
        inputs[2 * width : 2 * width + count, self.now] = torch.eye(count, self.half)
        taps.mul_(_QUIET)[:, 0, -1] += 1
        self.drawn[f"{name}.in_proj_b.weight"][:, 0] += _WRITING if is_first else 0.0
        if is_first and d.conv_taps > 1:
            taps[2 * width :, 0, -2:] = taps[2 * width :, 0, -2:].flip(-1)
        out = self.drawn[f"{name}.out_proj.weight"]
        to = self.before if is_first else self.now
        out[to, :count] += torch.eye(self.half, count) * (_BEFORE if is_first else _READING)
        self.drawn[f"{name}.in_proj_z.weight"][:, 0] += _OPEN

    def _maps(self, name: str) -> tuple[Tensor, Tensor]:
        """Views [heads, D, H] of query maps, gates left out, and of key maps; their norms made sharper."""
        a = self.shape.attention
        for norm in ("q_norm", "k_norm") if a.has_qk_norm else ():
            self.drawn[f"{name}.{norm}.weight"] += _SHARPER
        queries, keys = (self.drawn[f"{name}.{which}_proj.weight"] for which in "qk")
        queries = queries.view(a.num_heads, -1, queries.shape[1])[:, : a.head_dim]
        return queries, keys.view(a.num_kv_heads, a.head_dim, -1)

    def _pass(self, name: str, to: slice, size: float) -> None:
        """Values read *now* axis by axis; every query head of a group writes them to the same axes."""
        a = self.shape.attention
        values, out = self.drawn[f"{name}.v_proj.weight"], self.drawn[f"{name}.o_proj.weight"]
        values.mul_(_QUIET)
        for axis in range(min(self.half, len(values))):
            values[axis, self.now.start + axis] = 1
            head, within = divmod(axis, a.head_dim)
            shared = a.num_heads // a.num_kv_heads
            for query in range(head * shared, (head + 1) * shared):
                out[to.start + axis, query * a.head_dim + within] += size
