"""host.standby over a real sshd: the reader logs in beside the writer, and reads only when that is done."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cutting_proxy import CuttingProxy, cutting_proxy
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.receipt import FileState, Receipt
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.errors import DraftproofError
from draftproof.host.local import LocalHost
from draftproof.host.program import program_argv
from draftproof.host.ssh import Session, SshHost
from draftproof.host.standby import Standby
from loopback import Sshd

pytestmark = [pytest.mark.ssh, pytest.mark.root]
OLD, NEW, FOREIGN = b'{"taps": [1, 17]}\n', b'{"taps": [1, 16]}\n', b'{"taps": [7, 77]}\n'
SOURCE = Path(__file__).parents[3] / "src" / "draftproof"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file with old content."""
    path = tmp_path / "config.json"
    path.write_bytes(OLD)
    return path


def write(host: SshHost, target: Path, ledger: Ledger, content: bytes = NEW) -> Receipt:
    """A verified write there."""
    order = WriteOrder(Place(host.name, str(target)), content, "test", patience_s=20)
    return verified_write(host, order, ledger)


def watch_sessions(monkeypatch: pytest.MonkeyPatch, after_writer: Callable[[], object]) -> list[str]:
    """What the sessions did, in order; ``after_writer`` happens once the writer's has ended."""
    said: list[str] = []
    start, talk, drop = SshHost.start, Session.talk, Session.drop
    kinds: dict[int, str] = {}

    def starting(self: SshHost, argv: Sequence[str], **more: Any) -> Session:
        session = start(self, argv, **more)
        is_writer = list(argv) == program_argv(self.python, "helper")
        kinds[id(session)] = "writer" if is_writer else "reader"
        said.append(f"{kinds[id(session)]} opened")
        return session

    def talking(self: Session, *call: Any, **more: Any) -> Any:
        result = talk(self, *call, **more)
        said.append(f"{kinds[id(self)]} done")
        if kinds[id(self)] == "writer":
            after_writer()
        return result

    def dropping(self: Session) -> None:
        said.append(f"{kinds[id(self)]} dropped")
        drop(self)

    monkeypatch.setattr(SshHost, "start", starting)
    monkeypatch.setattr(Session, "talk", talking)
    monkeypatch.setattr(Session, "drop", dropping)
    return said


