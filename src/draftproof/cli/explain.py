"""``draftproof explain``: what a finding means, how much it has been measured to cost, what to do."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.output import emit_json, line

if TYPE_CHECKING:
    from draftproof.findings.failures import Failure
    from draftproof.findings.kind import Kind

__all__ = ["explain"]

_SCHEMA = "draftproof.explain/1"


def explain(
    finding_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="An id of a finding or an error; without one, all.")
    ] = None,
    *,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the reference page of all ids.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Say what a finding means, what it has been measured to cost, and what to do."""
    from draftproof.findings.catalogue import CATALOGUE
    from draftproof.findings.explain import as_dict, explained, failure_as_dict, reference_page
    from draftproof.findings.failures import FAILURES, Failure

    if finding_id is not None:
        entry = explained(finding_id)
        if as_json:
            told = failure_as_dict(entry) if isinstance(entry, Failure) else as_dict(entry)
            emit_json({"schema": _SCHEMA, **told})
        elif isinstance(entry, Failure):
            _print_failure(entry)
        else:
            _print(entry)
    elif as_json:
        kinds = [as_dict(kind) for kind in CATALOGUE.values()]
        errors = [failure_as_dict(failure) for failure in FAILURES.values()]
        emit_json({"schema": _SCHEMA, "kinds": kinds, "errors": errors})
    elif markdown:
        sys.stdout.write(reference_page())
    else:
        for kind in sorted(CATALOGUE.values(), key=lambda each: each.id):
            line(f"{kind.id:<32} {kind.severity.value:<8} {kind.title}")
        for failure in sorted(FAILURES.values(), key=lambda each: each.id):
            line(f"{failure.id:<32} exit {failure.exit_code:<3} {failure.means}")
    return 0


def _print_failure(failure: "Failure") -> None:
    line(f"error {failure.id}, exit {failure.exit_code}", style="error")
    line(f"  means  {failure.means}")
    line(f"  next   {failure.next}")


def _print(kind: "Kind") -> None:
    also = "".join(f" or {severity.value}" for severity in kind.also)
    line(f"{kind.severity.value}{also} {kind.id}, shown at {kind.layer.value}", style=kind.severity.value)
    line(f"  what   {kind.title}")
    line(f"  means  {kind.means}")
    if kind.effect is not None:
        line(f"  cost   {kind.effect.text} ({kind.effect.source})")
    line(f"  next   {kind.next}")
