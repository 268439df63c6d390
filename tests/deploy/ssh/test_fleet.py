"""A plan over many targets behind real sshds, some dead, wrong-keyed or refused: none hides another."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main
from loopback import Sshd

pytestmark = [pytest.mark.ssh, pytest.mark.root, pytest.mark.slow]
NEW = '{"taps": [1, 16]}\n'
TARGETS = 40
BROKEN = {"stranger": "host-key-unknown", "changed": "host-key-changed", "shut": "host-login-refused"}


def test_each_hosts_truth_is_told_in_bounded_time(
    sshd: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Forty targets apply and verify; three broken hosts and one wrong file among them are told by name."""
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
