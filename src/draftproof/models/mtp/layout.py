"""How a checkpoint spells its multi-token-prediction head, and what goes with each spelling.

Source: qwen: vLLM 0.33 qwen3_5_mtp, qwen3_next_mtp; deepseek: vLLM 0.33 deepseek_mtp, glm4_moe_mtp.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["DEEPSEEK", "QWEN", "QWEN_PREFIX", "HeadNames", "Layout", "find_head"]

QWEN_PREFIX = "mtp."
"""What the names of a head's tensors begin with, where it stands beside the trunk."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A family's way to build and to name a head."""

    name: str
    fc: str
    """[H, 2 H], the embedding's half first."""

    norms: Mapping[str, str]
    """``embedding_norm`` and ``hidden_norm`` of what it reads, ``norm`` of what it puts out."""

    is_shared: bool
    """All layers share fc and norms; otherwise each has its own, and may have a vocabulary of its own."""

    blanks_first: bool
    """The first pair of a sequence has no embedding: zeros stand in its place."""


QWEN = Layout(
    "qwen",
    fc="fc",
    norms=MappingProxyType(
        {
            "embedding_norm": "pre_fc_norm_embedding",
            "hidden_norm": "pre_fc_norm_hidden",
            "norm": "norm",
        }
    ),
    is_shared=True,
    blanks_first=False,
)
DEEPSEEK = Layout(
    "deepseek",
    fc="eh_proj",
    norms=MappingProxyType({"embedding_norm": "enorm", "hidden_norm": "hnorm", "norm": "shared_head.norm"}),
    is_shared=False,
    blanks_first=True,
)


@dataclass(frozen=True, slots=True)
class HeadNames:
    """The tensors of one head."""

    layout: Layout
    prefixes: tuple[str, ...]
    """What the names of each layer's tensors begin with, the first to guess first."""

    @property
    def num_layers(self) -> int:
        """Layers found."""
        return len(self.prefixes)

    def beside(self, layer: int) -> str:
        """What the names of the layer's fc and norms begin with."""
        return QWEN_PREFIX if self.layout.is_shared else self.prefixes[layer]

    def holds(self, name: str) -> bool:
        """Whether a tensor of the checkpoint is one of the head's."""
        return name.startswith(QWEN_PREFIX if self.layout.is_shared else self.prefixes)


def find_head(names: Iterable[str], trunk: str, depth: int) -> HeadNames | None:
    """The head among a checkpoint's tensors; None where there is none.

    Args:
        names: of all tensors.
        trunk: what the names of the trunk's tensors begin with (``model.``).
        depth: layers of the trunk; a DeepSeek head stands behind them.
    """
    known = list(names)
    if any(name.startswith(QWEN_PREFIX) for name in known):
        stem = f"{QWEN_PREFIX}layers."
        return HeadNames(QWEN, tuple(f"{stem}{i}." for i in range(_count(known, stem, 0) or 1)))
    stem = f"{trunk}layers."
    count = _count(known, stem, depth)
    return HeadNames(DEEPSEEK, tuple(f"{stem}{depth + i}." for i in range(count))) if count else None


def _count(names: list[str], stem: str, first: int) -> int:
    """Layers numbered on from ``first``."""
    count = 0
    while any(name.startswith(f"{stem}{first + count}.") for name in names):
        count += 1
    return count
