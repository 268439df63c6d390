"""Where a run computes, and how exactly: the table ``[machine]`` of every recipe."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from draftproof.errors import CouldNotLook

__all__ = ["Machine", "exact"]


@dataclass(frozen=True, slots=True)
class Machine:
    """A device and the precision of products; weights and the optimiser keep 32 bits whatever it is."""

    device: Literal["cpu", "cuda"] = "cpu"
    dtype: Literal["float32", "bfloat16"] = "float32"
    """``bfloat16``: matrix products by autocast; norms, losses and the delta rule stay in 32 bits."""

    def found(self, recipe: Path) -> torch.device:
        """The device, which is there.

        Raises:
            CouldNotLook: the recipe asks for CUDA and torch sees none.
        """
        if self.device == "cuda" and not torch.cuda.is_available():
            raise CouldNotLook(
                "/machine/device",
                expected="a GPU that torch can use",
                found=f"none, by torch {torch.__version__}",
                where=f"{recipe}#/machine/device",
                means="nothing was trained",
                next_step='device = "cpu", or run where nvidia-smi and a CUDA build of torch see one',
            )
        return torch.device(self.device)

    def arithmetic(self) -> AbstractContextManager[None]:
        """In here, products have the machine's precision."""
        return torch.autocast(self.device, torch.bfloat16, enabled=self.dtype == "bfloat16")


def exact(device: torch.device) -> AbstractContextManager[None]:
    """In here, everything keeps the precision it has, whatever the machine's."""
    return torch.autocast(device.type, enabled=False)
