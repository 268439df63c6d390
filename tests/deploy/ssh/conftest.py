"""Puts the tests folder on the path for ``loopback``, and starts the one server of the session."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from loopback import Sshd, running_sshd


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A real sshd on loopback."""
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server
