"""A ledger of its own for each test, and this machine as the host."""

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.receipt import OldDigest, Receipt
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.host.local import LocalHost
from totals import record

Put = Callable[..., Receipt]
PROGRAMS = {
    "root": ("strace", "mount", "unshare", "chattr"),
    "ssh": ("sshd", "ssh", "ssh-keygen", "scp", "rsync"),
}
CASES = {
    "test_mounts": ("S6 mounts and namespaces", "a mount between the write and its reader"),
    "test_consumer_view": ("S7 serving process", "its start and its mounts against the file"),
    "test_consumer": ("S7 serving process", "its levels in receipts"),
    "test_consumer_shards": ("S7 serving process", "its port, and its mapped shards against the files"),
    "test_diagnose": ("causes of a wrong file", "each produced for real"),
}
"""Suites whose every test is one case: how their totals are called."""

ENDED: Counter[tuple[str, str]] = Counter()
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


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the cases of the suites that count by their tests."""
    file = Path(report.nodeid.partition("::")[0]).stem
    if report.when == "call" and file in CASES:
        ENDED[file, report.outcome] += 1


def pytest_sessionfinish() -> None:
    """Keep those totals."""
    for file, (suite, fault) in CASES.items():
        right, wrong = ENDED[file, "passed"], ENDED[file, "failed"]
        if right + wrong:
            record(suite, fault, {"points": right + wrong, "right": right, "wrong": wrong})


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
