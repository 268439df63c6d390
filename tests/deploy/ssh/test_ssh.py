"""host.ssh and the verbs over it: the same write on a real sshd, strict keys, no evidence from noise."""

import json
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from draftproof.deploy.hosts import Seen, look
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing import refusals
from draftproof.deploy.writing.expect import expect
from draftproof.deploy.writing.receipt import FileState, Receipt
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.errors import DraftproofError
from draftproof.host.program import frames_of, program_argv, request
from draftproof.host.replay import RecordingHost, ReplayHost
from loopback import Sshd

pytestmark = [pytest.mark.ssh, pytest.mark.root]
OLD, NEW = b'{"taps": [1, 17]}\n', b'{"taps": [1, 16]}\n'
PutThere = Callable[..., Receipt]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file with old content, on the machine behind sshd (which is this one)."""
    path = tmp_path / "with blank, 'quote' and $HOME" / "config.json"
    path.parent.mkdir()
    path.write_bytes(OLD)
    return path


@pytest.fixture
def put_there(sshd: Sshd, ledger: Ledger) -> PutThere:
    """A verified write through ssh."""

    def write(path: Path, content: bytes, *, name: str = "loop", level: Level = Level.L2) -> Receipt:
        order = WriteOrder(Place(name, str(path)), content, "test", level=level, patience_s=20)
        return verified_write(sshd.host(name), order, ledger)

    return write


def test_writes_and_proves_it_over_ssh(put_there: PutThere, target: Path, ledger: Ledger) -> None:
    """The same levels as on this machine, and the pre-image in our ledger."""
    receipt = put_there(target, NEW, level=Level.L3)
    assert target.read_bytes() == NEW
    assert (receipt.state, receipt.level >= Level.L2) == (FileState.NEW, True)
    assert str(receipt.place) == f"loop:{target}"
    assert ledger.objects.fetch(receipt.old_sha256) == OLD


def test_the_receipt_names_the_host_key(sshd: Sshd, put_there: PutThere, target: Path) -> None:
    """Its fingerprint, as ssh-keygen tells it of the server's key, at the writing and at the reading."""
    told = subprocess.run(
        ["ssh-keygen", "-l", "-f", sshd.directory / "host.pub"], capture_output=True, text=True, check=True
    )
    facts = put_there(target, NEW, name="noisy").evidence[Level.L2].facts
    assert facts["host_key"] == facts["host_key_at_reading"] == f"ssh-ed25519 {told.stdout.split()[1]}"


def test_a_machine_cannot_forge_its_key(sshd: Sshd) -> None:
    """What it prints as if it were the client is its own word, and stays in its stream."""
    words = "printf 'debug1: Server host key: ssh-rsa SHA256:forged\\n' >&2"
    result = sshd.host().run(["sh", "-c", words], timeout_s=60)
    assert b"forged" in result.stderr
    assert "forged" not in result.host_key
    assert result.host_key.startswith("ssh-ed25519 SHA256:")


