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

from draftproof.models.target.shape import DecoderShape
from draftproof.training.batches import Batches
from draftproof.training.loop import Figures
from draftproof.training.nets.target import TargetNet
from draftproof.training.vocabulary import write_tokenizer

__all__ = ["TargetLosses", "TargetTask", "write_target"]


@dataclass(frozen=True, slots=True)
class TargetLosses:
    """What counts how much."""

    prompt_weight: float
    """Of a token inside a prompt; one of an answer counts 1. Prompts name what cannot be foreseen."""

    mtp_weight: float
    """Of the head's loss beside the trunk's; 0 trains no head."""

    mtp_share: float
    """How many of the rows the head reads."""


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
        batch = self._batches.at(step).to(self._net.device)
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
        logits = self._net.logits(normed[:, :-1]).float()
        wanted = ids[:, 1:]
        nats = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none")
        return nats.view(wanted.shape), logits.detach().argmax(-1) == wanted

    def _second_token(self, normed: Tensor, ids: Tensor, answer: Tensor) -> tuple[Tensor, Tensor]:
        """The head's loss and accuracy over the answers of the first rows."""
        rows = max(1, round(len(ids) * self._losses.mtp_share))
        ids, normed, counted = ids[:rows], normed[:rows], answer[:rows, 1:]
        guessed = self._net.logits(self._net.mtp(normed[:, :-2], ids[:, 1:-1])).float()
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
    tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in weights.items()}
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
