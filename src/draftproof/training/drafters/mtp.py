"""MtpNet: a target's head of multi-token prediction with gradients, the target itself frozen.

Its parameters carry the names of the checkpoint without their ``mtp.``; what it computes is what
``models.mtp`` computes. Source: vLLM 0.33 qwen3_5_mtp, qwen3_next_mtp.
Dimensions: b sequences, P pairs, H hidden, V vocabulary.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from draftproof.models.target.shape import DecoderShape
from draftproof.training.drafters.dflash import SwiGlu
from draftproof.training.drafters.unroll import Chains

__all__ = ["MtpNet"]


class _Norm(nn.Module):
    """RMS norm whose weight is 1 + w where the family's is."""

    def __init__(self, width: int, shape: DecoderShape) -> None:
        super().__init__()
        self._eps, self._centre = shape.norm_eps, 1.0 if shape.norm_is_zero_centred else 0.0
        self.weight = nn.Parameter(torch.full((width,), 1.0 - self._centre))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.to(self.weight.dtype), x.shape[-1:], self._centre + self.weight, self._eps)


class _Attention(nn.Module):
    """The family's attention: head norms and a gate where it has them."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        a, h = shape.attention, shape.hidden_size
        self._shape = a
        width = a.num_heads * a.head_dim
        self.q_proj = nn.Linear(h, width * (2 if a.has_gate else 1), bias=a.has_qkv_bias)
        self.k_proj = nn.Linear(h, a.num_kv_heads * a.head_dim, bias=a.has_qkv_bias)
        self.v_proj = nn.Linear(h, a.num_kv_heads * a.head_dim, bias=a.has_qkv_bias)
        self.o_proj = nn.Linear(width, h, bias=a.has_output_bias)
        if a.has_qk_norm:
            self.q_norm, self.k_norm = _Norm(a.head_dim, shape), _Norm(a.head_dim, shape)

    def forward(self, x: Tensor, chains: Chains) -> Tensor:
        a, turn = self._shape, chains.turn(x.shape[1], x.device)
        heads = self.q_proj(x).unflatten(-1, (a.num_heads, -1))
        q, gate = heads[..., : a.head_dim], heads[..., a.head_dim :]
        k, v = (part(x).unflatten(-1, (a.num_kv_heads, a.head_dim)) for part in (self.k_proj, self.v_proj))
        if a.has_qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        mixed = chains.attend(turn(q), turn(k), v)
        if a.has_gate:
            mixed = mixed * gate.flatten(2).sigmoid()
        out: Tensor = self.o_proj(mixed)
        return out


class _Layer(nn.Module):
    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.input_layernorm = _Norm(shape.hidden_size, shape)
        self.post_attention_layernorm = _Norm(shape.hidden_size, shape)
        self.self_attn = _Attention(shape)
        self.mlp = SwiGlu(shape.hidden_size, shape.intermediate_size)

    def forward(self, x: Tensor, chains: Chains) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), chains)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class MtpNet(nn.Module):
    """The head; embedding and output head are the target's and stay."""

    embedding: Tensor
    head: Tensor

    def __init__(self, shape: DecoderShape, *, embedding: Tensor, head: Tensor) -> None:
        """Make the parameters.

        Args:
            shape: the target's.
            embedding: [V, H]
            head: [V, H]
        """
        super().__init__()
        h = shape.hidden_size
        self._rope = shape.rope
        self.register_buffer("embedding", embedding.detach(), persistent=False)
        self.register_buffer("head", head.detach(), persistent=False)
        self.fc = nn.Linear(2 * h, h, bias=False)
        self.pre_fc_norm_embedding = _Norm(h, shape)
        self.pre_fc_norm_hidden = _Norm(h, shape)
        self.layers = nn.ModuleList([_Layer(shape)])
        self.norm = _Norm(h, shape)

    def forward(self, normed: Tensor, tokens: Tensor, num_steps: int) -> list[Tensor]:
        """Every pair's guesses.

        Args:
            normed: [b, S, H], what the target's head reads at all positions.
            tokens: [b, S]
            num_steps: how many tokens each pair guesses.

        Returns:
            For each step s: [b, P, V] logits, P = S - 1; row i is of the token at i + 2 + s, given the true
            tokens up to i + 1 + s. Rows whose tokens lie beyond the end read the last token instead.
        """
        pairs = normed.shape[1] - 1
        hidden, chains, found = normed[:, :pairs], Chains(self._rope), []
        for step in range(num_steps):
            at = (torch.arange(pairs, device=tokens.device) + 1 + step).clamp_(max=pairs)
            embedded = self.pre_fc_norm_embedding(F.embedding(tokens[:, at], self.embedding))
            x = self.fc(torch.cat((embedded, self.pre_fc_norm_hidden(hidden)), -1))
            for layer in self.layers:
                x = layer(x, chains)
            hidden = self.norm(x)
            found.append(F.linear(hidden, self.head))
        return found
