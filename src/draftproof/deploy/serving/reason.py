"""A value with its reason: nothing that is rendered stands without one."""

from dataclasses import dataclass

from draftproof.config.raw import JsonValue

__all__ = ["Loss", "Said", "Unlooked"]


@dataclass(frozen=True, slots=True)
class Said:
    """A value, why it is that one, and the place that decides it."""

    value: JsonValue
    reason: str
    source: str
    """``plan.toml#/serve/dtype``, ``config.json#/block_size line 4``, or a rule with its origin."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Something intended that this engine, at this version, does not do."""

    about: str
    value: JsonValue
    why: str

    def as_dict(self) -> dict[str, JsonValue]:
        """For ``--json``."""
        return {"about": self.about, "value": self.value, "why": self.why}


@dataclass(frozen=True, slots=True)
class Unlooked:
    """Something that could not be looked at; never to be read as fine."""

    about: str
    reason: str

    def as_dict(self) -> dict[str, JsonValue]:
        """For ``--json``."""
        return {"check": self.about, "reason": self.reason}
