"""A watched directory with the stale file of the case study, a scripted server, and the page over both."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.engine_views import Asked
from draftproof.runtimes.observed.http import address_of
from draftproof.server.loopback import LoopbackServer
from draftproof.server.watcher import Subject, Watcher
from runtimes.observed.scripted import Script, serving

__all__ = ["WRONG", "ask", "page_over", "page_with_engine", "stale"]

INTENDED = Path(__file__).parents[1] / "configs" / "zlab-qwen3.6-27b-dflash.json"
WRONG = (
    "/bos_token_id",
    "/dflash_config/mask_token_id",
    "/dflash_config/target_layer_ids",
    "/layer_types",
    "/sliding_window",
)


def stale(directory: Path) -> Path:
    """The drafter's directory with five fields that nobody meant."""
    config = json.loads(INTENDED.read_text("utf-8"))
    config |= {"bos_token_id": 248044, "sliding_window": None, "layer_types": ["full_attention"] * 5}
    config["dflash_config"] |= {"mask_token_id": 248064, "target_layer_ids": [1, 17, 33, 49, 63]}
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(config, indent=2), "utf-8")
    return directory


def ask(script: Script, answers: int) -> None:
    """Let the scripted server answer so many requests."""
    for _ in range(answers):
        body: dict[str, Any] = {"messages": [{"content": "Hello"}], "max_tokens": 64}
        assert list(script.answer(body))


@contextmanager
def page_over(directory: Path | None, script: Script | None) -> Iterator[tuple[LoopbackServer, Watcher]]:
    """The page's server with its watcher, which looks when it is told to."""
    with serving(script or Script()) as url:
        address = address_of(url) if script else None
        given = str(directory) if directory else None
        subject = Subject(given, str(INTENDED) if given else None, None, (), address, 1.0, 5.0)
        with served(subject) as pair:
            yield pair


@contextmanager
def page_with_engine(drafter: str, target: str, python: str) -> Iterator[tuple[LoopbackServer, Watcher]]:
    """The same over a pair that an engine, or what was recorded of one, is asked about."""
    asked = Asked("vllm", EnginePython(python))
    with served(Subject(drafter, None, target, (), None, 1.0, 5.0, asked, 60.0)) as pair:
        yield pair


@contextmanager
def served(subject: Subject) -> Iterator[tuple[LoopbackServer, Watcher]]:
    """A watcher that looks when it is told to, and its server."""
    watcher = Watcher(subject)
    server = LoopbackServer(watcher, 0)
    server.start()
    try:
        yield server, watcher
    finally:
        server.close()
