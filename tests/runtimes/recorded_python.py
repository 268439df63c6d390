"""An interpreter that answers as a real one did: a recorded answer under the nonce it is asked with."""

import json
import sys
from pathlib import Path

from runtimes.cases import recorded

__all__ = ["recorded_python"]

_PROGRAM = """#!{python}
import hashlib, json, sys
nonce = json.loads(sys.stdin.read())["nonce"]
body = {body!r}.encode("ascii")
print("a stray line that is no answer")
print("draftproof-frame", nonce, len(body), hashlib.sha256(body).hexdigest())
print(body.decode("ascii"))
"""


def recorded_python(folder: Path, case: str, version: str) -> str:
    """The path of a program that takes the place of a Python with this transformers, for this case."""
    program = folder / f"python-{version}-{len(list(folder.iterdir()))}"
    body = json.dumps(recorded(version)[case])
    program.write_text(_PROGRAM.format(python=sys.executable, body=body), encoding="utf-8")
    program.chmod(0o755)
    return str(program)
