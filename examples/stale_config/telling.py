"""How the demo speaks: it runs a command, shows what that said, and claims only what it has checked."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["DEMO", "FIVE", "Said", "claim", "draftproof", "sha256", "shell", "show"]

DEMO = Path(".demo")
"""Everything happens in here, below the current directory."""

FIVE = {
    "/bos_token_id",
    "/dflash_config/mask_token_id",
    "/dflash_config/target_layer_ids",
    "/layer_types",
    "/sliding_window",
}
"""The fields in which the stale config differs from the one that is meant."""


@dataclass(frozen=True)
class Said:
    """What one call of draftproof said, as text and as JSON; one of them where it was asked once."""

    text: str
    document: Any


def draftproof(
    *arguments: str,
    expected_exit: int,
    asked: tuple[str, ...] = ("text", "json"),
    stdin: Path | None = None,
) -> Said:
    """Run a verb for people and as JSON, or in one way only: it leaves with the expected status."""
    print(f"   $ draftproof {' '.join(arguments)}{f' < {stdin}' if stdin else ''}")
    given = stdin.read_text(encoding="utf-8") if stdin else ""
    environment = os.environ | {"XDG_STATE_HOME": str(DEMO.resolve() / "state"), "OMP_NUM_THREADS": "1"}
    said = {"text": "", "json": "null"}
    for way in asked:
        command = [sys.executable, "-m", "draftproof", *arguments, *(["--json"] if way == "json" else [])]
        ran = subprocess.run(
            command, input=given, capture_output=True, text=True, check=False, env=environment
        )
        is_told = way == asked[0] and expected_exit != 0  # a success is told with what it is worth
        claim(f"exit {expected_exit}", ran.returncode == expected_exit, quiet=not is_told, detail=ran.stderr)
        said[way] = ran.stdout
    return Said(said["text"], json.loads(said["json"]))


def shell(script: str, intended: Path, deployed: Path) -> tuple[int, str]:
    """Run an update script in a real shell: its status, and everything it said."""
    ran = subprocess.run(
        ["bash", "-c", script, "update.sh", str(intended), str(deployed)],  # noqa: S607 - the user's own bash
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr


def show(beginnings: tuple[str, ...], text: str, *, lines: int) -> None:
    """Print the real output: every line that begins so, and what follows it up to ``lines``."""
    output = text.splitlines()
    for number, begun in enumerate(output):
        if begun.startswith(beginnings):
            for told in output[number : number + lines]:
                print(f"   | {told.rstrip()}")


def claim(what: str, holds: object, *, quiet: bool = False, detail: str = "") -> None:
    """Say what was just shown; stop the demo if it was not."""
    if not holds:
        sys.exit(f"demo: NOT shown: {what}\n{detail}")
    if not quiet:
        print(f"   -> {what}")


def sha256(path: Path) -> str:
    """The file's digest."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
