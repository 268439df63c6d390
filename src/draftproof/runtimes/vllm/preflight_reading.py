"""vLLM asked before a start: the request for a pair, and the record that its answer gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.raw import JsonValue
from draftproof.errors import UsageError
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.effective import Effective
from draftproof.runtimes.interpreter import NoAnswer
from draftproof.runtimes.record import parse_records
from draftproof.runtimes.semantics import complete

__all__ = ["Pair", "preflight", "speculative_config"]

_METHODS = {
    Method.DFLASH: "dflash",
    Method.DFLASH2: "dflash",
    Method.EAGLE3: "eagle3",
    Method.PEAGLE: "eagle3",
    Method.MTP: "mtp",
    Method.DSPARK: "dspark",
    Method.DRAFT_MODEL: "draft_model",
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A drafter and a target as paths on the machine that serves."""

    drafter_path: str
    target_path: str
    drafter: DrafterConfig
    num_draft_tokens: int | None
    """As asked; None for what the file says."""

    more: Mapping[str, JsonValue] = field(default_factory=dict)
    """Further keys of the speculative config."""

    engine_args: Mapping[str, JsonValue] = field(default_factory=dict)
    """Further arguments of the engine, e.g. ``max_model_len``."""

    @property
    def draft_tokens(self) -> int | None:
        """The number asked for, else what the file says."""
        return self.num_draft_tokens or self.drafter.num_draft_tokens.value


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
    """What the vLLM of ``python`` would make of each pair; the reason where it cannot be asked."""
    asked: list[dict[str, object]] = [_request(pair) for pair in pairs]
    answer = python.ask("vllm.preflight", {"pairs": asked}, timeout_seconds=timeout_seconds)
    told = answer if isinstance(answer, NoAnswer) else parse_records(answer.body, stage="preflight")
    if isinstance(told, NoAnswer):
        return told
    if len(told) != len(pairs):
        return NoAnswer(f"{len(told)} records where {len(pairs)} were asked for")
    return [
        complete(
            one.effective,
            pair.drafter,
            tensors=one.tensors,
            num_draft_tokens=pair.draft_tokens,
            missing=one.missing,
        )
        for one, pair in zip(told, pairs, strict=True)
    ]


def _request(pair: Pair) -> dict[str, object]:
    return {
        **speculative_config(pair),
        "target": pair.target_path,
        "engine_args": dict(pair.engine_args),
    }
