"""vLLM asked before a start: the request for a pair, in vLLM's own words."""

from collections.abc import Sequence

from draftproof.config.drafter import Method
from draftproof.errors import UsageError
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.effective import Effective
from draftproof.runtimes.interpreter import NoAnswer
from draftproof.runtimes.pair import Pair, ask_about

__all__ = ["preflight", "speculative_config"]

_METHODS = {
    Method.DFLASH: "dflash",
    Method.DFLASH2: "dflash",
    Method.EAGLE3: "eagle3",
    Method.PEAGLE: "eagle3",
    Method.MTP: "mtp",
    Method.DSPARK: "dspark",
    Method.DRAFT_MODEL: "draft_model",
}


def speculative_config(pair: Pair) -> dict[str, object]:
    """Method and model as vLLM calls them.

    Raises:
        UsageError: vLLM has no such method, or nobody names the number of draft tokens.
    """
    method = pair.drafter.method.value
    if method is None or method not in _METHODS:
        raise UsageError(
            pair.drafter_path,
            expected="a drafter that vLLM has a method for",
            found=method.value if method else "no method",
            where=pair.drafter_path,
            means="vLLM was not asked",
            next_step=f"draftproof facts {pair.drafter_path}",
        )
    if pair.draft_tokens is None:
        raise UsageError(
            "--k",
            expected="the number of tokens drafted per step: neither the file nor an option names it",
            found="nothing",
            where="command line",
            means="vLLM was not asked",
            next_step="add --k 3, or what the server is to be started with",
        )
    parallel = {"parallel_drafting": True} if method is Method.PEAGLE else {}
    is_inside = method is Method.MTP and pair.drafter.dialect == "target"
    return {
        "method": _METHODS[method],
        "drafter": None if is_inside else pair.drafter_path,
        "num_draft_tokens": pair.draft_tokens,
        "more": {**parallel, **pair.more},
    }


def preflight(
    python: EnginePython, pairs: Sequence[Pair], *, timeout_seconds: float
) -> list[Effective] | NoAnswer:
    """What the vLLM of ``python`` would make of each pair; the reason where it cannot be asked.

    Raises:
        UsageError: as ``speculative_config``.
    """
    requests = [
        {**speculative_config(pair), "target": pair.target_path, "engine_args": dict(pair.engine_args)}
        for pair in pairs
    ]
    return ask_about(python, "vllm.preflight", pairs, requests, timeout_seconds=timeout_seconds)
