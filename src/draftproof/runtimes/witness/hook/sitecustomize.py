"""With this directory first on PYTHONPATH and a file named in DRAFTPROOF_WITNESS, what is opened is recorded.

Python imports ``sitecustomize`` at its start, in every child too. Each config, tokenizer file and safetensors
file that is opened for reading becomes one line of JSON with its inode and digest, read by this hook a moment
before the process does; of safetensors the header alone is hashed. ``safetensors.safe_open`` opens files
without Python, so it is wrapped. What opens files without Python and without it (tokenizers, GGUF readers)
is not seen: a file that is missing from the record may have been read.

Standard library only, Python 3.9 syntax. Nothing here may disturb the process: what fails is written down
as trouble, or not at all.
"""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import stat
import sys
import threading
import time
from typing import Any

VERSION = 1
VARIABLE = "DRAFTPROOF_WITNESS"
ENDINGS = (
    "config.json",
    "tokenizer.json",
    ".safetensors",
    ".safetensors.index.json",
    "chat_template.jinja",
)
MOST_BYTES = 64 << 20
MOST_LINES = 20_000
ORDINARY = (OSError, ValueError, TypeError, KeyError, RecursionError, MemoryError)


class Witness:
    """The record of one process; a forked child goes on with it under its own number."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.inside = threading.local()
        self.known: set[tuple[Any, ...]] = set()

    def start(self) -> None:
        """The first line of a process: who it is."""
        self.write({"event": "start", "executable": sys.executable, "parent": os.getppid()})

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Called by the interpreter before an event; ``open`` is the one that matters."""
        if event != "open" or not arguments or not isinstance(arguments[0], (str, bytes)):
            return
        path, mode, flags = (*arguments, None, None)[:3]
        is_reading = not (flags or 0) & (os.O_WRONLY | os.O_RDWR) and not set(mode or "r") & set("wax+")
        if is_reading:
            self.opened(path, "open")

    def opened(self, path: Any, how: str) -> None:
        """Write down a file that is about to be opened."""
        if getattr(self.inside, "now", False):
            return
        self.inside.now = True  # this hook's own reading is not the process's
        try:
            name = os.fsdecode(os.fspath(path))
            if name.endswith(ENDINGS):
                self.look(os.path.abspath(name), how)  # noqa: PTH100 - links stay
        except ORDINARY as error:
            self.write({"event": "trouble", "why": f"{type(error).__name__}: {error}"})
        finally:
            self.inside.now = False

    def look(self, path: str, how: str) -> None:
        """One file: identity and digest. A file that is not there is told by the process's own error."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return
            mark = (
                os.getpid(),
                path,
                status.st_dev,
                status.st_ino,
                status.st_mtime_ns,
                status.st_ctime_ns,
                how,
            )
            if mark in self.known or len(self.known) >= MOST_LINES:
                return
            self.known.add(mark)
            is_header = path.endswith(".safetensors")
            data = stream.read(8) if is_header else stream.read(MOST_BYTES + 1)
            if is_header:
                data += stream.read(min(int.from_bytes(data, "little"), MOST_BYTES))
        whole = len(data) <= MOST_BYTES
        self.write(
            {
                "event": "opened",
                "how": how,
                "path": path,
                "real": os.path.realpath(path),
                "dev": status.st_dev,
                "ino": status.st_ino,
                "size": status.st_size,
                "mtime_ns": status.st_mtime_ns,
                "ctime_ns": status.st_ctime_ns,
                "hashed": "header" if is_header else "whole",
                "sha256": hashlib.sha256(data).hexdigest() if whole else None,
            }
        )

    def write(self, entry: dict[str, Any]) -> None:
        """Append one line in one call; into nobody else's file, and into none that others may read."""
        entry = {"v": VERSION, "pid": os.getpid(), "time_ns": time.time_ns(), **entry}
        line = json.dumps(entry, ensure_ascii=True, sort_keys=True).encode("ascii") + b"\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = os.open(self.file, flags, 0o600)
        except OSError:
            return
        try:
            status = os.fstat(descriptor)
            is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
            if is_ours and not stat.S_IMODE(status.st_mode) & 0o077 and status.st_size < MOST_BYTES:
                os.write(descriptor, line)
        except OSError:
            return
        finally:
            os.close(descriptor)


class AroundSafetensors(importlib.abc.MetaPathFinder):
    """Finds ``safetensors`` as everybody does, and puts a recording ``safe_open`` into it."""

    def __init__(self, witness: Witness) -> None:
        self.witness = witness

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The true module's spec, its loader taught one more step."""
        if name != "safetensors":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        load, witness = spec.loader.exec_module, self.witness

        def load_and_wrap(module: Any) -> None:
            load(module)
            true_open = getattr(module, "safe_open", None)
            if true_open is not None:
                module.safe_open = recording(true_open, witness)

        spec.loader.exec_module = load_and_wrap  # type: ignore[method-assign]
        return spec


def recording(true_open: Any, witness: Witness) -> Any:
    """``safe_open`` that says so first."""

    def safe_open(filename: Any, *arguments: Any, **options: Any) -> Any:
        witness.opened(filename, "safe_open")
        return true_open(filename, *arguments, **options)

    safe_open.__wrapped__ = true_open  # type: ignore[attr-defined]
    return safe_open


def run_the_other() -> None:
    """The environment's own ``sitecustomize``, which this file stands in front of."""
    here = os.path.realpath(__file__).rpartition("/")[0]
    rest = [entry for entry in sys.path if os.path.realpath(entry) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def begin() -> None:
    """Start recording where a record is named; at most once in a process."""
    file = os.environ.get(VARIABLE, "")
    if file.startswith("/"):
        witness = Witness(file)
        witness.start()
        sys.meta_path.insert(0, AroundSafetensors(witness))
        sys.addaudithook(witness.audit)


begin()
run_the_other()
