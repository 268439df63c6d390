"""The same cut links under other tools: what they leave behind, beside what this product leaves behind."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cutting_proxy import Cut, cutting_proxy
from draftproof.deploy.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.receipt import FileState
from draftproof.deploy.write import WriteOrder, verified_write
from draftproof.errors import DraftproofError
from draftproof.host.ssh import SshHost
from loopback import Sshd

pytestmark = [pytest.mark.ssh, pytest.mark.root, pytest.mark.slow]
OLD = b'{"taps": [1, 17]}\n' * 50
NEW = json.dumps({"taps": list(range(60_000))}).encode()
PARTS = [0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 0.96, 0.99]
TOTALS = Path(os.environ.get("DRAFTPROOF_TOTALS", "/dev/null"))
Tool = Callable[[Path, Path, Path], bool]
"""Put a source at a target through the host ``cut`` of a client configuration; whether it says it did."""


def command(*words: str, stdin: Path | None = None) -> bool:
    """Whether a program exits 0."""
    with (stdin or Path(os.devnull)).open("rb") as stream:
        done = subprocess.run(words, stdin=stream, capture_output=True, check=False, timeout=60)
    return done.returncode == 0


def cat(config: Path, source: Path, target: Path) -> bool:
    """``cat > target``."""
    return command("ssh", "-F", str(config), "cut", f"cat > {target}", stdin=source)


def cat_and_move(config: Path, source: Path, target: Path) -> bool:
    """``cat > t && mv t target``: the usual advice."""
    return command(
        "ssh", "-F", str(config), "cut", f"cat > {target}.t && mv {target}.t {target}", stdin=source
    )


def scp(config: Path, source: Path, target: Path) -> bool:
    """The scp of OpenSSH, over SFTP."""
    return command("scp", "-q", "-F", str(config), str(source), f"cut:{target}")


def rsync(config: Path, source: Path, target: Path) -> bool:
    """The rsync of Debian, whole file."""
    return command("rsync", "-W", "-e", f"ssh -F {config}", str(source), f"cut:{target}")


def draftproof(config: Path, source: Path, target: Path) -> bool:
    """This product."""
    order = WriteOrder(Place("cut", str(target)), source.read_bytes(), "test", patience_s=4)
    host, ledger = SshHost("cut", extra=("-F", str(config))), Ledger(config.with_suffix(".l"))
    try:
        receipt = verified_write(host, order, ledger)
    except DraftproofError:
        return False
    return receipt.state is FileState.NEW and receipt.is_enough


TOOLS: dict[str, Tool] = {
    "cat >": cat,
    "cat > t && mv t f": cat_and_move,
    "scp": scp,
    "rsync": rsync,
    "draftproof write": draftproof,
}


def outcome(sshd: Sshd, tool: Tool, directory: Path, cut: Cut | None) -> tuple[str, int]:
    """What is at the target when the tool and whatever it left running are over, and the bytes sent up."""
    directory.mkdir(parents=True)
    source, target = directory / "source.json", directory / "config.json"
    source.write_bytes(NEW)
    target.write_bytes(OLD)
    with cutting_proxy(sshd.ports[0], cut) as proxy:
        key = (sshd.directory / "known_loop").read_text().split(" ", 1)[1]
        (directory / "known").write_text(f"[127.0.0.1]:{proxy.port} {key}")
        config = directory / "config"
        config.write_text(
            f"Host cut\n HostName 127.0.0.1\n Port {proxy.port}\n User root\n "
            "IdentitiesOnly yes\n BatchMode yes\n"
            f" IdentityFile {sshd.directory}/user\n UserKnownHostsFile {directory}/known\n LogLevel ERROR\n"
        )
        says = tool(config, source, target)
        time.sleep(0.5)
        found = target.read_bytes()
        if found not in {OLD, NEW}:
            return "torn", proxy.passed["up"]
        if says and found == OLD:
            return "false success", proxy.passed["up"]
        return ("new" if found == NEW else "old"), proxy.passed["up"]


@pytest.mark.parametrize("name", TOOLS)
def test_cut_links_beside_other_tools(sshd: Sshd, tmp_path: Path, name: str) -> None:
    """Eight cuts each: this product tears nothing; a tool that writes in place does, so the cuts do cut."""
    tool = TOOLS[name]
    said, whole = outcome(sshd, tool, tmp_path / "whole", None)
    assert said == "new"
    cuts = [Cut(int(whole * part), "fin") for part in PARTS]
    with ThreadPoolExecutor(4) as pool:
        pairs = enumerate(cuts)
        results = list(pool.map(lambda pair: outcome(sshd, tool, tmp_path / str(pair[0]), pair[1])[0], pairs))
    with TOTALS.open("a") as stream:
        counts = {kind: results.count(kind) for kind in ("torn", "false success", "old", "new")}
        stream.write(
            json.dumps({"suite": "side by side: cut links", "fault": name, "points": 8, **counts}) + "\n"
        )
    assert len(results) == 8
    if name == "draftproof write":
        assert not {"torn", "false success"} & set(results)
    if name == "cat >":
        assert results.count("torn") >= 4
