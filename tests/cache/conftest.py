"""These tests need torch; where it is not installed they are left out, and the header of the run says so."""

from importlib.util import find_spec

HAS_TORCH = find_spec("torch") is not None
collect_ignore_glob = [] if HAS_TORCH else ["test_*.py"]


def pytest_report_header() -> str:
    """One line for the head of the run."""
    return f"tests/cache: {'run' if HAS_TORCH else 'left out, torch is not installed'}"
