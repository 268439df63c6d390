"""These tests need torch; where it is not installed they are left out, and the header of the run says so."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # for ``drafting``

HAS_TORCH = find_spec("torch") is not None
collect_ignore_glob = [] if HAS_TORCH else ["test_*.py"]

if HAS_TORCH:
    import torch

    from draftproof.engine.engine import Engine
    from draftproof.engine.proof.tiny import write_tiny_target

    torch.set_num_threads(1)  # tiny models: a second thread only waits for the first

    @pytest.fixture(scope="session")
    def tiny_targets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
        """The tiny checkpoints by kind, written once."""
        folder = tmp_path_factory.mktemp("tiny")
        for kind in ("dense", "hybrid"):
            write_tiny_target(folder / kind, kind)
        return {kind: folder / kind for kind in ("dense", "hybrid")}

    @pytest.fixture(scope="session")
    def tiny_engine(tiny_targets: dict[str, Path]) -> Callable[[str, str], Engine]:
        """An engine over a kind of tiny target in a data type, loaded once each."""
        loaded: dict[tuple[str, str], Engine] = {}

        def engine(kind: str, dtype: str) -> Engine:
            if (kind, dtype) not in loaded:
                loaded[kind, dtype] = Engine.load(tiny_targets[kind], dtype=dtype, with_text=False)
            return loaded[kind, dtype]

        return engine


def pytest_report_header() -> str:
    """One line for the head of the run."""
    return f"tests/engine: {'run' if HAS_TORCH else 'left out, torch is not installed'}"
