"""The gated delta rule: one step at a time, over a tree at once, and over long chunks.

Per value head, with state S [Dk, Dv], one step decays, corrects and reads:

    S <- exp(g) S;   u = beta (v - S^T k);   S <- S + k u^T;   o = S^T q

Over N nodes whose parents come first, let G_i be the sum of g along the path to node i, D_ij = exp(G_i - G_j)
where j is i or an ancestor of i and 0 elsewhere. Then all updates u solve one unit lower-triangular system

    u_i + beta_i sum_{j < i} D_ij (k_i . k_j) u_j = beta_i (v_i - exp(G_i) S^T k_i)

and o_i = exp(G_i) S^T q_i + sum_j D_ij (q_i . k_j) u_j. A chain is the tree whose ancestors are all nodes
before. Siblings do not meet: their entries of D are 0. The state is read once and not written.

Dimensions: N nodes, Hk key heads, R value heads per key head, Dk, Dv.
Queries and keys arrive with unit length; the factor Dk^-0.5 on queries is left to the caller.

Source: Yang, Kautz, Hatamizadeh 2024, arXiv:2412.06464; its chunked form: Yang et al. 2024, arXiv:2406.06484,
here with the causal mask replaced by the tree's ancestors.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from draftproof.cache.recurrent import Deferred

__all__ = ["CHUNK", "Steps", "advance_chunks", "one_node", "recurrence", "tree_nodes"]

CHUNK = 64
"""Tokens solved for at once in a long prefill."""


class Steps(NamedTuple):
    """What the nodes of one layer bring to the rule."""

    queries_keys: Tensor
    """[N, 2, Hk, Dk], queries first, each of unit length."""

    values: Tensor
    """[N, Hk, R, Dv]"""

    g: Tensor
    """[N, Hk, R], logarithm of the decay, 0 or less."""

    beta: Tensor
    """[N, Hk, R], the rate of the correction, in 0..1."""

    def span(self, begin: int, end: int) -> "Steps":
        """The nodes from ``begin`` up to ``end``."""
        return Steps(*(part[begin:end] for part in self))


def recurrence(steps: Steps, state: Tensor, parents: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The plain twin: the rule as it is written, one node after another, one state for each.

    Args:
        steps: of all nodes.
        state: [Hk, Dk, R * Dv], of the committed tokens.
        parents: of every node; -1 for the root, whose step begins at ``state``.

    Returns:
        Outputs [N, Hk, R, Dv] and the state after every node [N, Hk, R, Dk, Dv].
    """
    heads, dk = state.shape[:2]
    start = state.view(heads, dk, steps.values.shape[2], -1).permute(0, 2, 1, 3)
    after: list[Tensor] = []
    outputs = []
    for node, parent in enumerate(parents):
        q, k = (part[:, None, :, None] for part in steps.queries_keys[node])  # [Hk, 1, Dk, 1]
        s = (start if parent < 0 else after[parent]) * steps.g[node].exp()[..., None, None]
        u = steps.beta[node][..., None] * (steps.values[node] - (s * k).sum(-2))
        s = s + k * u.unsqueeze(-2)
        after.append(s)
        outputs.append((s * q).sum(-2))
    return torch.stack(outputs), torch.stack(after)


def one_node(steps: Steps, state: Tensor) -> tuple[Tensor, Deferred]:
    """A single node after the committed state: ``tree_nodes`` with N = 1, without its matrices.

    Returns:
        Output [1, Hk, R, Dv] and what the node would do to the state.
    """
    heads, dk = state.shape[:2]
    q, k = steps.queries_keys[0].unbind(0)
    both = steps.queries_keys.view(2, heads, dk).transpose(0, 1)  # [Hk, 2, Dk]
    past = torch.bmm(both, state).view(heads, 2, steps.values.shape[2], -1)
    decay = steps.g.exp().view(heads, -1, 1)
    u = torch.addcmul(steps.values[0], decay, past[:, 1], value=-1).mul_(steps.beta.view(heads, -1, 1))
    output = torch.addcmul(decay * past[:, 0], (q * k).sum(-1).view(heads, 1, 1), u)
    return output.unsqueeze(0), Deferred(k.unsqueeze(1), u.unsqueeze(2), steps.g.view(heads, -1, 1))


