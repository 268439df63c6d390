"""``draftproof explain``: what a finding means, how much it has been measured to cost, what to do."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.render import emit_json, line

if TYPE_CHECKING:
    from draftproof.findings.kind import Kind

__all__ = ["explain"]


def explain(
    finding_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A finding id; without one, all.")
    ] = None,
    *,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the reference page of all ids.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Say what a finding means, what it has been measured to cost, and what to do."""
    from draftproof.findings.catalogue import CATALOGUE
    from draftproof.findings.explain import as_dict, kind_of, reference_page

    if finding_id is not None:
        kind = kind_of(finding_id)
        if as_json:
            emit_json({"schema": "draftproof.explain/1", **as_dict(kind)})
        else:
            _print(kind)
    elif as_json:
        emit_json({"schema": "draftproof.explain/1", "kinds": [as_dict(kind) for kind in CATALOGUE.values()]})
    elif markdown:
        sys.stdout.write(reference_page())
    else:
        for kind in sorted(CATALOGUE.values(), key=lambda each: each.id):
            line(f"{kind.id:<32} {kind.severity.value:<8} {kind.title}")
    return 0


def _print(kind: "Kind") -> None:
    also = "".join(f" or {severity.value}" for severity in kind.also)
    line(f"{kind.severity.value}{also} {kind.id}, shown at {kind.layer.value}", style=kind.severity.value)
    line(f"  what   {kind.title}")
    line(f"  means  {kind.means}")
    if kind.effect is not None:
        line(f"  cost   {kind.effect.text} ({kind.effect.source})")
    line(f"  next   {kind.next}")
