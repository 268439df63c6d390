"""What a target is trained on: its trunk on the next token, its multi-token-prediction head on the one after.

Dimensions: B rows, T tokens.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from draftproof.models.mtp.load import bill_of_mtp
from draftproof.models.target.parameters import bill_of
from draftproof.models.target.shape import DecoderShape
from draftproof.training.batches import Batches
from draftproof.training.loop import Figures
from draftproof.training.nets.target import PREFIX, TargetNet
from draftproof.training.vocabulary import write_tokenizer

__all__ = ["TargetLosses", "TargetTask", "initial_weights", "write_target"]

_EMBEDDING_SIZE = 0.05
"""Standard deviation of embeddings at the start."""


@dataclass(frozen=True, slots=True)
class TargetLosses:
    """What counts how much."""

    prompt_weight: float
    """Of a token inside a prompt; one of an answer counts 1. Prompts name what cannot be foreseen."""

    mtp_weight: float
    """Of the head's loss beside the trunk's; 0 trains no head."""

    mtp_share: float
    """How many of the rows the head reads."""


def initial_weights(shape: DecoderShape, seed: int, *, with_mtp: bool) -> dict[str, Tensor]:
    """Seeded leaves under the checkpoint's names."""
    generator = torch.Generator().manual_seed(seed)
    pieces = bill_of(shape, PREFIX).pieces | (bill_of_mtp(shape).pieces if with_mtp else {})
    return {
        name: _drawn(name, pieces[name].shape, shape, generator).requires_grad_() for name in sorted(pieces)
    }


def _drawn(name: str, shape: tuple[int, ...], decoder: DecoderShape, generator: torch.Generator) -> Tensor:
    if name.endswith("linear_attn.norm.weight"):
        return torch.ones(shape)
    if "norm" in name:
        return torch.zeros(shape) if decoder.norm_is_zero_centred else torch.ones(shape)
    if name.endswith("A_log"):
        return torch.rand(shape, generator=generator).mul_(7).add_(1).log_()
    if name.endswith("dt_bias"):
        # Steps of 0.003 to 0.3: memories from a few tokens to a few hundred.
        step = torch.exp(torch.rand(shape, generator=generator) * 4.6 - 5.8)
        return step + torch.log(-torch.expm1(-step))
    noise = torch.randn(shape, generator=generator)
    if "embed_tokens" in name or "lm_head" in name:
        return noise * _EMBEDDING_SIZE
    inputs = shape[-1]
    last = name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight"))
    return noise * (inputs**-0.5 * (0.25 if last else 0.7))


class TargetTask:
    """The loss of a target over packed documents."""

    def __init__(
        self,
        shape: DecoderShape,
        weights: Mapping[str, Tensor],
        batches: Batches,
        losses: TargetLosses,
        *,
        recipe: str,
    ) -> None:
        """``recipe``: text that names everything else the outcome depends on."""
        self._net = TargetNet(shape, weights)
        self._weights, self._batches, self._losses, self._recipe = weights, batches, losses, recipe

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """All weights."""
        return self._weights

    @property
    def fingerprint(self) -> str:
        """Digest of the recipe."""
        said = json.dumps([self._recipe, asdict(self._losses)], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()

    def by_muon(self, name: str, parameter: Tensor) -> bool:
        """Matrices inside the layers; embeddings and the short convolution are none."""
        return parameter.dim() == 2 and "embed_tokens" not in name and "lm_head" not in name  # noqa: PLR2004

    def loss(self, step: int, generator: torch.Generator) -> tuple[Tensor, Figures]:
        """Weighted cross entropy of the rows of this step, and nats per token of each kind of text."""
        del generator  # rows are drawn by seed and step already
        batch = self._batches.at(step)
        read = self._net.read(batch.ids)
        nats, hits = self._next_token(read.normed, batch.ids)
        answer, real = batch.is_response[:, 1:], batch.is_real[:, 1:]
        weight = torch.where(answer, 1.0, self._losses.prompt_weight)
        loss = (nats * weight).sum() / weight.sum()
        made = answer & ~real
        figures = {
            "loss": loss.item(),
            "nats_made": nats[made].mean().item(),
            "nats_real": nats[real].mean().item(),
            "accuracy": hits[made].float().mean().item(),
        }
        if self._losses.mtp_weight:
            head, hits = self._second_token(read.normed, batch.ids, answer)
            loss = loss + self._losses.mtp_weight * head
            figures |= {"nats_mtp": head.item(), "accuracy_mtp": hits.item()}
        # A step may by chance have no real text at all; a mean over nothing is no figure.
        return loss, {name: value for name, value in figures.items() if value == value}  # noqa: PLR0124

    def _next_token(self, normed: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """[B, T - 1] each: nats, and whether the likeliest token was right."""
        logits = self._net.logits(normed[:, :-1])
        wanted = ids[:, 1:]
        nats = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none")
        return nats.view(wanted.shape), logits.detach().argmax(-1) == wanted

    def _second_token(self, normed: Tensor, ids: Tensor, answer: Tensor) -> tuple[Tensor, Tensor]:
        """The head's loss and accuracy over the answers of the first rows."""
        rows = max(1, round(len(ids) * self._losses.mtp_share))
        ids, normed, counted = ids[:rows], normed[:rows], answer[:rows, 1:]
        guessed = self._net.logits(self._net.mtp(normed[:, :-2], ids[:, 1:-1]))
        wanted = ids[:, 2:]
        nats = F.cross_entropy(guessed.flatten(0, 1), wanted.flatten(), reduction="none").view(wanted.shape)
        hits = guessed.detach().argmax(-1) == wanted
        return nats[counted].mean(), hits[counted].float().mean()


def write_target(
    directory: Path, config: Mapping[str, object], weights: Mapping[str, Tensor], tokenizer: Tokenizer
) -> None:
    """A checkpoint directory as the hub lays it out."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="ascii")
    ends = {name: tokenizer.token_to_id(name) for name in ("<|im_end|>", "<|endoftext|>", "<|pad|>")}
    generation = {
        "do_sample": False,
        "eos_token_id": [ends["<|im_end|>"], ends["<|endoftext|>"]],
        "pad_token_id": ends["<|pad|>"],
    }
    (directory / "generation_config.json").write_text(
        json.dumps(generation, indent=2) + "\n", encoding="ascii"
    )
    write_tokenizer(tokenizer, directory)
    tensors = {name: tensor.detach().contiguous() for name, tensor in weights.items()}
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
