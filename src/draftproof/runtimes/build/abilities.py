"""What a build can do, by its own source, held against what its version is known for."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from draftproof.config.raw import JsonValue
from draftproof.runtimes.build.features import READ, Feature, Part
from draftproof.runtimes.build.reading import Said
from draftproof.runtimes.build.version import parse_version

__all__ = ["Ability", "Outcome", "abilities"]


class Outcome(StrEnum):
    """What the source says of a feature."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Ability:
    """One feature in one build."""

    feature: Feature
    parts: tuple[tuple[Part, bool | None], ...]
    """Whether each part is there; None where its code has a form that was never read, or cannot be parsed."""

    expected: bool | None
    """What this version has as published; None outside the versions read."""

    @property
    def outcome(self) -> Outcome:
        """The parts together."""
        told = [is_there for _, is_there in self.parts]
        if None in told:
            return Outcome.UNKNOWN
        return Outcome.YES if all(told) else Outcome.PARTLY if any(told) else Outcome.NO

    def without(self) -> list[str]:
        """The places of the parts that are not there."""
        return [f"{part.module}:{part.symbol or '*'}" for part, is_there in self.parts if is_there is False]

    def as_dict(self) -> dict[str, JsonValue]:
        """The entry of ``features`` in ``--json``."""
        return {
            "id": self.feature.id,
            "title": self.feature.title,
            "outcome": self.outcome.value,
            "expected": self.expected,
            "parts": [
                {"module": part.module, "symbol": part.symbol, "is_there": is_there}
                for part, is_there in self.parts
            ],
            "source": self.feature.source,
        }


def abilities(features: Sequence[Feature], answers: Sequence[Said], version: str | None) -> list[Ability]:
    """Each feature with its answers, which come in the order in which they were asked.

    Raises:
        ValueError: there is not one answer for each question.
    """
    left = list(answers)
    found = []
    for feature in features:
        mine, left = left[: len(feature.parts)], left[len(feature.parts) :]
        parts = tuple((part, _is_there(part, said)) for part, said in zip(feature.parts, mine, strict=True))
        found.append(Ability(feature, parts, _expected(feature, version)))
    if left:
        raise ValueError(f"{len(left)} answers that nobody asked for")
    return found


def _is_there(part: Part, said: Said) -> bool | None:
    if said.why:
        return None
    if said.file is None or not said.has_symbol:
        return False
    if not part.has:
        return True
    if any(said.forms[: len(part.has)]):
        return True
    return None if part.lacks and not any(said.forms[len(part.has) :]) else False


def _expected(feature: Feature, version: str | None) -> bool | None:
    found = parse_version(version) if version else None
    if found is None or found.pre or found.dev is not None or found.post is not None:
        return None
    first, last = READ[feature.engine]
    if not first <= found.release <= last:
        return None
    if found.release >= feature.since:
        return True
    return False if feature.last_without is not None and found.release <= feature.last_without else None
