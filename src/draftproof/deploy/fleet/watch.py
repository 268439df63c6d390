"""A plan read again and again: what changed since the last round, and the state as Prometheus metrics.

Source: Prometheus text exposition format 0.0.4: ``# HELP``, ``# TYPE``, label values with backslash, quote
and line feed escaped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from draftproof.deploy.fleet.verify import Verdict
from draftproof.errors import DraftproofError

__all__ = ["State", "changes", "metrics_text", "state_of"]


@dataclass(frozen=True, slots=True)
class State:
    """One file as the last round found it."""

    target: str
    is_in_place: bool
    level: int
    """0 to 7; 0 where it is not in place."""

    trouble: str
    """Empty in place; else ``wrong:<cause>`` or ``unreadable:<error id>``."""


def state_of(target: str, result: Verdict | DraftproofError) -> State:
    """The state that a verdict, or an error in its stead, stands for."""
    if isinstance(result, DraftproofError):
        return State(target, is_in_place=False, level=0, trouble=f"unreadable:{result.id}")
    if result.diagnosis is not None:
        return State(target, is_in_place=False, level=0, trouble=f"wrong:{result.diagnosis.cause.value}")
    return State(target, is_in_place=True, level=int(result.level), trouble="")


def changes(before: Mapping[str, State], now: Sequence[State]) -> list[State]:
    """The states that differ from the round before; all of them in the first round."""
    return [state for state in now if state.target not in before or before[state.target] != state]


def metrics_text(states: Sequence[State], *, rounds: int, finished_s: float) -> str:
    """All states as metrics.

    Args:
        states: Of the last round.
        rounds: Rounds finished so far.
        finished_s: When the last one was, in seconds since the epoch.
    """
    lines = [
        "# HELP draftproof_file_in_place Whether the intended bytes are at the target (1) or not (0).",
        "# TYPE draftproof_file_in_place gauge",
        *(f"draftproof_file_in_place{_labels(state)} {int(state.is_in_place)}" for state in states),
        "# HELP draftproof_file_level The level of proof reached, 0 to 7.",
        "# TYPE draftproof_file_level gauge",
        *(f"draftproof_file_level{_labels(state)} {state.level}" for state in states),
        "# HELP draftproof_rounds_total Rounds of reading finished.",
        "# TYPE draftproof_rounds_total counter",
        f"draftproof_rounds_total {rounds}",
        "# HELP draftproof_last_round_timestamp_seconds When the last round was finished.",
        "# TYPE draftproof_last_round_timestamp_seconds gauge",
        f"draftproof_last_round_timestamp_seconds {finished_s:.3f}",
    ]
    return "\n".join(lines) + "\n"


def _labels(state: State) -> str:
    return f'{{target="{_escaped(state.target)}",trouble="{_escaped(state.trouble)}"}}'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