def test_the_logins_run_beside_each_other(
    sshd: Sshd, target: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two connections, each with a login of its own; the second begins before the first has ended."""
    said = watch_sessions(monkeypatch, lambda: None)
    before = (sshd.directory / "log").read_bytes().count(b"Accepted publickey")
    receipt = write(sshd.host(), target, ledger)
    after = (sshd.directory / "log").read_bytes().count(b"Accepted publickey")
    assert said == ["writer opened", "reader opened", "writer done", "reader done"]
    assert after - before == 2
    assert (receipt.level >= Level.L2, target.read_bytes()) == (True, NEW)


@pytest.mark.parametrize("content", [NEW, OLD])
def test_what_happens_after_the_receipt_is_read(
    sshd: Sshd, target: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """A foreign write once the host has answered, though the reader's connection is older: it is told."""
    watch_sessions(monkeypatch, lambda: target.write_bytes(FOREIGN))
    receipt = write(sshd.host(), target, ledger, content)
    assert (receipt.state, receipt.level) == (FileState.OTHER, Level.L1)


def test_a_refused_login_is_tried_once(
    sshd: Sshd, target: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that counts failed logins counts one."""
    said = watch_sessions(monkeypatch, lambda: None)
    with pytest.raises(DraftproofError) as caught:
        write(sshd.host("shut"), target, ledger)
    assert (caught.value.id, said) == ("host-login-refused", ["writer opened", "writer done"])


def test_a_refused_write_leaves_no_connection(
    sshd: Sshd, target: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader that waits is dropped unasked; its client and its program are gone."""
    said = watch_sessions(monkeypatch, lambda: None)
    link = target.with_name("link.json")
    link.symlink_to(target.name)
    with pytest.raises(DraftproofError):
        write(sshd.host(), link, ledger)
    assert said[-1] == "reader dropped"
    assert not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()[1:]


@dataclass
class Cutter:
    """Ends every connection of the proxy after the first when the writer has ended."""

    proxy: CuttingProxy
    done: list[str] = field(default_factory=list)

    def __call__(self) -> None:
        """Close what waits."""
        for each in self.proxy.sockets[2:]:
            each.close()
            self.done.append("closed")


def test_a_waiting_link_that_broke_is_made_anew(
    sshd: Sshd, target: Path, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read-back then goes over a third connection; nothing is unknown."""
    with cutting_proxy(sshd.ports[0], None) as proxy:
        config = tmp_path / "ssh_config"
        known = (sshd.directory / "known_loop").read_text().split(" ", 1)[1]
        (tmp_path / "known").write_text(f"[127.0.0.1]:{proxy.port} {known}")
        config.write_text(
            f"Host cut\n HostName 127.0.0.1\n Port {proxy.port}\n User root\n IdentitiesOnly yes\n"
            f" IdentityFile {sshd.directory}/user\n UserKnownHostsFile {tmp_path}/known\n"
        )
        cutter = Cutter(proxy)
        said = watch_sessions(monkeypatch, cutter)
        receipt = write(SshHost("cut", extra=("-F", str(config))), target, ledger)
        assert proxy.connections == 3
    assert cutter.done
    assert said[-2:] == ["reader opened", "reader done"]
    assert (receipt.level >= Level.L2, receipt.state) == (True, FileState.NEW)


def test_a_python_of_the_system_that_is_too_old_makes_way(sshd: Sshd, tmp_path: Path) -> None:
    """The user's own is taken then; where there is none that is newer, that is said."""
    argv = program_argv("python3", "reader")
    old = [word.replace("sys.version_info<(3, 8)", "sys.version_info<(9, 0)") for word in argv]
    assert old != argv
    result = sshd.host().run(old, timeout_s=60)
    assert b"Python 3.8 or newer is needed, this is" in result.stderr
    newer = tmp_path / "python3"
    newer.write_text("#!/bin/sh\necho the next one, $#\n")
    newer.chmod(0o755)
    path = f"/usr/bin:/bin:{tmp_path}:/usr/bin:/bin"
    told = subprocess.run(old, env={"PATH": path}, capture_output=True, check=False)
    assert told.stdout == b"the next one, 4\n"


def test_any_python_does_but_a_named_one_is_kept(sshd: Sshd) -> None:
    """The system's interpreter stands before what the login's path has; other commands keep that path."""
    host = sshd.host()
    which = ["-c", "import sys; print(sys.executable)"]
    assert host.run(["python3", *which], timeout_s=60).stdout == b"/usr/bin/python3\n"
    assert host.run([sys.executable, *which], timeout_s=60).stdout == f"{sys.executable}\n".encode()
    assert "PATH" not in host.command(["python3"])[-1]


WRITING = Path("draftproof", "deploy", "writing", "write.py")
READS = "lambda: look(host, order.place, nonce=secrets.token_hex(16), standby=standby)"
EARLY = {
    '    host_key: str = ""\n': '    host_key: str = ""\n    early: Any = None\n    reads: Any = None\n',
    "        result = call(\n": f"        talk.reads = {READS}\n        result = call(\n",
    "        self.is_sent = True\n": "        self.is_sent = True\n        self.early = self.reads()\n",
    "seen = _read_back(host, talk, standby)": "seen = talk.early",
}
"""The reader asked as soon as its connection stands, before the writer has answered."""

ASKED = """
import json, sys
from pathlib import Path
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.host.ssh import SshHost
config, target, ledger, content = sys.argv[1:]
order = WriteOrder(Place("loop", target), content.encode(), "test")
receipt = verified_write(SshHost("loop", extra=("-F", config)), order, Ledger(Path(ledger)))
print(json.dumps(receipt.as_dict()))
"""


@pytest.mark.parametrize("content", [NEW, OLD], ids=["other content", "the same content"])
@pytest.mark.parametrize("is_mutant", [False, True], ids=["the product", "reads early"])
def test_a_reader_that_reads_early_is_caught(
    sshd: Sshd, target: Path, tmp_path: Path, content: bytes, *, is_mutant: bool
) -> None:
    """It finds the old file; with the same bytes it is another inode than the one published: never L2."""
    source = tmp_path / "source"
    shutil.copytree(SOURCE, source / "draftproof", ignore=shutil.ignore_patterns("__pycache__", "pair"))
    text = (source / WRITING).read_text("utf-8")
    for old, new in EARLY.items() if is_mutant else ():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (source / WRITING).write_text(text, "utf-8")
    argv = [str(sshd.config), str(target), str(tmp_path / "ledger"), content.decode()]
    done = subprocess.run(
        [sys.executable, "-S", "-c", ASKED, *argv],
        env={**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    receipt = json.loads(done.stdout)
    assert (receipt["level"] < "L2") is is_mutant, receipt


def test_a_standby_elsewhere_is_none(target: Path) -> None:
    """Only over ssh does a connection wait; asked or not, it is asked once."""
    with Standby(LocalHost(sys.executable), "reader") as standby:
        standby.open()
        assert standby.ask(b"", timeout_s=1) is None
    assert target.read_bytes() == OLD
