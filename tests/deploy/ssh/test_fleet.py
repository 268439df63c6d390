"""A plan over many targets behind real sshds, some dead, wrong-keyed or refused: none hides another."""

import json
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from loopback import Sshd, free_port, key

pytestmark = [pytest.mark.ssh, pytest.mark.root, pytest.mark.slow]
NEW = '{"taps": [1, 16]}\n'
TARGETS = 12
BROKEN = {"stranger": "host-key-unknown", "changed": "host-key-changed", "shut": "host-login-refused"}


def test_each_hosts_truth_is_told_in_bounded_time(
    sshd: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dozen targets apply and verify; three broken hosts and one wrong file among them are told by name."""
    (tmp_path / "new.json").write_text(NEW)
    text = ""
    for number in range(TARGETS):
        directory = tmp_path / f"model{number}"
        directory.mkdir()
        host = ["loop", "noisy"][number % 2]
        text += f'[[files]]\nsource = "new.json"\npath = "{directory}/config.json"\nhosts = ["{host}"]\n'
    for host in BROKEN:
        text += (
            f'[[files]]\nsource = "new.json"\npath = "{tmp_path}/model0/config.json"\nhosts = ["{host}"]\n'
        )
    plan = tmp_path / "plan.toml"
    plan.write_text(text)
    options = ["--ssh-config", str(sshd.config), "--ledger", str(tmp_path / "ledger"), "--json"]

    def run(verb: str) -> tuple[int, list[dict[str, Any]]]:
        code = main([verb, str(plan), *options])
        files: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["files"]
        return code, files

    start = time.monotonic()
    code, files = run("apply")
    assert code == 3
    assert [file["state"] for file in files[:TARGETS]] == ["new"] * TARGETS
    assert [file["error"]["id"] for file in files[TARGETS:]] == list(BROKEN.values())
    (tmp_path / "model7" / "config.json").write_text(NEW[:9])
    code, files = run("verify")
    assert code == 1
    assert [file["is_in_place"] for file in files[:TARGETS]].count(False) == 1
    assert files[7]["cause"] == "cut_at"
    assert [file["error"]["id"] for file in files[TARGETS:]] == list(BROKEN.values())
    assert time.monotonic() - start < 240


@dataclass(frozen=True)
class Kind:
    """So many targets of one kind, and what verify is to say of each."""

    count: int
    host: str
    content: str | None
    """What is there; None for no file."""

    told: str
    """``in place``, a cause, or the id of an error."""


KINDS = (
    Kind(100, "loop", NEW, "in place"),
    Kind(12, "loop", NEW[:7], "cut_at"),
    Kind(8, "loop", NEW[:-1], "newlines_or_bom"),
    Kind(4, "loop", '{"taps": [9]}\n', "unknown"),
    Kind(4, "loop", None, "unknown"),
    Kind(20, "noisy", NEW, "in place"),
    Kind(6, "bare", NEW, "in place"),
    Kind(6, "sftp", NEW, "in place"),
    Kind(10, "slow", NEW, "in place"),
    Kind(10, "dead", NEW, "host-unreachable"),
    Kind(6, "silent", NEW, "host-unreachable"),
    Kind(6, "changed", NEW, "host-key-changed"),
    Kind(4, "stranger", NEW, "host-key-unknown"),
    Kind(4, "shut", NEW, "host-login-refused"),
)


@contextmanager
def full_fleet(sshd: Sshd, directory: Path) -> Iterator[Path]:
    """A client configuration that knows a slow, a dead and a silent host besides the usual ones."""
    slow = directory / "slow_key"
    line = f'command="sleep 2; eval \\"$SSH_ORIGINAL_COMMAND\\"" {key(slow)}\n'
    authorized = sshd.directory / "authorized"
    before = authorized.read_text()
    authorized.write_text(before + line)
    config = directory / "ssh_config"
    usual = sshd.config.read_text()
    own = f" HostName 127.0.0.1\n User root\n UserKnownHostsFile {sshd.directory}/known_loop\n"
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(100)
        config.write_text(
            f"Host slow\n{own} Port {sshd.ports[0]}\n IdentityFile {slow}\n IdentitiesOnly yes\n"
            f"Host dead\n{own} Port {free_port()}\n"
            f"Host silent\n{own} Port {silent.getsockname()[1]}\n" + usual
        )
        try:
            yield config
        finally:
            authorized.write_text(before)


def told_of(file: dict[str, Any]) -> str:
    """What verify said of one target, in a word."""
    if "error" in file:
        return str(file["error"]["id"])
    return "in place" if file["is_in_place"] else str(file["cause"])


def test_two_hundred_targets_and_none_is_lost(
    sshd: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every target's own truth, in the plan's order, though hosts are dead, silent, slow or wrong-keyed."""
    (tmp_path / "new.json").write_text(NEW)
    targets = [kind for kind in KINDS for _ in range(kind.count)]
    assert len(targets) == 200
    targets = targets[::2] + targets[1::2]
    text = ""
    for number, kind in enumerate(targets):
        path = tmp_path / f"model{number}" / "config.json"
        path.parent.mkdir()
        if kind.content is not None:
            path.write_text(kind.content)
        text += f'[[files]]\nsource = "new.json"\npath = "{path}"\nhosts = ["{kind.host}"]\n'
    plan = tmp_path / "plan.toml"
    plan.write_text(text)
    start = time.monotonic()
    with full_fleet(sshd, tmp_path) as config:
        options = ["--ssh-config", str(config), "--ledger", str(tmp_path / "ledger"), "--jobs", "12"]
        code = main(["verify", str(plan), *options, "--json"])
    files: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["files"]
    assert [told_of(file) for file in files] == [kind.told for kind in targets]
    assert code == 1
    assert Counter(map(told_of, files))["in place"] == 142
    assert time.monotonic() - start < 400  # a hang would be a multiple; speed is measured elsewhere


def test_full_and_read_only_places_are_told_each(
    sshd: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Apply to a full file system, a read-only one and a good one: each has its own truth."""
    big = json.dumps({"taps": list(range(9000))})
    (tmp_path / "new.json").write_text(big)
    places = {name: tmp_path / name for name in ("full", "fixed", "good")}
    text = ""
    for place in places.values():
        place.mkdir()
        text += f'[[files]]\nsource = "new.json"\npath = "{place}/config.json"\nhosts = ["loop"]\n'
    (tmp_path / "plan.toml").write_text(text)
    mounted = ("full", "fixed")
    for name in mounted:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", str(places[name])], check=True)
    try:
        for place in places.values():
            (place / "config.json").write_text(NEW)
        subprocess.run(["mount", "-o", "remount,ro", str(places["fixed"])], check=True)
        options = ["--ssh-config", str(sshd.config), "--ledger", str(tmp_path / "ledger"), "--json"]
        main(["apply", str(tmp_path / "plan.toml"), *options])
        full, fixed, good = json.loads(capsys.readouterr().out)["files"]
        assert (full["state"], full["level"]) == ("old", "L0")
        assert "No space left" in full["not_reached"]["reason"]
        assert fixed["error"]["id"] == "write-read-only"
        assert good["state"] == "new"
        contents = {name: (place / "config.json").read_text() for name, place in places.items()}
        assert contents == {"full": NEW, "fixed": NEW, "good": big}
    finally:
        for name in mounted:
            subprocess.run(["umount", str(places[name])], check=True)
