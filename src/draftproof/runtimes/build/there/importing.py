"""Import the engine in a child with a time limit: what its libraries register no file can tell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import Any

__all__ = ["import_in_child"]

Json = dict[str, Any]
MAX_BYTES = 16 << 20
MARK = "draftproof-import "
CHILD = """
import importlib, json, os, sys
package, cwd = sys.argv[1:]
sys.path[:] = [cwd] + sys.path[1:] if cwd else sys.path[1:]
said = {"file": None, "version": None, "torch": None, "twice": [], "kernels": "", "operators": {}}
engine = importlib.import_module(package)
said["file"], said["version"] = getattr(engine, "__file__", None), str(getattr(engine, "__version__", None))
if package == "vllm":
    platform = importlib.import_module("vllm.platforms").current_platform
    if hasattr(platform, "import_kernels"):
        platform.import_kernels()
    said["kernels"] = type(platform).__name__
torch = sys.modules.get("torch")
if torch is not None:
    said["torch"] = str(torch.__version__)
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space in ("_C", "_moe_C", "_C_cache_ops", "_vllm_fa2_C", "_vllm_fa3_C", "sgl_kernel"):
            said["operators"].setdefault(space, {})[name] = str(schema)
files, home = {}, os.path.join(os.path.dirname(said["file"] or "/-/-"), "")
for name, module in list(sys.modules.items()):
    file = getattr(module, "__file__", None)
    if file and file.startswith(home):
        files.setdefault(file, []).append(name)
said["twice"] = sorted(names for names in files.values() if len(names) > 1)
sys.stdout.write("\\ndraftproof-import " + json.dumps(said) + "\\n")
"""


def import_in_child(package: str, cwd: str, seconds: float) -> Json:
    """What the child said, or ``why`` nothing; it ends with its time, and all that it started."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, package, cwd],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        why = ""
        try:
            status = child.wait(seconds)
            why = "" if status == 0 else f"it ended with status {status}"
        except subprocess.TimeoutExpired:
            why = f"not imported within {seconds:g} s"
        finally:
            end(child)
        last = tail(err, 2000)
        if why:
            return {"why": f"{why}; last words: {last[-400:]}" if last else why}
        for line in reversed(tail(out, MAX_BYTES).splitlines()):
            if line.startswith(MARK):
                said: Json = json.loads(line[len(MARK) :])
                return dict(
                    said, why="", warned=[one[:400] for one in last.splitlines() if "ailed to import" in one]
                )
        return {"why": "it ended well and said nothing"}


def end(child: subprocess.Popen[bytes]) -> None:
    """Stop the child's whole session."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        child.wait()


def tail(stream: Any, size: int) -> str:
    """The last ``size`` bytes of a file that a child wrote."""
    stream.seek(max(0, stream.seek(0, 2) - size))
    return str(stream.read(size).decode("utf-8", "replace"))
