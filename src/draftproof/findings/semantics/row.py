"""Semantic: how one quantity of a drafter comes about in a span of an engine's versions."""

from dataclasses import dataclass
from enum import StrEnum

from draftproof.config.drafter import Method
from draftproof.findings.versions import Versions

__all__ = [
    "ALL",
    "ANY",
    "AUTOREGRESSIVE",
    "BLOCK",
    "DFLASH",
    "EAGLE",
    "NATIVE",
    "SPECULATORS",
    "Quantity",
    "Semantic",
    "span",
]


class Quantity(StrEnum):
    """What a row is about; the names are those of an effective record."""

    TAPS = "aux_layers"
    MASK = "mask_id"
    DRAFT_TOKENS = "k"
    WINDOW = "window"
    CAUSAL = "causal"
    BLOCK_DROP = "block_drop"
    RUNNER = "runner"
    DRAFTER = "drafter_cls"
    EMBEDDINGS = "shared_embed"
    HEAD = "shared_head"


@dataclass(frozen=True, slots=True)
class Semantic:
    """One quantity in one span of versions."""

    id: str
    """Names the rule; ``runtimes.semantics`` computes it."""

    quantity: Quantity
    versions: Versions
    methods: frozenset[Method]
    dialects: frozenset[str]
    """Empty for any."""

    says: str
    source: str

    @property
    def told(self) -> str:
        """The row in a sentence, with where it was read."""
        return f"{self.says} ({self.source})"

    def concerns(self, method: Method, dialect: str) -> bool:
        """Whether the row is about such a drafter."""
        return method in self.methods and (not self.dialects or dialect in self.dialects)


DFLASH = frozenset({Method.DFLASH})
BLOCK = frozenset({Method.DFLASH, Method.DFLASH2})
EAGLE = frozenset({Method.EAGLE3, Method.PEAGLE})
AUTOREGRESSIVE = frozenset({*EAGLE, Method.MTP, Method.DRAFT_MODEL})
ALL = frozenset(Method)
NATIVE = frozenset({"native", "modelopt"})
SPECULATORS = frozenset({"speculators"})
ANY: frozenset[str] = frozenset()


def span(engine: str, since: str, until: str) -> Versions:
    """Versions from ``since`` on, ``until`` not among them."""
    first, last = (tuple(int(part) for part in text.split(".")) for text in (since, until))
    return Versions(engine, first, last)
