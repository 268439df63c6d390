"""``draftproof selftest``: losslessness, proved here and now."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from draftproof.cli.device_option import Device
from draftproof.cli.engine_extra import require_engine
from draftproof.cli.output import emit_json, line

__all__ = ["selftest"]


def selftest(
    *,
    sabotage: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Break one thing on purpose, and see the proof fail: siblings-visible, conv-over-columns, "
            "state-at-wrong-node, greedy-scored-as-drawn, other-temperature, typical-lossy.",
        ),
    ] = None,
    device: Device = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Prove on two tiny models that drafting changes how fast, never what; exit 1 if anything fails."""
    require_engine()
    import torch

    from draftproof.engine.proof.selftest import run_selftest

    torch.set_num_threads(1)  # the models are tiny: a second thread only waits for the first
    checks = []
    with TemporaryDirectory(prefix="draftproof-selftest-") as folder:
        for check in run_selftest(Path(folder), sabotage=sabotage, device=device):
            checks.append(check)
            if not as_json:
                verdict, style = ("ok  ", None) if check.holds else ("FAIL", "error")
                line(f"{verdict} {check.name}: {check.measured:.3g}, at most {check.bound:g}", style=style)
    failed = [check for check in checks if not check.holds]
    if as_json:
        emit_json(
            {
                "schema": "draftproof.selftest/1",
                "sabotage": sabotage,
                "num_checks": len(checks),
                "num_failed": len(failed),
                "checks": [
                    {"name": c.name, "measured": c.measured, "bound": c.bound, "holds": c.holds}
                    for c in checks
                ],
            }
        )
    else:
        broken = f" with {sabotage} broken on purpose" if sabotage else ""
        line(f"{len(checks)} checks ran{broken}, {len(failed)} failed", style="error" if failed else "good")
    return 1 if failed else 0
