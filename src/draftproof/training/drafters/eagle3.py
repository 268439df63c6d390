"""Eagle3Net: the EAGLE-3 drafter with gradients, unrolled over its own guesses.

Its parameters carry the names of SafeAILab's and SpecForge's checkpoints; what it computes is what
``models.eagle3`` computes. Source: EAGLE-3, arXiv:2503.01840; SafeAILab/EAGLE cnets.py.
Dimensions: b sequences, P pairs, n taps, H hidden, H_t target hidden, D rows of the head.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor, nn

from draftproof.models.eagle3.shape import Eagle3Shape
from draftproof.training.drafters.dflash import Norm, SwiGlu
from draftproof.training.drafters.unroll import Chains

__all__ = ["Eagle3Net"]


class _Attention(nn.Module):
    """Attention over embedding and feature side by side."""

    def __init__(self, shape: Eagle3Shape) -> None:
        super().__init__()
        a, h = shape.decoder.attention, shape.decoder.hidden_size
        self._heads = (a.num_heads, a.num_kv_heads, a.head_dim)
        self.q_proj = nn.Linear(2 * h, a.num_heads * a.head_dim, bias=a.has_qkv_bias)
        self.k_proj = nn.Linear(2 * h, a.num_kv_heads * a.head_dim, bias=a.has_qkv_bias)
        self.v_proj = nn.Linear(2 * h, a.num_kv_heads * a.head_dim, bias=a.has_qkv_bias)
        self.o_proj = nn.Linear(a.num_heads * a.head_dim, h, bias=a.has_output_bias)

    def forward(self, x: Tensor, chains: Chains) -> Tensor:
        """[b, P, H] of [b, P, 2 H]."""
        num_q, num_kv, dim = self._heads
        turn = chains.turn(x.shape[1], x.device)
        q = turn(self.q_proj(x).unflatten(-1, (num_q, dim)).transpose(1, 2))
        k = turn(self.k_proj(x).unflatten(-1, (num_kv, dim)).transpose(1, 2))
        v = self.v_proj(x).unflatten(-1, (num_kv, dim)).transpose(1, 2)
        out: Tensor = self.o_proj(chains.attend(q, k, v))
        return out


class _Midlayer(nn.Module):
    def __init__(self, shape: Eagle3Shape) -> None:
        super().__init__()
        h, eps = shape.decoder.hidden_size, shape.decoder.norm_eps
        self._before_residual = shape.norms.before_residual
        self.input_layernorm = Norm(h, eps=eps)
        self.hidden_norm = Norm(h, eps=eps)
        self.post_attention_layernorm = Norm(h, eps=eps)
        self.self_attn = _Attention(shape)
        self.mlp = SwiGlu(h, shape.decoder.intermediate_size)

    def forward(self, embedded: Tensor, features: Tensor, chains: Chains) -> Tensor:
        normed = self.hidden_norm(features)
        x = normed if self._before_residual else features
        x = x + self.self_attn(torch.cat((self.input_layernorm(embedded), normed), -1), chains)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class Eagle3Net(nn.Module):
    """The drafter; the embedding is the target's and stays, the head is its own.

    Attributes:
        shape: the numbers it was built from.
        target_ids: [D], what its head's rows stand for.
    """

    embedding: Tensor
    target_ids: Tensor

    def __init__(self, shape: Eagle3Shape, *, embedding: Tensor, target_ids: Tensor) -> None:
        """Make the parameters.

        Args:
            shape: one layer, heads without norms, no norm before ``fc``.
            embedding: [V, H]
            target_ids: [D], rising.
        """
        super().__init__()
        self.shape, h = shape, shape.decoder.hidden_size
        self.register_buffer("embedding", embedding.detach(), persistent=False)
        self.register_buffer("target_ids", target_ids, persistent=False)
        self.fc = nn.Linear(len(shape.taps) * shape.target_hidden_size, h, bias=False)
        self.midlayer = _Midlayer(shape)
        self.norm = Norm(h, eps=shape.decoder.norm_eps)
        self.lm_head = nn.Linear(h, shape.draft_vocab_size, bias=False)

    def forward(self, rows: Tensor, tokens: Tensor, num_steps: int) -> list[Tensor]:
        """Every pair's guesses.

        Args:
            rows: [b, S, n H_t], tapped states of all positions.
            tokens: [b, S]
            num_steps: how many tokens each pair guesses.

        Returns:
            For each step s: [b, P, D] logits, P = S - 1; row i is of the token at i + 2 + s, given the true
            tokens up to i + 1 + s. Rows whose tokens lie beyond the end read the last token instead.
        """
        pairs = rows.shape[1] - 1
        features = self.fc(rows[:, :pairs])
        chains = Chains(self.shape.decoder.rope)
        found = []
        for step in range(num_steps):
            at = (torch.arange(pairs, device=tokens.device) + 1 + step).clamp_(max=pairs)
            out = self.midlayer(F.embedding(tokens[:, at], self.embedding), features, chains)
            normed = self.norm(out)
            found.append(self.lm_head(normed))
            features = normed if self.shape.norms.output else out
        return found
