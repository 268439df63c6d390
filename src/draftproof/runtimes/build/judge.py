"""What is wrong with a build: which copy, whether it is whole, whether its parts belong together."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from draftproof.findings.catalogue import found
from draftproof.findings.check import Report
from draftproof.findings.finding import Finding, NotLooked, Severity
from draftproof.findings.place import at_file
from draftproof.runtimes.build.abilities import Ability, Outcome, abilities
from draftproof.runtimes.build.asking import features_of
from draftproof.runtimes.build.behaviour import behaves
from draftproof.runtimes.build.judge_copies import copies
from draftproof.runtimes.build.judge_operators import operators
from draftproof.runtimes.build.judge_parts import parts
from draftproof.runtimes.build.judge_whole import whole
from draftproof.runtimes.build.reading import Build
from draftproof.runtimes.effective import Effective
from draftproof.runtimes.interpreter import NoAnswer

__all__ = ["Judged", "judge_build"]

_ORDER = list(Severity)


@dataclass(frozen=True, slots=True)
class Judged:
    """A build and everything found about it."""

    build: Build | NoAnswer
    abilities: tuple[Ability, ...]
    report: Report


def judge_build(
    build: Build | NoAnswer,
    *,
    python: str,
    needs: Sequence[str] = (),
    commit: str | None = None,
    behaviour: Effective | NoAnswer | None = None,
) -> Judged:
    """Every rule put to the build.

    Args:
        build: The answer of ``python``.
        python: How the interpreter was named.
        needs: Ids of features that must be there.
        commit: The commit that the build is meant to be of, whole or its beginning.
        behaviour: What its own resolvers made of a made-up drafter; None where they were not asked.
    """
    if isinstance(build, NoAnswer):
        return _unseen(build, NotLooked("the build", f"{python}: {build.reason}", is_required=True))
    if build.imported.kind in ("absent", "error"):
        why = build.imported.why or f"this Python finds no {build.engine} to import"
        return _unseen(build, NotLooked("the build", f"{python}: {why}", is_required=True))
    try:
        can = (
            abilities(features_of(build.engine), build.contents.answers, build.version)
            if build.contents
            else []
        )
    except ValueError as error:
        return _unseen(build, NotLooked("the build", f"{python}: {error}", is_required=True))
    answers = [
        *copies(build),
        *whole(build),
        *parts(build, commit),
        *operators(build),
        *_features(build, can, needs),
    ]
    if behaviour is not None and can:
        answers += behaves(behaviour, can, build.imported.root)
    findings = sorted(
        (one for one in answers if isinstance(one, Finding)), key=lambda one: _ORDER.index(one.severity)
    )
    lacks = tuple(one for one in answers if isinstance(one, NotLooked))
    return Judged(build, tuple(can), Report(tuple(findings), lacks))


def _unseen(build: Build | NoAnswer, lack: NotLooked) -> Judged:
    return Judged(build, (), Report((), (lack,)))


def _features(build: Build, can: Iterable[Ability], needs: Sequence[str]) -> Iterator[Finding | NotLooked]:
    where = at_file(build.imported.root)
    for ability in can:
        feature, outcome = ability.feature, ability.outcome
        name = f"{feature.id}: {feature.title}"
        is_needed = feature.id in needs
        if outcome is Outcome.UNKNOWN:
            yield NotLooked(
                f"feature {feature.id}", "its code has a form that is not known here", is_required=is_needed
            )
        elif outcome is Outcome.PARTLY:
            there = len(ability.parts) - len(ability.without())
            told = f"{there} of {len(ability.parts)} parts; not there: {', '.join(ability.without())}"
            yield found("build-feature-partial", name, expected="all of it or nothing", found=told, at=where)
        elif is_needed and outcome is Outcome.NO:
            yield found("build-feature-needed", name, expected="there", found="not there", at=where)
        elif ability.expected is True and outcome is Outcome.NO:
            told = f"{build.engine} {build.version} has it as published ({feature.source})"
            yield found(
                "build-feature-missing", name, expected="there", found="not there", at=where, detail=told
            )
        elif ability.expected is False and outcome is Outcome.YES:
            told = f"{build.engine} {build.version} has it not as published ({feature.source})"
            yield found(
                "build-feature-early", name, expected="not there", found="there", at=where, detail=told
            )
