"""What a directory's tokenizer files say, with the standard library alone: ids, texts, how text is split.

Source: tokenizer.json of Hugging Face tokenizers (model.vocab, added_tokens, pre_tokenizer) and
tokenizer_config.json of transformers (added_tokens_decoder, eos_token, mask_token).
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from draftproof.config.json.bytes import read_limited
from draftproof.config.raw import JsonValue
from draftproof.errors import CouldNotLook

__all__ = ["MAX_TOKENIZER_BYTES", "NoTokenizer", "Tokenizer", "read_tokenizer"]

MAX_TOKENIZER_BYTES = 64 * 1024 * 1024
_MAIN = ("tokenizer.json", "vocab.json")


@dataclass(frozen=True, slots=True)
class NoTokenizer:
    """There is no tokenizer to look at, and why."""

    reason: str
    is_damaged: bool = False
    """Files are there and cannot be read as what they are named."""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """The ids of a tokenizer and what they stand for."""

    path: Path
    """The file that gave the vocabulary."""

    texts: Mapping[int, str]
    """Every id with its text, added tokens included."""

    added: Mapping[int, str]
    """Tokens added to the base vocabulary: the named ones."""

    pre_tokenizer_digest: str | None
    """sha256 of how text is split before lookup; None where the file does not say."""

    specials: Mapping[str, str]
    """``eos_token``, ``mask_token``, ... as tokenizer_config.json names them."""

    defects: tuple[str, ...]
    """Contradictions inside the files, in words."""

    @property
    def length(self) -> int:
        """One more than the highest id: what an embedding must at least have."""
        return max(self.texts) + 1 if self.texts else 0

    def id_of(self, text: str) -> int | None:
        """The id of a text that is one token; None where it is not."""
        for token, known in self.texts.items():
            if known == text:
                return token
        return None


class _Damaged(Exception):
    """A tokenizer file that is not what its name says."""


def read_tokenizer(directory: Path) -> Tokenizer | NoTokenizer:
    """The tokenizer of a directory: tokenizer.json, or vocab.json, with tokenizer_config.json beside it."""
    # os.path answers False where pathlib raises: no permission, a name too long.
    main = next((p for n in _MAIN if os.path.isfile(p := directory / n)), None)  # noqa: PTH113
    if main is None:
        if os.path.isdir(directory) and not os.access(directory, os.X_OK):  # noqa: PTH112
            return NoTokenizer(f"{directory}: its files may not be opened (Permission denied)")
        return NoTokenizer(f"no tokenizer.json or vocab.json in {directory}")
    try:
        defects: list[str] = []
        model = _load(main, defects)
        beside = directory / "tokenizer_config.json"
        config = _load(beside, defects) if os.path.isfile(beside) else {}  # noqa: PTH113
    except _Damaged as damage:
        return NoTokenizer(str(damage), is_damaged=True)
    except CouldNotLook as error:
        return NoTokenizer(f"{error.subject}: {error.found}")
    texts = _vocabulary(model) if main.name == "tokenizer.json" else _texts(model)
    added = _added(model.get("added_tokens")) | _decoder(config.get("added_tokens_decoder"))
    defects += [
        f"id {token} is {texts[token]!r} in the vocabulary and {text!r} among the added tokens"
        for token, text in added.items()
        if token in texts and texts[token] != text
    ]
    return Tokenizer(
        path=main,
        texts=texts | added,
        added=added,
        pre_tokenizer_digest=_digest(model["pre_tokenizer"]) if "pre_tokenizer" in model else None,
        specials=_specials(config),
        defects=tuple(defects),
    )


def _load(path: Path, defects: list[str]) -> dict[str, JsonValue]:
    data = read_limited(path, MAX_TOKENIZER_BYTES)
    if len(data) > MAX_TOKENIZER_BYTES:
        raise _Damaged(f"{path} is larger than {MAX_TOKENIZER_BYTES} bytes")

    def unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        taken = dict(pairs)
        if len(taken) != len(pairs):
            names = [name for name, _ in pairs]
            twice = sorted({name for name in names if names.count(name) > 1})[:3]
            defects.append(f"{path.name} has duplicate keys: {', '.join(map(repr, twice))}")
        return taken

    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise _Damaged(f"{path} is not readable as JSON: {error}") from error
    if not isinstance(value, dict):
        raise _Damaged(f"{path} is not a JSON object")
    return value


def _vocabulary(model: dict[str, JsonValue]) -> dict[int, str]:
    inner = model.get("model")
    vocab = inner.get("vocab") if isinstance(inner, dict) else None
    if isinstance(vocab, dict):
        return _texts(vocab)
    if isinstance(vocab, list):  # unigram models list [text, score] in id order
        return {
            i: pair[0]
            for i, pair in enumerate(vocab)
            if isinstance(pair, list) and pair and isinstance(pair[0], str)
        }
    return {}


def _texts(vocab: Mapping[str, JsonValue]) -> dict[int, str]:
    return {token: text for text, token in vocab.items() if isinstance(token, int)}


def _added(entries: JsonValue) -> dict[int, str]:
    taken: dict[int, str] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            token, text = entry.get("id"), entry.get("content")
            if isinstance(token, int) and isinstance(text, str):
                taken[token] = text
    return taken


def _decoder(entries: JsonValue) -> dict[int, str]:
    taken: dict[int, str] = {}
    for key, entry in (entries if isinstance(entries, dict) else {}).items():
        text = entry.get("content") if isinstance(entry, dict) else entry
        if key.isascii() and key.isdigit() and isinstance(text, str):
            taken[int(key)] = text
    return taken


def _specials(config: Mapping[str, JsonValue]) -> dict[str, str]:
    taken: dict[str, str] = {}
    for key, value in config.items():
        text = value.get("content") if isinstance(value, dict) else value
        if key.endswith("_token") and isinstance(text, str):
            taken[key] = text
    return taken


def _digest(value: JsonValue) -> str:
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
