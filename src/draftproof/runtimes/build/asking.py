"""Put the probe to an engine's Python, wherever that is, and take its answer apart."""

import base64
import json
import zlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from draftproof.runtimes.build.features import FEATURES, SYMBOLS, Feature
from draftproof.runtimes.build.reading import Build, read_build
from draftproof.runtimes.interpreter import NoAnswer, Way, ask

__all__ = ["Asked", "ask_build", "features_of"]

_HERE = "draftproof.runtimes.build.there"
_PARTS = ("records", "copies", "bytecode", "source", "calls", "native", "served", "tree", "importing", "main")
"""In the order in which they need one another."""

_START = (
    "import sys,zlib,base64,json\n"
    "for n,s in json.loads(zlib.decompress(base64.b64decode('{packed}'))):\n"
    " m=type(sys)(n);sys.modules[n]=m;exec(compile(s,n,'exec',dont_inherit=True),m.__dict__)\n"
    "m.main()"
)
_BESIDE = {"vllm": ("torch", "torchvision", "torchaudio"), "sglang": ("torch", "torchvision", "torchaudio")}
_GRACE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of one interpreter."""

    engine: str
    """``vllm`` or ``sglang``: the name that is imported."""

    python: str
    way: Way | None = None
    cwd: str = ""
    """The directory that the server is started in; ``""`` where that is not told."""

    pid: int = 0
    import_seconds: float = 0.0
    """How long a child may take to import the engine; 0 where nothing is to be imported."""


def ask_build(asked: Asked, *, timeout_seconds: float) -> Build | NoAnswer:
    """The engine's build as its own Python finds it; NoAnswer with the reason where it could not be asked."""
    questions = [
        {"module": part.module, "symbol": part.symbol, "forms": [*part.has, *part.lacks]}
        for feature in features_of(asked.engine)
        for part in feature.parts
    ]
    request: dict[str, object] = {
        "package": asked.engine,
        "cwd": asked.cwd,
        "pid": asked.pid,
        "seconds": timeout_seconds,
        "import_seconds": asked.import_seconds,
        "questions": questions,
        "symbols": list(SYMBOLS),
        "beside": list(_BESIDE[asked.engine]),
    }
    limit = timeout_seconds + asked.import_seconds + _GRACE_SECONDS
    answer = ask(asked.python, _probe(), request, timeout_seconds=limit, way=asked.way)
    return answer if isinstance(answer, NoAnswer) else read_build(asked.engine, answer.body)


def features_of(engine: str) -> tuple[Feature, ...]:
    """The rows that ask about ``engine``, in the order in which they are asked."""
    return tuple(feature for feature in FEATURES if feature.engine == engine)


@cache
def _probe() -> str:
    package = files(_HERE)
    texts = [(f"{_HERE}.{part}", (package / f"{part}.py").read_text("utf-8")) for part in _PARTS]
    packed = base64.b64encode(zlib.compress(json.dumps(texts).encode("utf-8"), 9)).decode("ascii")
    return _START.format(packed=packed)
