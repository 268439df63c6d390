"""This machine as a host; the tests folder on the path for ``shell_program``."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from draftproof.host.local import LocalHost


@pytest.fixture
def host() -> LocalHost:
    """This machine, programs run by the interpreter of the tests."""
    return LocalHost(sys.executable)