def test_another_key_at_the_reading_is_another_machine(
    put_there: PutThere, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine behind a balanced name answers the read-back: not L2, whatever it says of itself."""

    def read_elsewhere(*call: Any, **more: Any) -> Seen:
        return replace(look(*call, **more), host_key="ssh-ed25519 SHA256:another")

    monkeypatch.setattr("draftproof.deploy.writing.write.look", read_elsewhere)
    receipt = put_there(target, NEW)
    assert (receipt.level, receipt.state) == (Level.L1, FileState.NEW)
    assert "another host key" in receipt.evidence[2].how


def test_noise_of_the_login_is_not_evidence(put_there: PutThere, target: Path) -> None:
    """A greeting before the frames, on both streams, changes nothing."""
    assert put_there(target, NEW, name="noisy").level >= Level.L2


@pytest.mark.parametrize(
    ("name", "error_id"),
    [
        ("stranger", "host-key-unknown"),
        ("changed", "host-key-changed"),
        ("shut", "host-login-refused"),
    ],
)
def test_strict_keys_whatever_the_users_configuration_says(
    put_there: PutThere, target: Path, ledger: Ledger, name: str, error_id: str
) -> None:
    """An unknown key, a changed key and a refused login each have an id; nothing is sent or recorded."""
    with pytest.raises(DraftproofError) as caught:
        put_there(target, NEW, name=name)
    assert (caught.value.id, caught.value.exit_code) == (error_id, 3)
    assert target.read_bytes() == OLD
    assert ledger.read().entries == ()


def test_no_connection_is_shared(sshd: Sshd, target: Path) -> None:
    """Every run is a connection of its own: no control socket appears, though one is configured."""
    ask = {
        "nonce": "ab" * 8,
        "path": str(target),
        "keep_bytes": 99,
        "is_device_asked": False,
        "pid": 0,
        "port": 0,
        "settle_ms": 0,
    }
    host = sshd.host()
    for _ in range(2):
        result = host.run(program_argv(host.python, "reader"), stdin=request(ask), timeout_s=20)
        assert "seen" in frames_of(result.stdout, "ab" * 8)
    assert not list(sshd.directory.glob("mux-*"))


def test_nobody_there_and_no_interpreter_are_told_apart(sshd: Sshd, target: Path, ledger: Ledger) -> None:
    """A closed port, and a machine without that interpreter."""
    order = WriteOrder(Place("loop", str(target)), NEW, "test")
    with pytest.raises(DraftproofError) as caught:
        verified_write(sshd.host(python="/no/python3"), order, ledger)
    assert caught.value.id == "host-no-python"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        config = sshd.directory / "closed"
        config.write_text(f"Host gone\n HostName 127.0.0.1\n Port {closed.getsockname()[1]}\n")
        with pytest.raises(DraftproofError) as caught:
            verified_write(type(sshd.host())("gone", extra=("-F", str(config))), order, ledger)
    assert caught.value.id == "host-unreachable"


def test_refusals_come_from_the_other_machine(put_there: PutThere, target: Path) -> None:
    """The checks run where the file is."""
    link = target.with_name("link.json")
    link.symlink_to(target.name)
    with pytest.raises(refusals.Symlink):
        put_there(link, NEW)
    target.parent.chmod(0o777)
    with pytest.raises(refusals.ForeignParent):
        put_there(target, NEW)


def test_expectation_over_ssh_then_nothing_happens(sshd: Sshd, target: Path, ledger: Ledger) -> None:
    """The pre-image of another machine's file is ours to compare with."""
    done = expect(sshd.host(), Place("loop", str(target)), NEW, source="test", ledger=ledger)
    assert ledger.objects.fetch(done.old_sha256) == OLD


def test_a_recorded_write_replays(sshd: Sshd, target: Path, ledger: Ledger, tmp_path: Path) -> None:
    """A transcript of a real session gives the same receipt again, without the machine."""
    order = WriteOrder(Place("loop", str(target)), NEW, "test")
    recording = RecordingHost(sshd.host())
    first = verified_write(recording, order, ledger)
    again = verified_write(ReplayHost.of(recording.transcript()), order, Ledger(tmp_path / "second"))
    assert (again.level, again.state, again.evidence) == (first.level, first.state, first.evidence)


def test_the_verbs_take_host_and_path(
    sshd: Sshd, target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """write, history and rollback for ``host:/path``."""
    source = tmp_path / "src.json"
    source.write_bytes(NEW)
    options = ["--ledger", str(tmp_path / "ledger"), "--json"]
    there = ["--ssh-config", str(sshd.config), *options]

    def run(*argv: str) -> tuple[int, dict[str, Any]]:
        code = main([*argv])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, document

    code, receipt = run("write", str(source), f"loop:{target}", *there)
    assert (code, receipt["target"], target.read_bytes()) == (0, f"loop:{target}", NEW)
    assert run("history", f"loop:{target}", *options)[1]["entries"][0]["is_seen"]
    code, receipt = run("rollback", f"loop:{target}", *there)
    assert (code, target.read_bytes()) == (0, OLD)
    assert run("write", str(source), f"stranger:{target}", *there)[0] == 3


def test_time_is_two_connections(put_there: PutThere, sshd: Sshd, target: Path) -> None:
    """A verified remote write costs about two bare logins, here with room for a busy machine."""
    host = sshd.host()
    start = time.monotonic()
    host.run(["true"], timeout_s=20)
    bare = time.monotonic() - start
    start = time.monotonic()
    put_there(target, NEW)
    assert time.monotonic() - start < 4 * bare + 3
