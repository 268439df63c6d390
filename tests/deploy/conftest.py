"""A ledger of its own for each test, and this machine as the host."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from draftproof.deploy.ledger import Ledger
from draftproof.deploy.level import Level
from draftproof.deploy.place import Place
from draftproof.deploy.receipt import OldDigest, Receipt
from draftproof.deploy.write import WriteOrder, verified_write
from draftproof.host.local import LocalHost

Put = Callable[..., Receipt]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """An empty ledger."""
    return Ledger(tmp_path / "state" / "draftproof")


@pytest.fixture
def host() -> LocalHost:
    """This machine, its programs run by the interpreter of the tests."""
    return LocalHost(sys.executable)


@pytest.fixture
def put(host: LocalHost, ledger: Ledger) -> Put:
    """A verified write into the test's ledger."""

    def write(
        path: Path,
        content: bytes,
        *,
        expected_old: OldDigest | None = None,
        level: Level = Level.L2,
        root: str = "/",
    ) -> Receipt:
        order = WriteOrder(
            Place("", str(path)),
            content,
            "test",
            expected_old=expected_old,
            level=level,
            root=root,
            patience_s=10,
        )
        return verified_write(host, order, ledger)

    return write
