"""The benches' own arithmetic and processes; what measures or draws needs torch, transformers, matplotlib.

Puts ``bench`` and the tests folder on the path; where torch is missing the header of the run says so.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

HAS_ENGINE = all(find_spec(name) is not None for name in ("torch", "transformers", "matplotlib"))
collect_ignore_glob = [] if HAS_ENGINE else ["test_speed_page.py", "test_speed_models.py"]


def pytest_report_header() -> str:
    """One line for the head of the run."""
    return f"tests/bench: {'run' if HAS_ENGINE else 'in part, torch, transformers or matplotlib is missing'}"
