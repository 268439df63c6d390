"""The words of an expected table: which tensors an architecture reads, by which names and shapes."""

from dataclasses import dataclass, field

from draftproof.config.source import Sourced

__all__ = ["Dim", "ExpectedTable", "ExpectedTensor", "Part", "times"]

Dim = int | None
"""Length of one dimension; None where the config does not tell it."""


@dataclass(frozen=True, slots=True)
class ExpectedTensor:
    """One parameter of the architecture."""

    name: str
    """As most checkpoints spell it."""

    alternatives: tuple[str, ...]
    """Other spellings that engines read as the same parameter."""

    shape: tuple[Dim, ...] | None
    """None where not even the number of dimensions is known."""

    required: bool
    """Whether the drafter is broken without it; otherwise an engine fills it in a known way."""

    why: str
    """What it is, and for an optional one who fills it."""

    part: str
    """The piece of the model it belongs to: ``fc``, ``layers.3``, ``mtp``."""

    stands_for: tuple[str, ...] = ()
    """Parameters that this one replaces where it is present (a fused ``qkv_proj``)."""


@dataclass(frozen=True, slots=True)
class ExpectedTable:
    """All parameters of one architecture."""

    family: str
    entries: tuple[ExpectedTensor, ...]
    ignored: tuple[tuple[str, str], ...]
    """(prefix, reason): names that other parts of the model read, not judged here."""

    unknown: str | None
    """Why there is no table at all; then ``entries`` is empty."""

    partial: str | None
    """Why names outside the table are not judged: the table covers only a part of the model."""

    is_drafter: bool


@dataclass(slots=True)
class Part:
    """Collects the entries of one table; names get every prefix that engines strip or add."""

    prefixes: tuple[str, ...]
    """Usual prefix first."""

    entries: list[ExpectedTensor] = field(default_factory=list)

    def add(
        self,
        part: str,
        name: str,
        shape: tuple[Dim, ...] | None,
        why: str,
        *,
        required: bool = True,
        aliases: tuple[str, ...] = (),
        stands_for: tuple[str, ...] = (),
    ) -> None:
        """Add one parameter; ``name`` and ``aliases`` are given without prefix."""
        spellings = [prefix + spelt for spelt in (name, *aliases) for prefix in self.prefixes]
        replaced = tuple(self.prefixes[0] + n for n in stands_for)
        self.entries.append(
            ExpectedTensor(spellings[0], tuple(spellings[1:]), shape, required, why, part, replaced)
        )


def times(*factors: Sourced[int] | Dim) -> Dim:
    """The product of dimensions; None as soon as one of them is not known."""
    product = 1
    for factor in factors:
        value = factor.value if isinstance(factor, Sourced) else factor
        if value is None:
            return None
        product *= value
    return product
