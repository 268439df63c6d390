"""The same decoder with its layers run through ``torch.compile``: fewer, larger kernels, same results.

The first forward of each kind (prompt, one token, draft) takes tens of seconds to compile. On a CPU it does
not pay (measured in docs/reference/speed.md); it is for devices where starting a kernel is what costs.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import torch
from torch.utils._triton import has_triton

from draftproof.errors import UsageError
from draftproof.models.batch import Rows
from draftproof.models.decoder import Decoder
from draftproof.models.forward import Block, Forward
from draftproof.names import HiddenIndex

__all__ = ["CompiledDecoder", "check_compiler"]


class CompiledDecoder(Decoder):
    """A decoder that compiles what runs between the embedding and the logits.

    Inheritance for once: the calls that check, begin and commit must be the plain decoder's own.
    """

    __slots__ = ("_compiled",)

    def __init__(self, plain: Decoder, mode: str | None = None) -> None:
        """Share the plain decoder's weights; ``check_compiler`` comes first.

        Args:
            plain: the target.
            mode: of ``torch.compile``: None, or ``reduce-overhead`` for CUDA graphs, one for each shape met.
        """
        for name in Decoder.__slots__:
            setattr(self, name, getattr(plain, name))
        self._compiled: Any = torch.compile(super()._run, mode=mode)

    def _run(
        self,
        blocks: Sequence[Block],
        rows: Rows,
        capture: Sequence[HiddenIndex],
        num_logits: int | None,
        *,
        with_normed: bool,
    ) -> list[Forward]:
        found: list[Forward] = self._compiled(blocks, rows, capture, num_logits, with_normed=with_normed)
        return found


def check_compiler(device: torch.device) -> None:
    """Look for what ``torch.compile`` hands its code to: a C++ compiler for a CPU, Triton for a GPU.

    Raises:
        UsageError: it is not there.
    """
    if device.type == "cuda":
        if not has_triton():
            raise _missing("triton, for this GPU", "none that torch can use", "pip install triton")
        return
    builder: Any = import_module("torch._inductor.cpp_builder")  # seconds that only this option should cost
    try:
        builder.get_cpp_compiler()
    except RuntimeError:  # its InvalidCxxCompiler
        raise _missing("a C++ compiler (g++, clang++ or $CXX)", "none", "install g++") from None


def _missing(expected: str, found: str, remedy: str) -> UsageError:
    return UsageError(
        "compile",
        expected=expected,
        found=found,
        where="loading an engine with compile=True",
        means="torch.compile has nothing to build its kernels with",
        next_step=f"{remedy}, or load without compile",
    )
