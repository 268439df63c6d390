"""Logits to the distribution a token is drawn from: bias, penalties, temperature, top-k, top-p, min-p.

Order: bias, penalties, temperature, top-k, softmax, top-p of what top-k left, min-p of what top-p left.
Every node of a draft tree has its own history: what was emitted, and its drafted ancestors.
Source: top-k before top-p and the keep rule: z-lab dflash 0.1.0, SGLang; repetition penalty: CTRL,
arXiv:1909.05858, over prompt and output; presence and frequency: OpenAI's API, over output alone.
Dimensions: N drafted tokens, V vocabulary.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from draftproof.errors import RefusedInput, UsageError
from draftproof.speculation.tree import DraftTree

__all__ = ["History", "Sampling", "adjusted", "distribution", "widened"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one request draws its tokens; the default is greedy."""

    temperature: float = 0.0
    """Divides the logits; 0 takes the largest."""

    top_k: int = 0
    """Keep the k largest logits, and any equal to the smallest kept; 0 keeps all."""

    top_p: float = 1.0
    """Keep the most probable tokens until they hold this much."""

    min_p: float = 0.0
    """Keep tokens at least this share of the most probable one."""

    repetition_penalty: float = 1.0
    """Divides positive logits, multiplies negative ones, of every token seen in prompt or output."""

    presence_penalty: float = 0.0
    """Taken from the logit of every token in the output."""

    frequency_penalty: float = 0.0
    """Taken from the logit once for each time the token is in the output."""

    bias: Mapping[int, float] = field(default_factory=dict)
    """Added to the logits of the tokens named."""

    seed: int = 0
    """Of this request; the text depends on it and on nothing else random."""

    def __post_init__(self) -> None:
        """Refuse values outside their ranges.

        Raises:
            UsageError: a value that has no meaning, NaN included.
        """
        for name, value, holds, expected in (
            ("temperature", self.temperature, 0 <= self.temperature < float("inf"), "0 or more"),
            ("top_k", self.top_k, self.top_k >= 0, "0 (all) or more"),
            ("top_p", self.top_p, 0 < self.top_p <= 1, "above 0, up to 1"),
            ("min_p", self.min_p, 0 <= self.min_p <= 1, "0 to 1"),
            (
                "repetition_penalty",
                self.repetition_penalty,
                0 < self.repetition_penalty < float("inf"),
                "above 0",
            ),
            ("presence_penalty", self.presence_penalty, abs(self.presence_penalty) < float("inf"), "finite"),
            (
                "frequency_penalty",
                self.frequency_penalty,
                abs(self.frequency_penalty) < float("inf"),
                "finite",
            ),
        ):
            if not holds:
                raise UsageError(
                    name,
                    expected=expected,
                    found=repr(value),
                    where="sampling options",
                    means="there is no distribution to draw from",
                    next_step="draftproof generate --help",
                )

    @property
    def is_greedy(self) -> bool:
        """Whether the largest logit is taken, without chance."""
        return self.temperature == 0

    @property
    def has_history(self) -> bool:
        """Whether earlier tokens change the logits."""
        return self.repetition_penalty != 1 or self.presence_penalty != 0 or self.frequency_penalty != 0


class History:
    """The tokens one request has seen, counted as the penalties count them."""

    def __init__(self, prompt: list[int]) -> None:
        """Start from the prompt; nothing is emitted yet."""
        self.prompt = frozenset(prompt)
        self.output: Counter[int] = Counter()

    def add(self, tokens: list[int]) -> None:
        """Count tokens just emitted."""
        self.output.update(tokens)


