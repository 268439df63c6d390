"""The weights a drafter starts from: drawn with a seed, or those of a drafter there already."""

from pathlib import Path

import torch
from safetensors import safe_open
from torch import nn

from draftproof.errors import CouldNotLook, RefusedInput

__all__ = ["draw_weights", "take_weights"]

_INTO_RESIDUAL = ("o_proj", "down_proj")


def draw_weights(net: nn.Module, seed: int) -> None:
    """Noise that keeps activations near 1; what is added to the residual stream starts small.

    Norms stay as they were made, and so do biases' zeros.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in sorted(net.named_parameters()):
            if weight.dim() > 1:
                scale = 0.3 if any(part in name for part in _INTO_RESIDUAL) else 1.0
                noise = torch.randn(weight.shape, generator=generator)
                weight.copy_(noise * (scale * weight.shape[1] ** -0.5))
            elif name.endswith("bias"):
                weight.zero_()


def take_weights(net: nn.Module, file: Path, prefix: str = "") -> None:
    """The weights of a file, whose names less ``prefix`` must be the net's.

    Raises:
        CouldNotLook: there is no such file.
        RefusedInput: a tensor is missing or of another shape.
    """
    if not file.is_file():
        raise CouldNotLook(
            "start",
            expected="a checkpoint to go on from",
            found="no such file",
            where=str(file),
            means="there are no weights to start with",
            next_step="leave start out to draw them",
        )
    with safe_open(file, "pt") as stored, torch.no_grad():
        names = set(stored.keys())
        for name, weight in net.named_parameters():
            shape = tuple(stored.get_slice(prefix + name).get_shape()) if prefix + name in names else None
            if shape != tuple(weight.shape):
                raise RefusedInput(
                    prefix + name,
                    expected=f"a tensor {list(weight.shape)}",
                    found="none" if shape is None else str(list(shape)),
                    where=str(file),
                    means="the recipe describes another drafter than the one to start from",
                    next_step="give the recipe its sizes, or leave start out",
                )
            weight.copy_(stored.get_tensor(prefix + name))
