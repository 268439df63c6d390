"""The file that a worker loads so that it can tell what it holds: where it lies, what it is called."""

from importlib.resources import files
from pathlib import Path

__all__ = ["VLLM_CLASS", "extension_directory"]

VLLM_CLASS = "draftproof_vllm.DraftproofExtension"
"""The value of vLLM's ``--worker-extension-cls``."""


def extension_directory(engine: str) -> Path:
    """What has to stand on the PYTHONPATH of a server of ``vllm`` or ``sglang``."""
    return Path(str(files("draftproof.runtimes") / engine / "extension"))
