"""What a bench asks: prompts shipped with the product, or a file of one's own."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from draftproof.engine.text.tokens import TextCodec
from draftproof.errors import CouldNotLook, RefusedInput, UsageError

__all__ = ["SETS", "BenchPrompt", "encoded", "read_prompts", "shipped_prompts"]

SETS = ("procedural", "real")
"""Prompts shipped beside the pair: texts made by a program, and texts people wrote."""

_MOST_BYTES = 64 << 20
_PAIR = Path(__file__).parents[2] / "pair"


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """One request: a text, or the ids themselves."""

    name: str
    text: str | None = None
    ids: tuple[int, ...] = ()
    is_chat: bool = False
    """Whether the text is a user's message, for the target's own template."""


def shipped_prompts(name: str, count: int) -> list[BenchPrompt]:
    """The first ``count`` prompts of a shipped set.

    Raises:
        UsageError: no such set, or not so many in it.
    """
    if name not in SETS:
        raise _usage("--set", " or ".join(SETS), repr(name))
    prompts = read_prompts(_PAIR / "prompts" / f"{name}.jsonl")
    if not 1 <= count <= len(prompts):
        raise _usage("--prompts", f"1 to {len(prompts)}, or a file", str(count))
    return prompts[:count]


def read_prompts(path: Path) -> list[BenchPrompt]:
    """Every line a JSON object with ``prompt`` (and ``is_chat``), or with ``prompt_ids``.

    Raises:
        CouldNotLook: the file cannot be read.
        RefusedInput: a line is something else, or there is none.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise _refused(str(path), f"{_MOST_BYTES} bytes at most", f"{path.stat().st_size} bytes")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CouldNotLook(
            "--prompts",
            expected="a file of prompts, a JSON object a line",
            found=error.strerror or type(error).__name__,
            where=str(path),
            means="there is nothing to ask",
            next_step="name a file, or a number of shipped prompts",
        ) from error
    except UnicodeDecodeError as error:
        raise _refused(str(path), "text in UTF-8", f"byte {error.object[error.start]:#04x}") from error
    found = list(_parsed(text, path))
    if not found:
        raise _refused(str(path), "one prompt at least", "none")
    return found


def _parsed(text: str, path: Path) -> Iterator[BenchPrompt]:
    for number, row in enumerate(text.splitlines(), start=1):
        if not row.strip():
            continue
        where = f"{path} line {number}"
        try:
            record = json.loads(row)
        except (ValueError, RecursionError) as error:
            raise _refused(where, "a JSON object", "no JSON") from error
        if not isinstance(record, Mapping):
            raise _refused(where, "a JSON object", type(record).__name__)
        yield _prompt(record, number, where)


def _prompt(record: Mapping[str, object], number: int, where: str) -> BenchPrompt:
    name, text = str(record.get("id", number)), record.get("prompt")
    ids, is_chat = record.get("prompt_ids"), record.get("is_chat", False)
    if isinstance(text, str) and ids is None and isinstance(is_chat, bool):
        return BenchPrompt(name, text, is_chat=is_chat)
    if text is None and isinstance(ids, list) and ids and all(type(token) is int for token in ids):
        return BenchPrompt(name, ids=tuple(ids))
    raise _refused(where, "prompt, a text, or prompt_ids, integers", ", ".join(map(str, record)) or "nothing")


def encoded(prompt: BenchPrompt, codec: TextCodec | None) -> list[int]:
    """The prompt's token ids.

    Raises:
        RefusedInput: a text and no tokenizer, or a message and no template.
    """
    if prompt.text is None:
        return list(prompt.ids)
    if codec is None:
        raise _refused(f"prompt {prompt.name}", "prompt_ids, for this target has no tokenizer", "a text")
    if prompt.is_chat:
        return codec.encode_chat([{"role": "user", "content": prompt.text}])
    return codec.encode(prompt.text)


def _usage(subject: str, expected: str, found: str) -> UsageError:
    return UsageError(
        subject,
        expected=expected,
        found=found,
        where="command line",
        means="there is nothing to ask",
        next_step="draftproof bench --help",
    )


def _refused(where: str, expected: str, found: str) -> RefusedInput:
    return RefusedInput(
        "prompts",
        expected=expected,
        found=found,
        where=where,
        means="this prompt cannot be asked",
        next_step='write lines like {"prompt": "..."} or {"prompt_ids": [1, 2, 3]}',
    )
