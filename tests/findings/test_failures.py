"""The table of error ids against the classes of every floor."""

import importlib
import re
from pathlib import Path

import draftproof
from draftproof.errors import DraftproofError
from draftproof.findings.catalogue import CATALOGUE
from draftproof.findings.failures import FAILURES

PACKAGE = Path(draftproof.__file__).parent
_ID = re.compile(r"^    id(?:: ClassVar\\[str\\])? = \"([a-z0-9-]+)\"".replace("\\\\", "\\"), re.MULTILINE)


def _classes(base: type[DraftproofError]) -> list[type[DraftproofError]]:
    return [base, *(found for sub in base.__subclasses__() for found in _classes(sub))]


def test_every_error_id_in_the_source_is_in_the_table_and_nothing_else() -> None:
    """An id that a user can meet is explained; the base class, never raised, has none."""
    written = {name for path in PACKAGE.rglob("*.py") for name in _ID.findall(path.read_text("utf-8"))}
    assert written - {DraftproofError.id} == FAILURES.keys() - {"fault"}


def test_the_exit_status_is_that_of_the_class() -> None:
    """What the table promises is what the class ends with."""
    for name in (
        "deploy.ledger.ledger",
        "deploy.ledger.objects",
        "deploy.fleet.plan",
        "deploy.launching.waiting",
        "deploy.writing.refusals",
        "deploy.writing.rollback",
    ):
        importlib.import_module(f"draftproof.{name}")
    for name in ("host.protocol", "host.replay", "host.ssh", "cache.fault", "config.raw"):
        importlib.import_module(f"draftproof.{name}")
    told = {kind.id: kind.exit_code for kind in _classes(DraftproofError) if kind is not DraftproofError}
    assert {name: FAILURES[name].exit_code for name in told if name in FAILURES} == told
    assert told.keys() == FAILURES.keys() - {"fault"}


def test_no_id_is_both_a_finding_and_an_error() -> None:
    """One id, one explanation."""
    assert not CATALOGUE.keys() & FAILURES.keys()
