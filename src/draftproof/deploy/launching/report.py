"""What a launch came to: each stage in order, findings, what could not be looked at, what still runs."""

from dataclasses import dataclass, field

from draftproof.config.raw import JsonValue
from draftproof.deploy.serving.rendering import Rendering
from draftproof.findings.finding import Finding, NotLooked, Severity
from draftproof.runtimes.effective import Effective

__all__ = ["Launch", "Stage"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a launch."""

    name: str
    """``files``, ``bytes``, ``start``, ``effective``, ``first request``, ``probe``, ``stop``, ``serve``."""

    told: str
    """What came of it, in one line."""

    is_good: bool

    def as_dict(self) -> dict[str, JsonValue]:
        """For ``--json``."""
        return {"name": self.name, "told": self.told, "good": self.is_good}


@dataclass(slots=True)
class Launch:
    """The report of one launch; stages are added as they come."""

    made: Rendering
    argv: tuple[str, ...]
    log: str
    stages: list[Stage] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    not_looked: list[NotLooked] = field(default_factory=list)
    effective: tuple[Effective, ...] = ()
    fingerprints: list[str] = field(default_factory=list)
    acceptance: dict[str, object] | None = None
    pid: int | None = None
    """Of what was left running; None where nothing was."""

    @property
    def is_wrong(self) -> bool:
        """Whether anything but notes was found, a file is not in place, or this engine loses something."""
        grave = any(finding.severity is not Severity.NOTE for finding in self.findings)
        misplaced = any(stage.name == "files" and not stage.is_good for stage in self.stages)
        return grave or misplaced or bool(self.made.losses)

    @property
    def exit_code(self) -> int:
        """1 where it is wrong, 3 where something required could not be looked at, else 0."""
        if self.is_wrong:
            return 1
        is_blind = any(entry.is_required for entry in self.not_looked) or bool(self.made.unlooked)
        return 3 if is_blind else 0

    def as_dict(self) -> dict[str, object]:
        """The one object of ``--json``."""
        made = self.made
        return {
            "schema": "draftproof.launch/1",
            "plan": str(made.plan.origin),
            "engine": made.engine.name,
            "version": ".".join(map(str, made.engine.version)),
            "argv": [*self.argv],
            "log": self.log,
            "stages": [stage.as_dict() for stage in self.stages],
            "findings": [finding.as_dict() for finding in self.findings],
            "losses": [loss.as_dict() for loss in made.losses],
            "not_looked": [
                *(entry.as_dict() for entry in self.not_looked),
                *(entry.as_dict() for entry in made.unlooked),
            ],
            "effective": [record.as_dict() for record in self.effective],
            "acceptance": self.acceptance,
            "pid": self.pid,
        }
