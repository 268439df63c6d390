"""What came before a case's files: a ledger that knows what was meant, a process that was running already."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cases.builder import Case, build
from draftproof.cli.main import main

__all__ = ["clean", "prepared"]

TICK_S = 0.1
"""Ten times the clock by which the kernel counts a start."""


@contextmanager
def prepared(case: Case, root: Path) -> Iterator[list[str]]:
    """Everything the case needs, made below ``root``: the arguments of ``check``, processes running."""
    with _running("process" in case and case["process"]["is_older"]) as older:
        argv = _recorded(case, root) if "ledger" in case else build(case, root)
        with _running("process" in case and not case["process"]["is_older"]) as younger:
            yield argv + [f"--pid={process.pid}" for process in (older, younger) if process is not None]


@contextmanager
def _running(is_wanted: bool) -> Iterator["subprocess.Popen[bytes] | None"]:  # noqa: FBT001 - one fact
    if not is_wanted:
        yield None
        return
    time.sleep(TICK_S)
    with subprocess.Popen(["sleep", "60"]) as process:
        time.sleep(TICK_S)
        yield process
        process.kill()


def _recorded(case: Case, root: Path) -> list[str]:
    """The files as they were, what was meant announced by ``expect``, and then the files as they are."""
    spec, ledger = case["ledger"], ["--ledger", str(root / "ledger")]
    build(clean(case), root / "meant")
    build(clean(case) | {"patch": spec.get("before", [])}, root)
    for name in spec["files"]:
        meant, place = root / "meant" / "subject" / name, root / "subject" / name
        assert main(["expect", str(meant), str(place), *ledger, "--json"]) == 0
        if spec.get("was_seen"):
            shutil.copyfile(meant, place)
    if spec.get("was_seen"):
        main(["check", str(root / "subject"), *ledger, "--json"])
    for folder in ("subject", "target", "intent", "named"):
        shutil.rmtree(root / folder, ignore_errors=True)
    return build(case, root) + ledger


def clean(case: Case) -> Case:
    """The same case without what was done to it; ``setup`` patches belong to the clean base."""
    kept = {
        key: value
        for key, value in case.items()
        if key not in ("patch", "text", "no_config", "files", "options")
    }
    if "weights" in kept:
        kept["weights"] = case.get("clean_weights", {})
    for side in ("target", "intent"):
        if side in kept:
            kept[side] = {"base": case[side]["base"]} | ({"weights": {}} if "weights" in case[side] else {})
    if "intent" in kept:
        kept["intent"] = {"base": case["base"]}
    if "target" in kept and "clean_target" in case:
        kept["target"] = case["clean_target"]
    for key in ("tokenizer", "tokenizer_option", "hub"):
        kept.pop(key, None)
        kept.update({key: case[f"clean_{key}"]} if f"clean_{key}" in case else {})
    if "meant" in case.get("ledger", {}):
        kept["patch"] = case["ledger"]["meant"]
    if "process" in kept:
        kept["process"] = {"is_older": False}
    return kept