def adjusted(logits: Tensor, tree: DraftTree, history: History, sampling: Sampling) -> Tensor:
    """The logits with bias and penalties, each node's by its own history.

    Args:
        logits: [N + 1, V], the target's row for every node, root first; left as it is.
        tree: the draft; the root is the last token of the history.
        history: what was seen up to and with the root.
        sampling: the request's options.

    Returns:
        [N + 1, V]; ``logits`` itself when nothing applies.

    Raises:
        RefusedInput: a bias names a token the model does not have.
    """
    if not sampling.bias and not sampling.has_history:
        return logits
    out = logits.float().clone()
    if sampling.bias:
        beyond = [token for token in sampling.bias if not 0 <= token < out.shape[-1]]
        if beyond:
            raise _refused("bias", f"token ids in 0..{out.shape[-1] - 1}", beyond)
        ids = torch.tensor(list(sampling.bias), device=out.device)
        out[:, ids] += torch.tensor(list(sampling.bias.values()), device=out.device, dtype=out.dtype)
    if not sampling.has_history:
        return out
    raw = out.clone()
    seen = sorted(history.prompt | history.output.keys())
    times = [history.output[token] for token in seen]
    out[:, seen] = _penalised(raw[:, seen], raw.new_tensor(times), sampling)
    for node in range(1, tree.num_draft_tokens + 1):
        path = Counter(tree.token(step) for step in tree.path(node)[1:])
        drafted = list(path)
        times = [history.output[token] + path[token] for token in drafted]
        out[node, drafted] = _penalised(raw[node, drafted], raw.new_tensor(times), sampling)
    return out


def _penalised(logits: Tensor, times: Tensor, sampling: Sampling) -> Tensor:
    """The logits of tokens seen, each as often in the output as ``times`` says, 0 for the prompt alone."""
    scale = sampling.repetition_penalty
    logits = torch.where(logits > 0, logits / scale, logits * scale)
    return logits - sampling.presence_penalty * (times > 0) - sampling.frequency_penalty * times


def distribution(logits: Tensor, sampling: Sampling) -> Tensor:
    """What a token is drawn from after temperature, top-k, top-p and min-p.

    Args:
        logits: [.., V], bias and penalties already in; -inf excludes a token.
        sampling: the request's options.

    Returns:
        [.., V] probabilities in float32, float64 if the logits are; one-hot at temperature 0.

    Raises:
        RefusedInput: a row holds NaN or +inf, or excludes every token.
    """
    logits = logits if logits.dtype == torch.float64 else logits.float()
    if not torch.isfinite(logits.amax(-1)).all():
        raise _refused("logits", "a finite largest value in every row", "NaN or infinity")
    if sampling.is_greedy:
        return torch.zeros_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
    # The largest is taken out first: a tiny temperature must not overflow.
    logits = (logits - logits.amax(-1, keepdim=True)) / sampling.temperature
    if 0 < sampling.top_k < logits.shape[-1]:
        smallest_kept = logits.topk(sampling.top_k, dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < smallest_kept, float("-inf"))
    probs = logits.softmax(-1)
    if sampling.top_p < 1:
        ranked, order = probs.sort(dim=-1, descending=True, stable=True)
        ranked = ranked.masked_fill(ranked.cumsum(-1) - ranked >= sampling.top_p, 0.0)
        ranked[..., 0] = probs.amax(-1)  # the best is always kept, whatever rounding made of its sum
        probs = torch.zeros_like(probs).scatter_(-1, order, ranked)
    if sampling.min_p > 0:
        probs = probs.masked_fill(probs < sampling.min_p * probs.amax(-1, keepdim=True), 0.0)
    return probs / probs.sum(-1, keepdim=True)


def widened(draft_probs: Tensor, target_ids: Tensor, vocab_size: int) -> Tensor:
    """A reduced-vocabulary drafter's distribution over the target's vocabulary; 0 outside its own.

    Args:
        draft_probs: [.., D] over the drafter's ids.
        target_ids: [D] int64, the target's id of each of them, all different.
        vocab_size: V, of the target.

    Raises:
        RefusedInput: the ids are not D different ones in 0..V-1.
    """
    ids = target_ids.tolist()
    if (
        len(ids) != draft_probs.shape[-1]
        or len(set(ids)) != len(ids)
        or not all(0 <= i < vocab_size for i in ids)
    ):
        raise _refused(
            "target_ids", f"{draft_probs.shape[-1]} different ids in 0..{vocab_size - 1}", f"{len(ids)}"
        )
    wide = draft_probs.new_zeros(*draft_probs.shape[:-1], vocab_size)
    wide[..., target_ids] = draft_probs
    return wide


def _refused(subject: str, expected: str, found: object) -> RefusedInput:
    return RefusedInput(
        subject,
        expected=expected,
        found=str(found),
        where="sampling",
        means="there is no distribution to draw from",
        next_step="check the model's logits, the bias and the vocabulary map",
    )
