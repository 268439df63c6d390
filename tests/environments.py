"""Environments that live tests need: a Python with the peer and what it needs, made once, then reused.

They lie in ``.envs/<peer>-<version>`` beside the Makefile, which makes the same ones; ``.ready``
stands in each that is complete.
"""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["NEW", "OLD", "REPOSITORY", "VERSIONS", "peer_python", "transformers_python"]

REPOSITORY = Path(__file__).resolve().parents[1]
OLD, NEW = "4.57.6", "5.24.0"
"""The last 4.x, with flat rope fields, and the newest 5.x, with ``rope_parameters``."""

VERSIONS = (OLD, NEW)


def transformers_python(version: str) -> Path:
    """The interpreter of the environment with exactly this transformers; made with pip if it is not there."""
    return peer_python(f"transformers-{version}", f"transformers=={version}")


def peer_python(name: str, *requirements: str) -> Path:
    """The interpreter of the environment ``.envs/<name>``; made with pip of these if it is not there.

    Raises:
        RuntimeError: pip could not install them.
    """
    envs = REPOSITORY / ".envs"
    envs.mkdir(exist_ok=True)
    folder = envs / name
    with (envs / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs at once make it once
        if not (folder / ".ready").exists():
            _make(folder, *requirements)
    return folder / "bin" / "python"


def _make(folder: Path, *requirements: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _run(sys.executable, "-m", "venv", str(folder))
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    _run(*pip, *requirements)
    (folder / ".ready").touch()


def _run(*argv: str) -> None:
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"{' '.join(argv)} ended with status {ran.returncode}\n{ran.stderr[-2000:]}")
