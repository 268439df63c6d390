"""Trainable drafters; these tests need torch and are left out, with a word in the header, where it is not."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # for ``small_runs``, ``tiny_mtp`` and their like

HAS_TORCH = find_spec("torch") is not None
collect_ignore_glob = [] if HAS_TORCH else ["test_*.py"]

if HAS_TORCH:
    import torch

    from draftproof.engine.proof.tiny import write_tiny_target

    torch.set_num_threads(1)

    @pytest.fixture(scope="session")
    def tiny_targets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
        """The tiny checkpoints by kind, written once."""
        folder = tmp_path_factory.mktemp("tiny")
        for kind in ("dense", "hybrid"):
            write_tiny_target(folder / kind, kind)
        return {kind: folder / kind for kind in ("dense", "hybrid")}


def pytest_report_header() -> str:
    """One line for the head of the run."""
    return f"tests/training/drafters: {'run' if HAS_TORCH else 'left out, torch is not installed'}"
