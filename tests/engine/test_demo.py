"""The demo's steps on the shipped pair: each claim is made only where it holds."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.slow]

DEMO = Path(__file__).parents[2] / "examples" / "stale_config"


def test_the_demo_on_the_pair_shows_what_it_claims(tmp_path: Path) -> None:
    """The fault is named, repaired and measured; five methods write one text; the page is there."""
    command = [sys.executable, str(DEMO / "on_the_pair.py")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    said = ran.stdout
    for words in (
        "the write never took effect; the five fields are named",
        "the text is the same: a wrong drafter costs time, never a token",
        "with the stale config",
        "the text is the same in all five",
        "the page of it: .demo/bench/bench.html",
    ):
        assert words in said, words
    assert "\x1b" not in said
    assert len(said.splitlines()) < 40
    assert (tmp_path / ".demo" / "bench" / "bench.html").read_text().startswith("<!doctype html>")


def test_the_demo_stops_where_a_claim_fails(tmp_path: Path) -> None:
    """With an update that does write, nothing is left to be caught, and the demo says which claim failed."""
    honest = tmp_path / "demo"
    honest.mkdir()
    for name in ("on_the_pair.py", "telling.py", "update.sh"):
        text = (DEMO / name).read_text()
        (honest / name).write_text(text.replace("cat > /dev/null\n", "") if name == "update.sh" else text)
    ran = subprocess.run(
        [sys.executable, str(honest / "on_the_pair.py")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ran.returncode == 1
    assert "NOT shown: the update reports success, and the file is still the old one" in ran.stderr
