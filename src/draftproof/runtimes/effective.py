"""Effective: what an engine makes of a drafter, asked before a start or read out of the worker that serves.

One record whatever the engine (``draftproof.effective/1``); windows count the query as Hugging Face does,
taps are hidden indexes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from draftproof.config.raw import JsonValue

__all__ = ["FACTS", "Effective", "Fact", "How", "LayerFacts", "unknown"]

FACTS = (
    "method",
    "runner",
    "drafter_cls",
    "draft_model_cls",
    "k",
    "mask_id",
    "aux_requested",
    "aux_layers",
    "fc_features",
    "shared_embed",
    "shared_head",
    "block_drop",
    "rejection_sample_method",
    "draft_sample_method",
    "num_target_layers",
)
"""Names of the facts in the order they are shown; an engine may tell more."""


class How(StrEnum):
    """How a fact came about."""

    ASKED = "asked"
    """The engine's own function said so."""

    READ = "read"
    """Read from the object that serves."""

    DERIVED = "derived"
    """The engine has no such function here; a row of the table of semantics answers."""

    RAISED = "raised"
    """The engine's own function raises: so would a start."""

    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Fact:
    """One value with its source."""

    value: JsonValue
    source: str
    """The function or attribute; without a value, the reason."""

    how: How

    @property
    def is_known(self) -> bool:
        """Whether there is a value, be it null."""
        return self.how not in (How.UNKNOWN, How.RAISED)

    def as_dict(self) -> dict[str, JsonValue]:
        """As in ``--json``."""
        return {"value": self.value, "how": self.how.value, "source": self.source}


def unknown(reason: str) -> Fact:
    """A fact that could not be had. Never to be read as "fine"."""
    return Fact(None, reason, How.UNKNOWN)


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """How one drafter layer attends."""

    window: Fact
    """Tokens seen, the query included; null for the whole context."""

    causal: Fact
    """Whether a slot of the block sees only slots up to its own."""


@dataclass(frozen=True, slots=True)
class Effective:
    """One engine's record of one drafter."""

    engine: str
    version: str
    path: str
    """Where the engine was imported from."""

    stage: str
    """``preflight`` or ``running``."""

    rank: int | None
    """The worker's rank; None before a start."""

    facts: Mapping[str, Fact]
    layers: tuple[LayerFacts, ...] | None
    """None where not even their number is known."""

    refusal: str | None
    """The engine's own words where it does not take the pair."""

    config: Mapping[str, JsonValue] | None
    """The drafter's config as the engine holds it."""

    def fact(self, name: str) -> Fact:
        """The fact of that name; an unknown where nobody told it."""
        found = self.facts.get(name)
        return found if found is not None else unknown(f"not told by the {self.stage} record")

    @property
    def flat(self) -> dict[str, Fact]:
        """Every fact under one name, layers as ``layers/0/window``."""
        named = {
            name: self.facts[name]
            for name in (*FACTS, *sorted(set(self.facts) - set(FACTS)))
            if name in self.facts
        }
        for index, layer in enumerate(self.layers or ()):
            named |= {f"layers/{index}/window": layer.window, f"layers/{index}/causal": layer.causal}
        return named

    def as_dict(self) -> dict[str, JsonValue]:
        """The record for ``--json``."""
        layers: list[JsonValue] | None = None
        if self.layers is not None:
            layers = [{"window": one.window.as_dict(), "causal": one.causal.as_dict()} for one in self.layers]
        return {
            "schema": "draftproof.effective/1",
            "engine": self.engine,
            "version": self.version,
            "path": self.path,
            "stage": self.stage,
            "rank": self.rank,
            **{name: self.fact(name).as_dict() for name in FACTS},
            "layers": layers,
            "refusal": self.refusal,
        }
