"""``draftproof ui``: a page on loopback that shows views, drift and acceptance live."""

import signal
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from draftproof.cli.engine_option import EngineName, check_engine_named
from draftproof.cli.output import emit_json, line

if TYPE_CHECKING:
    from draftproof.runtimes.engine_views import Asked
    from draftproof.runtimes.observed.http import Address

__all__ = ["ui"]

_LAST_PORT = 65535


def ui(
    directory: Annotated[
        str | None, typer.Argument(metavar="DIR", help="A drafter's directory, or its config file.")
    ] = None,
    *,
    url: Annotated[str | None, typer.Option(metavar="URL", help="A server whose counters are read.")] = None,
    intent: Annotated[str | None, typer.Option(metavar="PATH", help="The file that was meant.")] = None,
    target: Annotated[str | None, typer.Option(metavar="DIR", help="The target it is to draft for.")] = None,
    python: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="A Python whose transformers is asked; may be given again."),
    ] = None,
    engine: Annotated[
        EngineName | None, typer.Option(help="An engine that is asked too, in the first Python named.")
    ] = None,
    pid: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The server's process: command line, environment.")
    ] = None,
    k: Annotated[int | None, typer.Option("--k", metavar="N", min=1, help="Tokens drafted per step.")] = None,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=_LAST_PORT, help="0 takes a free one.")] = 8765,
    interval: Annotated[float, typer.Option(metavar="SECONDS", min=0.2, help="Between two looks.")] = 5.0,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How long one look may take.")
    ] = 10.0,
    engine_timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, help="How long the engine's code may take, once per file."),
    ] = 180.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Say where the page is as one JSON object.")
    ] = False,
) -> int:
    """Show a directory and a server live, in a browser on this machine; both are only read.

    Ends with Ctrl-C, exit 0. The page is served to this machine alone and loads nothing from elsewhere.
    """
    from draftproof.server.loopback import LoopbackServer
    from draftproof.server.watcher import Subject, Watcher

    _check(directory, url, intent, engine)
    check_engine_named(engine, {"--pid": pid, "--k": k})
    pythons = tuple(dict.fromkeys(python or ()))
    asked = _engine(engine, pythons, url, pid, k)
    subject = Subject(
        directory, intent, target, pythons, _address(url), interval, timeout, asked, engine_timeout
    )
    watcher = Watcher(subject)
    server = LoopbackServer(watcher, port)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    watcher.start()
    server.start()
    if as_json:
        emit_json({"schema": "draftproof.ui/1", "url": server.url})
        sys.stdout.flush()
    else:
        line(f"{server.url}  (Ctrl-C ends it)")
    ended.wait()
    server.close()
    watcher.close()
    return 0


def _engine(
    engine: str | None, pythons: tuple[str, ...], url: str | None, pid: int | None, k: int | None
) -> "Asked | None":
    if engine is None:
        return None
    from draftproof.cli.engine_option import engine_python
    from draftproof.runtimes.engine_views import Asked

    return Asked(engine, engine_python(pythons[0] if pythons else None, None, None, None), url, pid, k)


def _address(url: str | None) -> "Address | None":
    from draftproof.runtimes.observed.http import address_of

    return None if url is None else address_of(url)


def _check(directory: str | None, url: str | None, intent: str | None, engine: str | None) -> None:
    from draftproof.errors import UsageError

    lonely = "--intent" if intent is not None else "--engine" if engine is not None else ""
    if directory is None and (url is None or lonely):
        raise UsageError(
            "ui",
            expected="a directory" if lonely else "a directory, --url, or both",
            found="neither" if url is None else f"{lonely} alone",
            where="command line",
            means="there is nothing to show",
            next_step="draftproof ui ./drafter --url http://127.0.0.1:8000",
        )
