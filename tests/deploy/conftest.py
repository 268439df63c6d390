"""A ledger of its own for each test, and this machine as the host."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.receipt import OldDigest, Receipt
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.host.local import LocalHost

Put = Callable[..., Receipt]
PROGRAMS = {
    "root": ("strace", "mount", "unshare", "chattr"),
    "ssh": ("sshd", "ssh", "ssh-keygen", "scp", "rsync"),
}
PACKAGES = "apt-get install strace openssh-server rsync xfsprogs btrfs-progs"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Name what a suite lacks here; with DRAFTPROOF_ALL_SUITES=1, as in CI, lacking it is a failure."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    marks = [mark for mark in PROGRAMS if item.get_closest_marker(mark)]
    lacking = [name for mark in marks for name in PROGRAMS[mark] if not shutil.which(name, path=path)]
    if "root" in marks and os.geteuid() != 0:
        lacking.append("root's rights")
    if not lacking:
        return
    reason = f"not run here, lacking {', '.join(lacking)} ({PACKAGES})"
    if "DRAFTPROOF_ALL_SUITES" in os.environ:
        pytest.fail(reason)
    pytest.skip(reason)


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
