"""The same cut links under other tools: what they leave behind, beside what this product leaves behind."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest

from cutting_proxy import Cut, CuttingProxy, cutting_proxy
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.writing.receipt import FileState
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.errors import DraftproofError
from draftproof.host.ssh import SshHost
from environments import peer_python
from loopback import Sshd
from totals import record

pytestmark = [pytest.mark.ssh, pytest.mark.root, pytest.mark.slow]
OLD = b'{"taps": [1, 17]}\n' * 50
NEW = json.dumps({"taps": list(range(60_000))}).encode()
PARTS = [0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 0.96, 0.99]
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


def sftp(config: Path, source: Path, target: Path) -> bool:
    """The sftp of OpenSSH, one put."""
    batch = config.with_suffix(".batch")
    batch.write_text(f"put {source} {target}\n")
    return command("sftp", "-q", "-F", str(config), "-b", str(batch), "cut")


def ansible_copy(config: Path, source: Path, target: Path) -> bool:
    """Ansible's copy module, as it comes but for its own connection cache."""
    python = peer_python("ansible-core-2.19.14", "ansible-core==2.19.14")
    home = config.with_suffix(".ansible")
    settings = {
        "ANSIBLE_SSH_ARGS": f"-F {config} -o ControlMaster=no",
        "ANSIBLE_HOME": str(home),
        "ANSIBLE_LOCAL_TEMP": str(home / "local"),
        "ANSIBLE_REMOTE_TEMP": str(home / "remote"),
        "LC_ALL": "C.UTF-8",
    }
    words = [str(python.with_name("ansible")), "all", "-i", "cut,", "-m", "copy"]
    words += ["-a", f"src={source} dest={target}", "-e", f"ansible_python_interpreter={python}"]
    done = subprocess.run(
        words, env={**os.environ, **settings}, capture_output=True, check=False, timeout=240
    )
    return done.returncode == 0


def hub_style(config: Path, source: Path, target: Path) -> bool:
    """The way of a hub download: into .incomplete, the size compared, then moved; no sync and no digest."""
    part = target.with_name(f"{target.name}.incomplete")
    with part.open("wb") as stream:
        subprocess.run(
            ["ssh", "-F", str(config), "cut", f"cat {source}"], stdout=stream, check=False, timeout=60
        )
    if part.stat().st_size != source.stat().st_size:
        return False
    part.replace(target)
    return True


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
    "sftp": sftp,
    "ansible copy": ansible_copy,
    "hf download-style": hub_style,
    "draftproof write": draftproof,
}


def wait_for_the_end(directory: Path) -> None:
    """Return when no program on the other side has the directory on its command line, ten seconds at most."""
    until = time.monotonic() + 10
    time.sleep(0.5)
    while time.monotonic() < until and any(f"{directory}/".encode() in line for line in command_lines()):
        time.sleep(0.1)


def command_lines() -> Iterator[bytes]:
    """Of every process of this machine that is still there."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except OSError:
            continue  # it ended meanwhile


DOWNWARDS = {"hf download-style"}
"""The content comes from the other side; the link is cut in that direction."""

MANY_CONNECTIONS = {"ansible copy"}


def outcome(sshd: Sshd, tool: Tool, directory: Path, cut: Cut | None) -> tuple[str, CuttingProxy]:
    """What is at the target when the tool and whatever it left running are over, and the link."""
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
        wait_for_the_end(directory)
        found = target.read_bytes()
        if found not in {OLD, NEW}:
            return "torn", proxy
        if says and found == OLD:
            return "false success", proxy
        return ("new" if found == NEW else "old"), proxy


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.live] * (name in MANY_CONNECTIONS)) for name in TOOLS]
)
def test_cut_links_beside_other_tools(sshd: Sshd, tmp_path: Path, name: str) -> None:
    """Eight cuts each (four of a slow tool): this product tears nothing; one that writes in place does."""
    tool = TOOLS[name]
    said, link = outcome(sshd, tool, tmp_path / "whole", None)
    assert said == "new"
    way: Literal["up", "down"] = "down" if name in DOWNWARDS else "up"
    parts = PARTS[1::2] if name in MANY_CONNECTIONS else PARTS
    whole = link.summed if name in MANY_CONNECTIONS else link.passed
    cuts = [Cut(int(whole[way] * part), "fin", way, name in MANY_CONNECTIONS) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        pairs = enumerate(cuts)
        ended = list(pool.map(lambda pair: outcome(sshd, tool, tmp_path / str(pair[0]), pair[1]), pairs))
    results = [kind for kind, _ in ended]
    counts = {kind: results.count(kind) for kind in ("torn", "false success", "old", "new")}
    num_cut = sum(each.is_cut for _, each in ended)
    record("side by side: cut links", name, {"points": len(parts), **counts, "cut": num_cut})
    assert len(results) == len(parts) >= 4
    if name == "draftproof write":
        assert not {"torn", "false success"} & set(results)
    if name == "cat >":
        assert results.count("torn") >= 4
