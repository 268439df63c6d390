"""The gated delta rule over whole sequences at once, in chunks, differentiable.

The formulas are those of ``models.parts.deltanet``; there a tree follows one committed state, here a batch of
chains begins at the empty state.

Dimensions: B sequences, T tokens, Hk key heads, R value heads per key head, Dk, Dv, c chunks of C tokens.
Source: Yang, Kautz, Hatamizadeh 2024, arXiv:2412.06464; Yang et al. 2024, arXiv:2406.06484.
"""

import torch
from torch import Tensor

__all__ = ["CHUNK", "delta_rule"]

CHUNK = 32
"""Tokens solved for at once: the solve grows with its square, what is left with the number of chunks."""


def delta_rule(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor) -> Tensor:
    """What every position reads of the state after it; the factor Dk^-0.5 is left to the caller.

    Args:
        q: [B, T, Hk, Dk] of unit length, as is ``k``.
        k: keys.
        v: [B, T, Hk, R, Dv].
        g: [B, T, Hk, R], logarithm of the decay, 0 or less.
        beta: [B, T, Hk, R], in 0..1.

    Returns:
        [B, T, Hk, R, Dv]
    """
    b, t, heads, r, dv = v.shape
    if short := -t % CHUNK:  # keys of zero write nothing, and what they read is cut off again
        q, k, v, g, beta = (_padded(part, short) for part in (q, k, v, g, beta))
    c = (t + short) // CHUNK
    q, k = (part.view(b, c, CHUNK, heads, -1).permute(0, 3, 1, 2, 4).unsqueeze(2) for part in (q, k))
    v = v.view(b, c, CHUNK, heads, r, dv).permute(0, 3, 4, 1, 2, 5)  # [B, Hk, R, c, C, Dv]
    total, rate = (part.view(b, c, CHUNK, heads, r).permute(0, 3, 4, 1, 2) for part in (g, beta))
    total, rate = total.cumsum(-1), rate.unsqueeze(-1)
    future = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=v.device).triu_(1)
    # Hidden before the exponential: towards the future the difference may be large and positive.
    decay = (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(future, float("-inf")).exp()
    reach = total.exp().unsqueeze(-1)
    system = decay * (k @ k.transpose(-1, -2)) * rate
    wanted = torch.cat((v * rate, k * (reach * rate)), -1)
    solved = torch.linalg.solve_triangular(system, wanted, upper=False, unitriangular=True)
    fresh, old = solved.split((dv, k.shape[-1]), -1)  # u = fresh - old S
    within = decay * (q @ k.transpose(-1, -2))
    asked = q * reach
    last = total[..., -1:]
    given = (k * (last - total).exp().unsqueeze(-1)).transpose(-1, -2)
    fade = last.exp().unsqueeze(-1)
    state = v.new_zeros(b, heads, r, k.shape[-1], dv)
    outputs = []
    # Taken apart at once: the gradient of an indexed slice is a whole tensor of zeros for each.
    chunks = zip(*(part.unbind(3) for part in (fresh, old, asked, within, given, fade)), strict=True)
    for new, stale, ask, inside, give, keep in chunks:
        u = new - stale @ state
        outputs.append(ask @ state + inside @ u)
        state = state * keep + give @ u
    mixed = torch.stack(outputs, 3)  # [B, Hk, R, c, C, Dv]
    return mixed.permute(0, 3, 4, 1, 2, 5).reshape(b, c * CHUNK, heads, r, dv)[:, :t]


def _padded(part: Tensor, count: int) -> Tensor:
    return torch.cat((part, part.new_zeros(part.shape[0], count, *part.shape[2:])), 1)
