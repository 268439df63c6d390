"""What every program sent into somebody else's Python begins with: one request in, one frame out.

Sent as text and never needed by draftproof itself. Standard library only, Python 3.9 syntax.
Input, on standard input: one JSON object with ``nonce`` and ``limit_s``. Output, on the standard output it
was started with: a line with nonce, length and sha256, the JSON bytes, a line with the nonce again; whatever
else prints goes to standard error.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

__all__ = ["Json", "attempt", "jsonable", "placed", "said", "serve"]

Json = dict[str, Any]
MAX_TEXT = 4000


QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "VLLM_NO_USAGE_STATS": "1",
}
"""Off the network: set here too, since an environment given to a client does not reach another machine."""


def serve(look: Callable[[Json], Json]) -> None:
    """Read one request, let ``look`` answer it from an empty directory, write one frame."""
    out = os.dup(1)
    os.dup2(2, 1)  # stray prints of the library or of a sitecustomize must not reach the frame
    text = sys.stdin.buffer.read().decode("utf-8")
    if not text:
        sys.exit("no request came in: what runs this must pass standard input on (kubectl exec -i)")
    request = json.loads(text)
    os.environ.update(QUIET)
    sys.dont_write_bytecode = True
    signal.alarm(int(request["limit_s"]) + 1)  # whoever asked is gone by then, and this must not stay behind
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        answer = look(request)
        os.chdir(Path(folder).parent)
    body = json.dumps(jsonable(answer), ensure_ascii=True, allow_nan=False, sort_keys=True).encode("ascii")
    head = f"\ndraftproof-frame {request['nonce']} {len(body)} {hashlib.sha256(body).hexdigest()}\n"
    left = head.encode("ascii") + body + f"\ndraftproof-end {request['nonce']}\n".encode("ascii")
    while left:
        left = left[os.write(out, left) :]
    os.close(out)
    sys.stderr.flush()
    os._exit(0)  # threads that an engine's import started are not waited for


def placed(pairs: list[Json]) -> list[Json]:
    """The pairs, with each config that was sent along laid out as a directory of the present, empty one."""
    found = []
    for index, pair in enumerate(pairs):
        found.append(dict(pair))
        for name in ("drafter", "target"):
            if isinstance(pair[name], dict):
                folder = Path.cwd() / f"{name}-{index}"
                folder.mkdir()
                (folder / "config.json").write_text(json.dumps(pair[name]), encoding="ascii")
                found[-1][name] = str(folder)
    return found


def attempt(call: Callable[..., Any], *args: Any) -> tuple[Any, Json | None]:
    """(result, None), or (None, what was raised): whatever a library raises is a result here."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(call, *args)
        raised = future.exception()  # a Future keeps any exception, SystemExit included
    if raised is None:
        return future.result(), None
    return None, {"type": type(raised).__name__, "message": str(raised)[:MAX_TEXT]}


def said(error: Json) -> str:
    """An error on one line."""
    return " ".join(f"{error['type']}: {error['message']}".split())


def jsonable(value: Any) -> Any:
    """Any value as one that JSON carries; what JSON has no word for is told by its repr."""
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"__float__": repr(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return repr(value)[:MAX_TEXT]
