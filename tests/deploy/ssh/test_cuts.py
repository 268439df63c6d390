"""A link cut anywhere, in either direction, by end, reset or stall: old or new, and never told falsely."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from cutting_proxy import Cut, cutting_proxy
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.receipt import FileState, Receipt
from draftproof.deploy.writing.refusals import OutcomeUnknown
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.errors import DraftproofError
from draftproof.host.ssh import SshHost
from loopback import Sshd
from totals import record

pytestmark = [pytest.mark.ssh, pytest.mark.root, pytest.mark.slow]
OLD, NEW = b'{"taps": [1, 17]}\n', json.dumps({"taps": list(range(3000))}).encode()


@dataclass(frozen=True)
class Outcome:
    """One write over a link that was cut."""

    cut: Cut | None
    was_cut: bool
    kind: str
    complaint: str
    passed: dict[str, int]


def through(sshd: Sshd, cut: Cut | None, directory: Path) -> Outcome:
    """One write, its first connection cut; what was said is held against what is there, then and later."""
    directory.mkdir(parents=True)
    target = directory / "config.json"
    target.write_bytes(OLD)
    with cutting_proxy(sshd.ports[0], cut) as proxy:
        config = directory.with_suffix(".ssh")
        known = directory.with_suffix(".known")
        key = (sshd.directory / "known_loop").read_text().split(" ", 1)[1]
        known.write_text(f"[127.0.0.1]:{proxy.port} {key}")
        config.write_text(
            f"Host cut\n HostName 127.0.0.1\n Port {proxy.port}\n User root\n IdentitiesOnly yes\n"
            f" IdentityFile {sshd.directory}/user\n UserKnownHostsFile {known}\n"
        )
        order = WriteOrder(Place("cut", str(target)), NEW, "test", patience_s=4)
        ledger = Ledger(directory.with_suffix(".ledger"))
        result: Receipt | DraftproofError
        try:
            result = verified_write(SshHost("cut", extra=("-F", str(config))), order, ledger)
        except DraftproofError as error:
            result = error
        found = target.read_bytes()
        complaint, kind = complaint_about(result, found)
        if cut and not complaint:
            time.sleep(1)
            later = target.read_bytes()
            if later != found and not isinstance(result, OutcomeUnknown):
                complaint = "changed after the outcome was told"
        return Outcome(cut, proxy.is_cut, kind, complaint, dict(proxy.passed))


def complaint_about(result: Receipt | DraftproofError, found: bytes) -> tuple[str, str]:
    """What is false about an answer, and its kind."""
    if found not in {OLD, NEW}:
        return f"torn: {len(found)} bytes", "torn"
    if isinstance(result, OutcomeUnknown):
        return "", "unknown"
    if not isinstance(result, Receipt):
        return (f"published, told as not done: {result}" if found == NEW else ""), "not done"
    if (result.state is FileState.NEW) != (found == NEW):
        return f"told {result.state}", "told"
    return "", "acknowledged" if result.level >= Level.L2 else f"told {result.state}"


def sweep(sshd: Sshd, cuts: list[Cut], directory: Path) -> list[Outcome]:
    """One write a cut, four at a time: most of each is waiting."""
    with ThreadPoolExecutor(4) as pool:
        numbered = enumerate(cuts)
        return list(pool.map(lambda pair: through(sshd, pair[1], directory / f"cut{pair[0]}"), numbered))


def export(name: str, outcomes: list[Outcome]) -> None:
    """One line of totals."""
    kinds = [outcome.kind for outcome in outcomes if outcome.was_cut]
    counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
    record("S4 ssh cuts", name, {"points": len(outcomes), "cut": len(kinds), **counts})


@pytest.fixture(scope="module")
def lengths(sshd: Sshd, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Bytes of a whole session in each direction; the uncut write through the proxy succeeds."""
    whole = through(sshd, None, tmp_path_factory.mktemp("whole") / "cut")
    assert (whole.kind, whole.complaint) == ("acknowledged", "")
    return whole.passed


@pytest.mark.parametrize("how", ["fin", "reset"])
def test_a_link_that_ends_anywhere(sshd: Sshd, lengths: dict[str, int], tmp_path: Path, how: str) -> None:
    """Sixteen places on the way up and ten on the way down, the last bytes among them."""
    up = [lengths["up"] * n // 16 for n in range(13)] + [lengths["up"] - n for n in (1, 100, 400)]
    down = [lengths["down"] * n // 8 for n in range(8)] + [lengths["down"] - n for n in (1, 300)]
    cuts = [Cut(at, how, "up") for at in up] + [Cut(at, how, "down") for at in down]  # type: ignore[arg-type]
    outcomes = sweep(sshd, cuts, tmp_path)
    export(how, outcomes)
    assert not [outcome for outcome in outcomes if outcome.complaint]
    assert len(outcomes) == 26
    assert sum(outcome.was_cut for outcome in outcomes) >= 20


def test_a_link_that_stalls(sshd: Sshd, lengths: dict[str, int], tmp_path: Path) -> None:
    """Nothing more moves and nobody closes: the order lapses, and a late commit does not happen."""
    places = [("up", 0.5), ("up", 0.8), ("up", 0.99), ("down", 0.7), ("down", 0.95)]
    cuts = [Cut(int(lengths[way] * part), "stall", way) for way, part in places]  # type: ignore[arg-type]
    outcomes = sweep(sshd, cuts, tmp_path)
    export("stall", outcomes)
    assert not [outcome for outcome in outcomes if outcome.complaint]
    assert len(outcomes) == 5
