"""The page in a real browser: what it shows is what was read, and hostile text stays text."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from runtimes.asked_engines import recorded
from runtimes.effective_cases import laid_out
from runtimes.observed.scripted import Script
from server.serve import WRONG, ask, page_over, page_with_engine, stale

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        CHROMIUM is None and "DRAFTPROOF_ALL_SUITES" not in os.environ,
        reason="no chromium (Debian: chromium)",
    ),
]


def shown(url: str, profile: Path) -> tuple[str, str]:
    """The document after its scripts ran for some seconds of its own time, and the browser's messages."""
    assert CHROMIUM is not None, "chromium is not installed"
    argv = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    argv += [f"--user-data-dir={profile}", "--virtual-time-budget=4000", "--dump-dom", url]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=True)
    return ran.stdout, ran.stderr


def texts(document: str, tag: str) -> list[str]:
    """The texts of all elements of a kind."""
    return [
        re.sub(r"<[^>]*>", "", inside)
        for inside in re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", document, re.DOTALL)
    ]


def test_the_page_shows_what_was_read(tmp_path: Path) -> None:
    """The banner names the layer; table, figures and curves show fields, counters and intervals."""
    script = Script()
    with page_over(stale(tmp_path / "drafter"), script) as (server, watcher):
        for _ in range(3):
            watcher.look()
            ask(script, 2)
        watcher.look()
        document, messages = shown(server.url, tmp_path / "profile")
    assert "Content Security Policy" not in messages
    assert "first wrong layer: BYTES (5 fields)" in document
    cells = texts(document, "td")
    assert [cell for cell in cells if cell.startswith("/")] == list(WRONG)
    figures = texts(document, "dd")
    assert figures[:2] == ["4.00", "75.0 %"]
    assert figures[4] == "4"
    assert document.count('class="point"') == 3
    assert document.count('class="bar"') == 4
    assert "intent-drift" in document


def test_the_page_shows_what_an_engine_makes_of_it(tmp_path: Path) -> None:
    """One column for each layer, the first that differs marked; the banner names it."""
    drafter, target = laid_out(tmp_path, "unsorted")
    python = recorded(tmp_path, "vllm-0.32.0", "unsorted")
    with page_with_engine(drafter.given, target.given, str(python)) as (server, watcher):
        watcher.look()
        document, messages = shown(server.url, tmp_path / "profile")
    assert "Content Security Policy" not in messages
    assert re.findall('class="differs"[^>]*>([^<]*)<', document) == ["[2,4,6]"]
    assert "first wrong layer: EFFECTIVE (1 value)" in document
    titles = texts(document, "th")
    assert [title for title in titles if title.startswith("EFFECTIVE")] == [
        "EFFECTIVE preflight (vllm 0.32.0)"
    ]
    assert "effective-taps" in document


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    """A config that carries markup and reordering characters shows them written out, and runs nothing."""
    directory = stale(tmp_path / "drafter")
    config = json.loads((directory / "config.json").read_text("utf-8"))
    config["<img src=x onerror=document.title='owned'>"] = (
        "\u202e</script><script>document.title='owned'</script>"
    )
    (directory / "config.json").write_text(json.dumps(config), "utf-8")
    with page_over(directory, None) as (server, watcher):
        watcher.look()
        document, _ = shown(server.url, tmp_path / "profile")
    assert "<title>draftproof</title>" in document
    assert "<img" not in document
    assert "\u202e" not in document
    assert "\\u202e&lt;/script&gt;" in document
