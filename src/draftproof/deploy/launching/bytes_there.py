"""Bytes there: the drafter's file on disk held against what the engine must find, before any start."""

from pathlib import Path

from draftproof.config.json.pointer import resolve
from draftproof.config.raw import JsonValue, RawConfig, read_raw
from draftproof.config.view import same_json
from draftproof.deploy.serving.intent import differences, parsed_drafter
from draftproof.deploy.serving.rendering import Rendering
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, NotLooked
from draftproof.findings.place import at_pointer

__all__ = ["drafter_on_disk"]


def drafter_on_disk(made: Rendering) -> tuple[list[Finding], list[NotLooked]]:
    """Every difference that matters to the engine, or why none could be looked for.

    Raises:
        CouldNotLook, RefusedInput: there is no such file, or it is none of a drafter.
    """
    if made.drafter is None:
        return [], []
    folder = Path(made.plan.text("drafter"))
    if not folder.is_dir():
        why = f"{folder} is no directory here; the engine may find it by that name, or load another one"
        return [], [NotLooked("the drafter's file", why, is_required=True)]
    raw = read_raw(folder / "config.json")
    findings = [
        found("launch-file-differs", name, expected=meant, found=there, at=at_pointer(raw, ""))
        for name, meant, there in differences(made.drafter.config, parsed_drafter(raw))
    ]
    return findings + _unrendered(made, raw), []


def _unrendered(made: Rendering, raw: RawConfig) -> list[Finding]:
    """What the engine needs in the file beside what the file means."""
    told = []
    config = made.drafter_config
    for pointer, said in config.changes if config else ():
        is_there = raw.has(pointer)
        is_right = is_there and same_json(resolve(raw.value, pointer), said.value)
        if config is not None and not pointer:
            is_right = same_json(raw.value, config.content)
        if not is_right:
            told.append(
                found(
                    "launch-file-differs",
                    pointer.rpartition("/")[2] or "format",
                    expected=said.value,
                    found=_shown(raw, pointer) if is_there else "absent",
                    at=at_pointer(raw, pointer),
                    detail=f"{said.reason} ({said.source})",
                )
            )
    return told


def _shown(raw: RawConfig, pointer: str) -> JsonValue:
    return resolve(raw.value, pointer) if pointer else "the file in another format"
