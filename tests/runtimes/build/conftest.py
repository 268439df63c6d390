"""Puts the tests folder on the path, and makes installations of a toy engine."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from runtimes.build.toy import Installation, installed


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One clean environment, copied for each test."""
    return installed(tmp_path_factory.mktemp("toy") / "env").folder


@pytest.fixture
def there(packed: Path, tmp_path: Path) -> Installation:
    """A clean installation of a test's own."""
    shutil.copytree(packed, tmp_path / "env", symlinks=True)
    return Installation(tmp_path / "env")
