"""These tests need torch; where it is not installed they are left out, and the header of the run says so."""

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for ``tiny_mtp``, ``tiny_training``

HAS_TORCH = find_spec("torch") is not None
collect_ignore_glob = [] if HAS_TORCH else ["test_*.py", "*/test_*.py"]

if HAS_TORCH:
    import torch

    torch.set_num_threads(1)  # tiny models: a second thread only waits for the first


def pytest_report_header() -> str:
    """One line for the head of the run."""
    return f"tests/training: {'run' if HAS_TORCH else 'left out, torch is not installed'}"
