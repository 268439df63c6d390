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

from draftproof.models.dflash.shape import DflashShape
from draftproof.training.drafters.sight import block_seen, context_seen
from draftproof.training.drafters.turning import Turn, turn_at

__all__ = ["DflashNet", "SwiGlu"]


class _Sight(NamedTuple):
    """What the pass tells every layer."""

    context_turn: Turn
    block_turn: Turn
    context: dict[int | None, Tensor]
    """Added to the scores of context rows, by window."""

    block: list[Tensor]
    """Added to the scores of a block's own slots, by layer."""


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
        self.q_norm = nn.RMSNorm(d, eps=shape.norm_eps)
        self.k_norm = nn.RMSNorm(d, eps=shape.norm_eps)

    def forward(self, y: Tensor, context: Tensor, sight: _Sight, masks: tuple[Tensor, Tensor]) -> Tensor:
        """[b, N, B, H] of the normed block ``y`` over ``context`` [b, S, H]."""
        (b, n, slots, _), (num_kv, shared, dim) = y.shape, self._heads
        q = self.q_norm(self.q_proj(y).view(b, n, slots, num_kv * shared, dim))
        q = sight.block_turn(q).view(b, n, slots, num_kv, shared, dim) * dim**-0.5
        q = q.permute(0, 3, 1, 4, 2, 5)  # [b, Hk, N, g, B, D]
        block_k, block_v = self._pair(y, sight.block_turn)  # [b, N, B, Hk, D]
        block_k, block_v = block_k.permute(0, 3, 1, 2, 4), block_v.permute(0, 3, 1, 2, 4)
        k, v = self._pair(context, sight.context_turn)  # [b, S, Hk, D]
        k, v = k.transpose(1, 2), v.transpose(1, 2)
        count = k.shape[2]
        far = q.reshape(b, num_kv, -1, dim) @ k.transpose(2, 3)
        far = far.view(b, num_kv, n, shared, slots, count) + masks[0][:, None, :, None]
        near = q.reshape(b, num_kv, n, -1, dim) @ block_k.transpose(3, 4)
        near = near.view(b, num_kv, n, shared, slots, slots) + masks[1]
        weights = torch.cat((far, near), -1).softmax(-1)
        far, near = weights[..., :count], weights[..., count:]
        mixed = (far.reshape(b, num_kv, -1, count) @ v).view(b, num_kv, n, -1, dim)
        mixed = mixed + near.reshape(b, num_kv, n, -1, slots) @ block_v
        mixed = mixed.view(b, num_kv, n, shared, slots, dim).permute(0, 2, 4, 1, 3, 5)
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
        self.input_layernorm = nn.RMSNorm(shape.hidden_size, eps=shape.norm_eps)
        self.self_attn = _Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden_size, eps=shape.norm_eps)
        self.mlp = SwiGlu(shape.hidden_size, shape.intermediate_size)

    def forward(self, x: Tensor, context: Tensor, sight: _Sight, masks: tuple[Tensor, Tensor]) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), context, sight, masks)
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
        self.hidden_norm = nn.RMSNorm(shape.hidden_size, eps=shape.norm_eps)
        self.layers = nn.ModuleList(_Layer(shape) for _ in shape.layers)
        self.norm = nn.RMSNorm(shape.hidden_size, eps=shape.norm_eps)

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
        context = self.hidden_norm(self.fc(rows))
        ids = torch.full((*anchors.shape, slots), self.shape.mask_token_id, device=anchors.device)
        ids[..., 0] = tokens.gather(1, anchors)
        x = F.embedding(ids, self.embedding) * self.shape.embedding_scale
        sight = self._sight(rows.shape[1], anchors)
        for index, layer in enumerate(self.layers):
            masks = sight.context[self.shape.layers[index].window], sight.block[index]
            x = layer(x, context, sight, masks)
        out: Tensor = self.norm(x)
        return out

    def logits(self, normed: Tensor) -> Tensor:
        """[..., V] of slots that ``forward`` gave."""
        logits = F.linear(normed, self.head) * self.shape.output_multiplier
        cap = self.shape.softcap
        return logits if cap is None else torch.tanh(logits / cap) * cap

    def _sight(self, num_rows: int, anchors: Tensor) -> _Sight:
        slots, device = self.shape.block_size, anchors.device
        rows = torch.arange(num_rows, device=device)[None, :, None]
        places = (anchors[..., None] + torch.arange(slots, device=device))[..., None]
        context = {
            layer.window: _added(context_seen(anchors, num_rows, slots, layer)) for layer in self.shape.layers
        }
        block = [_added(block_seen(slots, layer, device)) for layer in self.shape.layers]
        rope = self.shape.rope
        return _Sight(turn_at(rope, rows), turn_at(rope, places), context, block)


def _added(seen: Tensor) -> Tensor:
    """0 where seen, -inf elsewhere."""
    return torch.zeros(seen.shape, device=seen.device).masked_fill_(~seen, float("-inf"))
