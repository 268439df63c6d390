"""What is measured in one sitting, the most telling first: a short idle time is spent from the top."""

from collections.abc import Sequence
from dataclasses import dataclass

from speed.arms import ARMS, BASELINE, OURS
from speed.models import MODELS

__all__ = ["PLAN", "Entry", "entries_of"]

COMPILED = ("transformers compiled", "draftproof compiled")
PLAIN = tuple(arm.name for arm in ARMS if arm.name not in COMPILED)


@dataclass(frozen=True, slots=True)
class Entry:
    """One part on one model."""

    part: str
    """``tokens``, ``forwards`` or ``growth``."""

    model: str
    dtype: str
    threads: int = 1
    arms: Sequence[str] = PLAIN
    rounds: int = 5
    tokens: int = 64


def _heavy(model: str, dtype: str, threads: int = 1) -> Entry:
    """Tokens of a model of a hundred million weights, of which the peers make a few a second here."""
    return Entry("tokens", model, dtype, threads, rounds=3, tokens=32)


PLAN = (
    Entry("tokens", "hybrid-tiny", "float32"),
    Entry("tokens", "dense-tiny", "float32"),
    _heavy("smollm2-135m", "bfloat16"),
    Entry("forwards", "smollm2-135m", "bfloat16", rounds=2),
    Entry("forwards", "hybrid-tiny", "float32", rounds=3),
    Entry("forwards", "dense-tiny", "float32", rounds=3),
    Entry("tokens", "hybrid-tiny", "float32", 2),
    Entry("tokens", "dense-tiny", "float32", 2),
    _heavy("smollm2-135m", "bfloat16", 2),
    Entry("tokens", "hybrid-tiny", "bfloat16"),
    Entry("growth", "hybrid-tiny", "float32"),
    Entry("growth", "dense-tiny", "float32"),
    _heavy("hybrid-100m", "float32"),
    _heavy("hybrid-100m", "float32", 2),
    Entry("tokens", "hybrid-tiny", "float32", arms=(OURS, BASELINE, *COMPILED)),
    _heavy("hybrid-100m", "bfloat16"),
    Entry("tokens", "hybrid-tiny", "bfloat16", 2),
    Entry("tokens", "dense-tiny", "bfloat16"),
    _heavy("smollm2-135m", "float32"),
)


def entries_of(
    part: str,
    models: Sequence[str],
    dtypes: Sequence[str],
    *,
    threads: int,
    arms: Sequence[str] | None,
    rounds: int,
    tokens: int,
) -> list[Entry]:
    """What a call by hand names, models in their order."""
    names = tuple(arm.name for arm in ARMS if arms is None or arm.name in arms)
    return [
        Entry(part, model, dtype, threads, names, rounds, tokens)
        for model in MODELS
        if model in models
        for dtype in dtypes
    ]
