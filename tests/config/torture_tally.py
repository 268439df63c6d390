"""The torture corpus counted: faults injected, detected and falsely reported, by the name of the fault.

For the reliability page: ``tally()`` reads every case and every real config with the product as it is.
"""

import runpy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from draftproof.config.raw import DEFECTS, RefusedConfig, parse_raw

__all__ = ["Tally", "tally"]

Case = tuple[str, bytes, tuple[str, ...]]

_HERE = Path(__file__)
_QUIET = {"json-no-final-newline"}  # see torture_corpus


@dataclass(frozen=True, slots=True)
class Tally:
    """One fault over all cases."""

    id: str
    injected: int
    """Cases that hold it."""

    detected: int
    """Of these, how many were told by exactly this name."""

    false_alarms: int
    """Files, faultless or with other faults, that were told to have it."""


def tally() -> tuple[Tally, ...]:
    """One row for each id of the catalogue that a case holds or a file was told to have, by name.

    The real configs of tests/configs stand among the faultless files.
    """
    corpus = runpy.run_path(str(_HERE.with_name("torture_corpus.py")))
    cases: Sequence[Case] = corpus["CASES"]
    real: list[Case] = [
        (path.name, path.read_bytes(), ()) for path in sorted((_HERE.parents[1] / "configs").glob("*.json"))
    ]
    judged = [(set(ids), _named(data)) for _, data, ids in [*cases, *real]]
    endings: Sequence[Case] = corpus["ENDINGS"]
    judged += [(set(ids), _named(data) | _quiet_named(data)) for _, data, ids in endings]
    rows = (
        Tally(
            id=defect_id,
            injected=sum(defect_id in held for held, _ in judged),
            detected=sum(defect_id in held and defect_id in told for held, told in judged),
            false_alarms=sum(defect_id not in held and defect_id in told for held, told in judged),
        )
        for defect_id in sorted(DEFECTS)
    )
    return tuple(row for row in rows if row.injected or row.false_alarms)


def _all_named(data: bytes) -> set[str]:
    try:
        return {oddity.id for oddity in parse_raw(data, "case").oddities}
    except RefusedConfig as refused:
        return {defect.id for defect in refused.defects}


def _named(data: bytes) -> set[str]:
    return _all_named(data) - _QUIET


def _quiet_named(data: bytes) -> set[str]:
    return _all_named(data) & _QUIET
