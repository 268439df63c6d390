"""The keys of ``[serve]``: kind, default, and why that default."""

import re
from dataclasses import dataclass

from draftproof.config.raw import JsonValue

__all__ = ["KEYS", "METHODS", "Key"]

METHODS = ("dflash", "ddtree", "eagle3", "mtp", "draft", "ngram", "ar")
"""``draft`` is a draft model of its own, ``ar`` is none: plain decoding."""

_FLAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_MOST = 1 << 31


@dataclass(frozen=True, slots=True)
class Key:
    """One key."""

    name: str
    kind: str
    """What its value must be, in words."""

    choices: tuple[str, ...] = ()
    default: JsonValue = None
    why: str = ""
    is_required: bool = False

    def takes(self, value: object) -> bool:
        """Whether a value is of this kind."""
        if self.choices:
            return value in self.choices
        if self.kind == _COUNT:
            return isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST
        if not isinstance(value, str) or not value or not value.isprintable():
            return False
        return not value.startswith("-")  # it would be read as a flag

    @staticmethod
    def is_flag(name: str) -> bool:
        """Whether a text can be a flag's name."""
        return _FLAG.fullmatch(name) is not None

    @staticmethod
    def is_json(value: object) -> bool:
        """Whether a value of TOML is one of JSON, too: no date, no infinity, nothing unprintable."""
        if isinstance(value, dict):
            return all(Key.is_json(item) for item in value.values())
        if isinstance(value, list):
            return all(Key.is_json(item) for item in value)
        if isinstance(value, float):
            return value - value == 0
        return isinstance(value, bool | int) or (isinstance(value, str) and "\x00" not in value)


_COUNT = "a whole number from 1"
_TEXT = "a text on one line that does not begin with -"


def _choice(*words: str) -> str:
    return f"one of {', '.join(words)}"


_DTYPES = ("auto", "bfloat16", "float16", "float32")
_DEVICES = ("cuda", "cpu")
_NAMES = ("vllm", "sglang", "trtllm", "llamacpp")

KEYS: tuple[Key, ...] = (
    Key("method", _choice(*METHODS), METHODS, is_required=True),
    Key("target", _TEXT, is_required=True),
    Key("drafter", _TEXT),
    Key("drafter_config", _TEXT),
    Key("engine", _choice(*_NAMES), _NAMES),
    Key("version", _TEXT),
    Key("block_size", _COUNT),
    Key("num_draft_tokens", _COUNT),
    Key("ngram_min", _COUNT, default=2, why="shorter matches propose noise"),
    Key("ngram_max", _COUNT, default=4, why="longer matches are rare"),
    Key("dtype", _choice(*_DTYPES), _DTYPES, default="auto", why="what the checkpoint itself names"),
    Key("device", _choice(*_DEVICES), _DEVICES, default="cuda", why="what these engines are built for"),
    Key("tensor_parallel", _COUNT, default=1, why="one device"),
    Key("pipeline_parallel", _COUNT, default=1, why="no split over layers"),
    Key("data_parallel", _COUNT, default=1, why="one replica"),
    Key("nodes", _COUNT, default=1, why="one machine"),
    Key("leader", _TEXT),
    Key("max_model_len", _COUNT),
    Key("host", _TEXT, default="127.0.0.1", why="nobody else can reach it unless that is asked for"),
    Key("port", _COUNT, default=8000, why="the port that vLLM takes"),
    Key("served_name", _TEXT),
    Key("python", _TEXT),
    Key("image", _TEXT),
    Key("name", _TEXT, default="draftproof-serve", why="a name for unit, service and pod"),
)