def tree_nodes(steps: Steps, state: Tensor, ancestry: Tensor | None) -> tuple[Tensor, Deferred]:
    """All nodes of a tree or chain at once; the state stays as it is.

    Args:
        steps: of all nodes.
        state: [Hk, Dk, R * Dv], of the committed tokens.
        ancestry: [N, N], 1 where column j is row i's node or its ancestor, else 0; None for a chain.

    Returns:
        Outputs [N, Hk, R, Dv] and what each node would do to the state.
    """
    n, heads, r, dv = steps.values.shape
    both = steps.queries_keys.permute(2, 1, 0, 3).reshape(heads, 2 * n, -1)  # [Hk, 2N, Dk], queries first
    keys = both[:, n:]
    asked, past = torch.bmm(both, state).view(heads, 2, n, r, dv).transpose(2, 3).unbind(1)  # [Hk, R, N, Dv]
    across, along = torch.bmm(both, keys.transpose(1, 2)).view(heads, 2, 1, n, n).unbind(1)
    g = steps.g.view(n, heads * r)
    path_sum = g.cumsum(0) if ancestry is None else torch.mm(ancestry, g)
    total = path_sum.t().view(heads, r, n)  # G
    column = total.unsqueeze(-1)
    # Along a path G falls. Off it the difference may be large and positive: it is cut before the exponential,
    # and not made minus infinity, which sends the processor's library on its slow way.
    decay = torch.sub(column, total.unsqueeze(-2)).clamp_max_(0).exp_()  # D [Hk, R, N, N]
    decay = decay.tril_() if ancestry is None else decay.mul_(ancestry)
    rate = steps.beta.permute(1, 2, 0).unsqueeze(-1)  # [Hk, R, N, 1]
    reach = column.exp()
    values = steps.values.permute(1, 2, 0, 3)
    wanted = torch.addcmul(values, reach, past, value=-1).mul_(rate)
    # Only the strict lower triangle is read; entries that are no ancestors are 0 in it.
    system = torch.mul(decay, along).mul_(rate).view(heads * r, n, n)
    # Solved from the right, transposed: its columns are then the rows that the product behind it reads.
    updates = torch.linalg.solve_triangular(
        system.mT, wanted.reshape(heads * r, n, dv).mT, upper=True, left=False, unitriangular=True
    ).mT
    outputs = torch.bmm(decay.mul_(across).view(heads * r, n, n), updates).view(heads, r, n, dv)
    outputs.addcmul_(reach, asked)
    return outputs.permute(2, 0, 1, 3), Deferred(keys, updates.view(heads, r, n, dv), total)


def advance_chunks(steps: Steps, state: Tensor) -> Tensor:
    """A chain whose length is a multiple of CHUNK; the state is moved to its end, in place.

    What does not depend on the state is computed for all chunks together; four products a chunk remain.

    Returns:
        Outputs [N, Hk, R, Dv].
    """
    n, heads, r, dv = steps.values.shape
    dk, c = state.shape[1], n // CHUNK
    qk = steps.queries_keys.view(c, CHUNK, 2, heads, dk).permute(3, 0, 2, 1, 4)  # [Hk, c, 2, C, Dk]
    q, k = qk[:, :, 0].unsqueeze(1), qk[:, :, 1].unsqueeze(1)  # [Hk, 1, c, C, Dk]
    v = steps.values.view(c, CHUNK, heads, r, dv).permute(2, 3, 0, 1, 4)  # [Hk, R, c, C, Dv]
    total = steps.g.view(c, CHUNK, heads, r).permute(2, 3, 0, 1).cumsum(-1)  # [Hk, R, c, C]
    rate = steps.beta.view(c, CHUNK, heads, r).permute(2, 3, 0, 1).unsqueeze(-1)
    future = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=state.device).triu_(1)
    decay = (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill_(future, float("-inf")).exp_()
    reach = total.exp().unsqueeze(-1)
    wanted = torch.cat((v * rate, k * (reach * rate)), -1)
    system = decay * (k @ k.transpose(-1, -2)) * rate
    solved = torch.linalg.solve_triangular(system, wanted, upper=False, unitriangular=True)
    fresh, old = solved.split((dv, dk), -1)  # u = fresh - old S
    within = decay * (q @ k.transpose(-1, -2))
    asked = q * reach
    last = total[..., -1:]
    given = (k * (last - total).exp().unsqueeze(-1)).transpose(-1, -2)
    fade = last.exp().unsqueeze(-1)  # [Hk, R, c, 1, 1]
    s = state.view(heads, dk, r, dv).permute(0, 2, 1, 3).contiguous()
    outputs = torch.empty_like(v, memory_format=torch.contiguous_format)
    for i in range(c):
        u = fresh[:, :, i] - old[:, :, i] @ s
        outputs[:, :, i] = asked[:, :, i] @ s + within[:, :, i] @ u
        s = s * fade[:, :, i] + given[:, :, i] @ u
    state.view(heads, dk, r, dv).copy_(s.permute(0, 2, 1, 3))
    return outputs.permute(2, 3, 0, 1, 4).reshape(n, heads, r, dv)
