"""A run's place on disk: weights, optimiser and step, written whole or not at all, and read back checked.

A snapshot is a directory ``step-N``. It is written under another name, synced, and renamed; whoever is killed
at any moment leaves the one before. ``state.json`` holds every tensor file's digest, so a torn one is found.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load, save
from torch import Tensor

from draftproof.errors import RefusedInput

__all__ = ["Snapshot", "newest_snapshot", "write_snapshot"]

_KEPT = 2
"""Snapshots left on disk; the one before the newest is there should the newest turn out damaged."""

_STATE = "state.json"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a run stood."""

    step: int
    """Steps done."""

    fingerprint: str
    """Of the recipe; a run goes on only from a snapshot of the same one."""

    weights: Mapping[str, Tensor]
    optimiser: Mapping[str, Tensor]
    random: Tensor
    """State of torch's generator."""


def write_snapshot(directory: Path, snapshot: Snapshot) -> Path:
    """Write ``directory/step-N``, durable when this returns, and drop all but the newest two."""
    directory.mkdir(parents=True, exist_ok=True)
    place = directory / f"step-{snapshot.step:08d}"
    unfinished = directory / f".unfinished-{os.getpid()}"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    files = {
        "weights.safetensors": dict(snapshot.weights),
        "optimiser.safetensors": dict(snapshot.optimiser),
        "random.safetensors": {"torch": snapshot.random},
    }
    digests = {}
    for name, tensors in files.items():
        content = save({key: tensor.detach().contiguous().cpu() for key, tensor in tensors.items()})
        digests[name] = hashlib.sha256(content).hexdigest()
        _write_synced(unfinished / name, content)
    state = {"step": snapshot.step, "recipe": snapshot.fingerprint, "sha256": digests}
    _write_synced(unfinished / _STATE, (json.dumps(state, indent=2) + "\n").encode("ascii"))
    _sync(unfinished)
    shutil.rmtree(place, ignore_errors=True)
    unfinished.rename(place)
    _sync(directory)
    for old in sorted(directory.glob("step-*"))[:-_KEPT]:
        shutil.rmtree(old)
    return place


def newest_snapshot(directory: Path, fingerprint: str) -> Snapshot | None:
    """The newest snapshot that is whole; None where there is none.

    Raises:
        RefusedInput: there are snapshots and none is whole, or the newest whole one is of another recipe.
    """
    damaged = []
    for place in sorted(directory.glob("step-*"), reverse=True):
        found = _read(place)
        if isinstance(found, str):
            damaged.append(f"{place.name}: {found}")
            continue
        if found.fingerprint != fingerprint:
            raise RefusedInput(
                "recipe",
                expected=f"the recipe the run began with, {found.fingerprint[:12]}",
                found=fingerprint[:12],
                where=str(place),
                means="going on would mix two runs",
                next_step="give another output directory, or the recipe as it was",
            )
        return found
    if damaged:
        raise RefusedInput(
            "snapshot",
            expected="one that is whole",
            found="; ".join(damaged),
            where=str(directory),
            means="the run cannot go on from where it was",
            next_step="remove the snapshots to begin anew",
        )
    return None


def _read(place: Path) -> Snapshot | str:
    """The snapshot, or what is wrong with it."""
    try:
        state = json.loads((place / _STATE).read_bytes())
        contents = {name: (place / name).read_bytes() for name in state["sha256"]}
    except (OSError, ValueError, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    for name, content in contents.items():
        if hashlib.sha256(content).hexdigest() != state["sha256"][name]:
            return f"{name} is not what was written"
    weights, optimiser, random = (
        load(contents[f"{name}.safetensors"]) for name in ("weights", "optimiser", "random")
    )
    return Snapshot(state["step"], state["recipe"], weights, optimiser, random["torch"])


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
