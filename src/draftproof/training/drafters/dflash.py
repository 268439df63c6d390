"""DflashNet: the DFlash drafter with gradients, many blocks of many sequences in one pass.

Its parameters carry the names of a native checkpoint; what it computes is what ``models.dflash`` computes for
the same anchor. Source: DFlash, arXiv:2602.06036; dflash 0.1.0 model.py.
Dimensions: b sequences, S positions, N anchors, B slots, n taps, H hidden, H_t target hidden, V vocabulary,
Hq/Hk heads, D head dim.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from draftproof.models.dflash.shape import DflashLayer, DflashShape
from draftproof.training.drafters.sight import Sight, sight_of
from draftproof.training.drafters.turning import Turn, turn_at

__all__ = ["DflashNet", "Norm", "SwiGlu"]


class _Pass(NamedTuple):
    """What a pass tells every layer."""

    context: Tensor
    """[b, S, H], fused and normed."""

    context_turn: Turn
    block_turn: Turn
    sights: dict[DflashLayer, Sight]


class Norm(nn.RMSNorm):
    """The row over its root mean square, times w, in the precision of w whatever the row's."""

    def forward(self, x: Tensor) -> Tensor:
        """[..., H] to the same."""
        return super().forward(x.to(self.weight.dtype))


class SwiGlu(nn.Module):
    """down(silu(gate(x)) * up(x))."""

    def __init__(self, hidden: int, inner: int) -> None:
        """Make the three maps."""
        super().__init__()
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """[..., H] to the same."""
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class _Attention(nn.Module):
    """Queries of the block; keys and values of context rows and block through the same maps."""

    def __init__(self, shape: DflashShape) -> None:
        super().__init__()
        h, d, bias = shape.hidden_size, shape.head_dim, shape.has_bias
        self._heads = (shape.num_kv_heads, shape.num_heads // shape.num_kv_heads, d)
        self.q_proj = nn.Linear(h, shape.num_heads * d, bias=bias)
        self.k_proj = nn.Linear(h, shape.num_kv_heads * d, bias=bias)
        self.v_proj = nn.Linear(h, shape.num_kv_heads * d, bias=bias)
        self.o_proj = nn.Linear(shape.num_heads * d, h, bias=bias)
        self.q_norm = Norm(d, eps=shape.norm_eps)
        self.k_norm = Norm(d, eps=shape.norm_eps)

    def forward(self, y: Tensor, now: _Pass, sight: Sight) -> Tensor:
        """[b, N, B, H] of the normed blocks ``y``."""
        (b, n, slots, _), (num_kv, shared, dim) = y.shape, self._heads
        q = self.q_norm(self.q_proj(y).view(b, n, slots, num_kv * shared, dim))
        # The query heads of one key head are rows of one product, as in the engine.
        q = now.block_turn(q).view(b * n, slots, num_kv, shared, dim).permute(0, 2, 3, 1, 4)
        q = q.reshape(b * n, num_kv, shared * slots, dim)
        far, near = self._pair(now.context, now.context_turn), self._pair(y, now.block_turn)
        index = (
            sight.rows.clamp(min=0) + now.context.shape[1] * torch.arange(b, device=y.device)[:, None, None]
        )
        keys, values = (
            torch.cat((rows.flatten(0, 1)[index], own), 2).flatten(0, 1).transpose(1, 2)
            for rows, own in zip(far, near, strict=True)
        )  # [b N, Hk, C + B, D]
        mask = sight.mask.repeat(1, 1, shared, 1)
        mixed = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        mixed = mixed.view(b, n, num_kv, shared, slots, dim).permute(0, 1, 4, 2, 3, 5)
        out: Tensor = self.o_proj(mixed.reshape(b, n, slots, -1))
        return out

    def _pair(self, rows: Tensor, turn: Turn) -> tuple[Tensor, Tensor]:
        """Keys, normed and turned, and values: [..., Hk, D]."""
        num_kv, _, dim = self._heads
        k = self.k_norm(self.k_proj(rows).unflatten(-1, (num_kv, dim)))
        return turn(k), self.v_proj(rows).unflatten(-1, (num_kv, dim))


class _Layer(nn.Module):
    def __init__(self, shape: DflashShape) -> None:
        super().__init__()
        self.input_layernorm = Norm(shape.hidden_size, eps=shape.norm_eps)
        self.self_attn = _Attention(shape)
        self.post_attention_layernorm = Norm(shape.hidden_size, eps=shape.norm_eps)
        self.mlp = SwiGlu(shape.hidden_size, shape.intermediate_size)

    def forward(self, x: Tensor, now: _Pass, sight: Sight) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), now, sight)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class DflashNet(nn.Module):
    """The drafter; embedding and head are the target's and stay as they are.

    Attributes:
        shape: the numbers it was built from.
    """

    embedding: Tensor
    head: Tensor

    def __init__(self, shape: DflashShape, *, embedding: Tensor, head: Tensor) -> None:
        """Make the parameters.

        Args:
            shape: of a drafter that shares the target's embedding and head.
            embedding: [V, H]
            head: [V, H]
        """
        super().__init__()
        self.shape = shape
        self.register_buffer("embedding", embedding.detach(), persistent=False)
        self.register_buffer("head", head.detach(), persistent=False)
        self.fc = nn.Linear(len(shape.taps) * shape.target_hidden_size, shape.hidden_size, bias=False)
        self.hidden_norm = Norm(shape.hidden_size, eps=shape.norm_eps)
        self.layers = nn.ModuleList(_Layer(shape) for _ in shape.layers)
        self.norm = Norm(shape.hidden_size, eps=shape.norm_eps)

    def forward(self, rows: Tensor, tokens: Tensor, anchors: Tensor) -> Tensor:
        """Run a block behind every anchor.

        Args:
            rows: [b, S, n H_t], tapped states of all positions; a block sees those before its anchor.
            tokens: [b, S]; only those at anchors are read.
            anchors: [b, N] positions.

        Returns:
            [b, N, B, H] after the final norm; slot k stands at anchor + k.
        """
        slots = self.shape.block_size
        ids = torch.full((*anchors.shape, slots), self.shape.mask_token_id, device=anchors.device)
        ids[..., 0] = tokens.gather(1, anchors)
        x = F.embedding(ids, self.embedding) * self.shape.embedding_scale
        now = self._pass(self.hidden_norm(self.fc(rows)), anchors)
        for layer, kind in zip(self.layers, self.shape.layers, strict=True):
            x = layer(x, now, now.sights[kind])
        out: Tensor = self.norm(x)
        return out

    def logits(self, normed: Tensor) -> Tensor:
        """[..., V] of slots that ``forward`` gave."""
        logits = F.linear(normed, self.head) * self.shape.output_multiplier
        cap = self.shape.softcap
        return logits if cap is None else torch.tanh(logits / cap) * cap

    def _pass(self, context: Tensor, anchors: Tensor) -> _Pass:
        slots, count, rope = self.shape.block_size, context.shape[1], self.shape.rope
        rows = torch.arange(count, device=anchors.device)[None, :, None]
        places = (anchors[..., None] + torch.arange(slots, device=anchors.device))[..., None]
        sights = {kind: sight_of(anchors, count, slots, kind) for kind in dict.fromkeys(self.shape.layers)}
        return _Pass(context, turn_at(rope, rows), turn_at(rope, places), sights)
