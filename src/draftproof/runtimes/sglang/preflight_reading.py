"""SGLang asked before a start: DFlash alone has functions that can be asked without its kernels."""

from collections.abc import Sequence

from draftproof.config.drafter import Method
from draftproof.errors import UsageError
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.effective import Effective
from draftproof.runtimes.interpreter import NoAnswer
from draftproof.runtimes.pair import Pair, ask_about

__all__ = ["preflight"]

_ASKED = (Method.DFLASH, Method.DFLASH2)


def preflight(
    python: EnginePython, pairs: Sequence[Pair], *, timeout_seconds: float
) -> list[Effective] | NoAnswer:
    """What the SGLang of ``python`` would make of each pair; the reason where it cannot be asked.

    Raises:
        UsageError: a drafter of another method.
    """
    for pair in pairs:
        if pair.drafter.method.value not in _ASKED:
            raise UsageError(
                pair.drafter_path,
                expected="a DFlash drafter: of other methods SGLang resolves nothing before it loads them",
                found=str(pair.drafter.method.value),
                where=pair.drafter_path,
                means="SGLang was not asked",
                next_step="start it, and look at the workers (draftproof views --url)",
            )
    requests = [
        {
            "drafter": pair.drafter_path,
            "target": pair.target_path,
            "num_draft_tokens": pair.num_draft_tokens,
        }
        for pair in pairs
    ]
    return ask_about(python, "sglang.preflight", pairs, requests, timeout_seconds=timeout_seconds)
