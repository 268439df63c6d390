"""Writers and readers at once, some of them killed: what they were told could have happened in one order."""

import random
import sys
import threading
import time
from pathlib import Path

import pytest

from draftproof.deploy.hosts import look
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.ledger.objects import sha256_hex
from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.receipt import FileState
from draftproof.deploy.writing.refusals import Conflict, OutcomeUnknown
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.errors import DraftproofError
from draftproof.host.local import LocalHost
from draftproof.names import Sha256
from linearizable import Operation, is_linearizable
from totals import record
from tracing import TracedHost

pytestmark = [pytest.mark.root, pytest.mark.slow]
CLIENTS, ROUNDS = 3, 6
FAULTS = (
    "renameat2:signal=SIGKILL:when=1",
    "unlinkat:signal=SIGKILL:when=1",
    "fsync:signal=SIGKILL:when=2",
    "fsync:error=EIO:when=1",
    "renameat2:error=EIO:when=1",
)


class Client:
    """One writer and reader with its own ledger and its own chance."""

    def __init__(self, number: int, seed: int, directory: Path) -> None:
        """Start with a fixed seed."""
        self.chance = random.Random(seed * 100 + number)  # noqa: S311 - a test's choice, repeatable
        self.number = number
        self.place = Place("", str(directory / "model" / "register"))
        self.ledger = Ledger(directory / f"ledger{number}")
        self.trace = directory / f"trace{number}"
        self.history: list[Operation] = []
        self.last_seen = ""

    def run(self) -> None:
        """Read, then read or write, so many times."""
        self.read()
        for each in range(ROUNDS):
            if self.chance.random() < 0.3:
                self.read()
            else:
                self.write(b"client %d round %d" % (self.number, each))

    def read(self) -> None:
        """One read; it saw what it saw."""
        started = time.monotonic()
        seen = look(LocalHost(sys.executable), self.place, nonce=f"{self.chance.getrandbits(64):016x}")
        assert seen.sha256 is not None
        self.last_seen = seen.sha256
        self.history.append(Operation(started, time.monotonic(), seen.sha256))

    def write(self, content: bytes) -> None:
        """One compare-and-swap on what was seen last, sometimes under a fault."""
        fault = self.chance.choice(FAULTS) if self.chance.random() < 0.35 else ""
        host = TracedHost(self.trace, fault) if fault else LocalHost(sys.executable)
        expected, new = self.last_seen, sha256_hex(content)
        order = WriteOrder(self.place, content, "test", expected_old=Sha256(expected), patience_s=20)
        started = time.monotonic()
        try:
            receipt = verified_write(host, order, self.ledger)
        except Conflict:
            # It wrote nothing; what it saw instead is another operation's business.
            self.history.append(Operation(started, time.monotonic(), None))
            self.read()
            return
        except OutcomeUnknown:
            self.history.append(Operation(started, time.monotonic(), expected, new, is_certain=False))
            return
        except DraftproofError as error:
            raise AssertionError(f"neither done, nor refused, nor unknown: {error}") from error
        ended = time.monotonic()
        if receipt.level >= Level.L2 or receipt.state is FileState.NEW:
            self.history.append(Operation(started, ended, expected, new))
            self.last_seen = new
        else:
            # Killed or failed: old by a read made when the writer was gone, or already another's content.
            is_certain = receipt.state is FileState.OLD and receipt.level < Level.L1
            written = None if is_certain else new
            seen = None if is_certain else expected
            self.history.append(Operation(started, ended, seen, written, is_certain=is_certain))
            self.read()


def history_of(seed: int, directory: Path) -> tuple[str, list[Operation]]:
    """What three clients at once were told, and the initial value."""
    (directory / "model").mkdir(parents=True)
    (directory / "model" / "register").write_bytes(b"initial")
    clients = [Client(number, seed, directory) for number in range(CLIENTS)]
    threads = [threading.Thread(target=client.run) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sha256_hex(b"initial"), [operation for client in clients for operation in client.history]


@pytest.mark.parametrize("seed", range(6))
def test_what_was_told_is_one_order(seed: int, tmp_path: Path) -> None:
    """Six histories of at least twenty operations, each explained by one order."""
    initial, history = history_of(seed, tmp_path)
    counts = {"points": len(history), "uncertain": sum(not each.is_certain for each in history)}
    is_one_order = is_linearizable(initial, history)
    told = {**counts, "one order": "yes" if is_one_order else "no"}
    record("S10 histories", f"{CLIENTS} clients, seed {seed}: operations", told)
    assert len(history) >= CLIENTS * (ROUNDS + 1)
    assert sum(operation.written is not None for operation in history) >= CLIENTS
    assert is_one_order


def test_the_checker_can_refuse() -> None:
    """A lost update, a value from nowhere and a read of the past are no order."""
    write = Operation(0, 1, "a", "b")
    assert is_linearizable("a", [write, Operation(2, 3, "b")])
    assert not is_linearizable("a", [write, Operation(2, 3, "a")])
    assert not is_linearizable("a", [write, Operation(0, 1, "a", "c")])
    assert not is_linearizable("a", [Operation(0, 1, "x")])
    assert is_linearizable("a", [Operation(0, 1, "a", "b", is_certain=False), Operation(2, 3, "a")])
    assert is_linearizable("a", [write, Operation(0.5, 3, "a")])
