"""Pair: a drafter and a target as an engine is given them, and the question put to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from draftproof.config.drafter import DrafterConfig
from draftproof.config.raw import JsonValue
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.effective import Effective
from draftproof.runtimes.interpreter import NoAnswer
from draftproof.runtimes.record import parse_records
from draftproof.runtimes.semantics import complete

__all__ = ["Pair", "ask_about"]


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


def ask_about(
    python: EnginePython,
    program: str,
    pairs: Sequence[Pair],
    requests: Sequence[Mapping[str, object]],
    *,
    timeout_seconds: float,
) -> list[Effective] | NoAnswer:
    """What the engine of ``python`` would make of each pair; the reason where it cannot be asked."""
    asked: list[dict[str, object]] = [dict(one) for one in requests]
    answer = python.ask(program, {"pairs": asked}, timeout_seconds=timeout_seconds)
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
