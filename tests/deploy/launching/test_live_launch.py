"""draftproof launch on a real vLLM: right plans pass, a swapped drafter is named, a crash is told."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from deploy.launching.conftest import Planned
from deploy.launching.test_launch import marked
from draftproof.cli.main import main
from environments import vllm_python
from runtimes.tiny_checkpoints import DFLASH, changed, dflash_tensors, write

pytestmark = pytest.mark.live


def launched(plan: Path, python: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    """Exit status and document; the time limits are for a machine that does other things, too."""
    capsys.readouterr()
    options = ["--probe", "0", "--only-look", "--timeout", "1500", "--request-timeout", "600"]
    code = main(["launch", str(plan), "--python", str(python), *options, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def swapping(folder: Path, drafter: Path, other: Path) -> Path:
    """An interpreter whose engine is given another drafter than the plan says: a wrapper gone wrong."""
    python = folder / "swapping"
    swap = f'set -- "$@" "$(printf %s "$a" | sed s#{drafter}#{other}#)"'
    loop = f'if [ "$1" = -m ]; then for a do shift; {swap}; done; fi'
    python.write_text(f'#!/bin/sh\n{loop}\nexec {vllm_python()} "$@"\n')
    python.chmod(0o755)
    return python


@pytest.mark.slow
def test_a_right_plan_passes(planned: Planned, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Intent, bytes, worker and first request agree; drafts were counted; nothing is left."""
    code, document = launched(planned(), vllm_python(), capsys)
    assert code == 0, document
    (record,) = document["effective"]
    assert (record["k"]["value"], record["aux_layers"]["value"]) == (7, [2, 4, 6])
    assert document["acceptance"]["num_drafts"]["value"] > 0
    assert not marked(tmp_path)


@pytest.mark.slow
def test_a_swapped_drafter_is_named_and_stopped(
    planned: Planned, pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other taps and windows than the plan's file has: each is named, from the worker's own mouth."""
    other = changed(
        DFLASH,
        dflash_config__target_layer_ids=[0, 2, 5],
        layer_types=["sliding_attention", "sliding_attention"],
        sliding_window=32,
        use_sliding_window=True,
    )
    write(tmp_path / "other", other, dflash_tensors(other))
    code, document = launched(planned(), swapping(tmp_path, pair[1], tmp_path / "other"), capsys)
    assert code == 1
    kinds = {finding["id"] for finding in document["findings"]}
    assert {"effective-taps", "effective-window", "effective-causality"} <= kinds, kinds
    assert not marked(tmp_path)


@pytest.mark.slow
def test_a_crash_is_told(
    planned: Planned, pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A drafter without a mask: vLLM ends before it listens, and its own words are handed on."""
    other = changed(DFLASH, dflash_config__mask_token_id=None)
    write(tmp_path / "other", other, dflash_tensors(other))
    code, document = launched(planned(), swapping(tmp_path, pair[1], tmp_path / "other"), capsys)
    assert code == 3
    assert document["error"]["id"] == "engine-did-not-start"
    assert "mask_token_id" in document["error"]["found"]
    assert sys.executable not in document["error"]["found"]
    assert not marked(tmp_path)
