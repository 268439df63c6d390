"""A drafter on disk: written beside, synced, read back, and only then put in place of the one before."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save
from torch import Tensor

from draftproof.config.raw import JsonValue

__all__ = ["write_drafter", "write_file"]


def write_drafter(
    directory: Path, config: Mapping[str, JsonValue], tensors: Mapping[str, Tensor]
) -> dict[str, str]:
    """``config.json`` and ``model.safetensors``.

    Returns:
        The sha256 of each file by name, as read back from disk.

    Raises:
        OSError: a file could not be written, or does not read back as what was written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    plain = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    return {
        name: write_file(directory / name, content)
        for name, content in (
            ("model.safetensors", save(plain, metadata={"format": "pt"})),
            ("config.json", (json.dumps(dict(config), indent=2) + "\n").encode("ascii")),
        )
    }


def write_file(path: Path, content: bytes) -> str:
    """Put ``content`` at ``path`` at once, durable when this returns; its sha256 as read back.

    Raises:
        OSError: it could not be written, or does not read back as what was written.
    """
    unfinished = path.with_name(f".{path.name}.unfinished-{os.getpid()}")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    found = hashlib.sha256(unfinished.read_bytes()).hexdigest()
    if found != hashlib.sha256(content).hexdigest():
        raise OSError(f"{unfinished} does not hold what was written to it")
    unfinished.replace(path)
    return found
