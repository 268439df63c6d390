"""The tokenizer inside a GGUF file: byte-level BPE, as llama.cpp's ``gpt2`` tokenizer model.

Source: llama.cpp gguf specification, ``tokenizer.ggml.*``; the splits of llama.cpp src/llama-vocab.cpp.
"""

import json
from pathlib import Path
from typing import TypeVar

from gguf import GGUFReader
from gguf.constants import TokenType

from draftproof.engine.text.tokens import TextCodec, tokenizer_from_json
from draftproof.errors import RefusedInput

__all__ = ["read_gguf_text_codec"]

Kind = TypeVar("Kind")

_QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3_SPLIT = _QWEN2_SPLIT.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
_BYTES_WITH_WORDS = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
_BYTES = _BYTES_WITH_WORDS | {"use_regex": False}


def _split(pattern: str) -> dict[str, object]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


_SPLITS: dict[str, list[dict[str, object]]] = {
    "gpt-2": [_BYTES_WITH_WORDS],
    "smollm": [{"type": "Digits", "individual_digits": True}, _BYTES_WITH_WORDS],
    "qwen2": [_split(_QWEN2_SPLIT), _BYTES],
    "llama-bpe": [_split(_LLAMA3_SPLIT), _BYTES],
}
"""How text is cut before merging, by ``tokenizer.ggml.pre``."""


def read_gguf_text_codec(path: Path) -> TextCodec:
    """The tokenizer and chat template of a GGUF file.

    Raises:
        RefusedInput: another kind of tokenizer, or a field that it needs is missing.
    """
    fields = _Fields(path)
    model, pre = fields.text("tokenizer.ggml.model"), fields.text("tokenizer.ggml.pre")
    if model != "gpt2":
        raise fields.refused("tokenizer.ggml.model", "gpt2", repr(model))
    if pre not in _SPLITS:
        raise fields.refused("tokenizer.ggml.pre", " or ".join(_SPLITS), repr(pre))
    tokens = fields.texts("tokenizer.ggml.tokens")
    kinds = fields.numbers("tokenizer.ggml.token_type")
    if len(kinds) != len(tokens):
        raise fields.refused(
            "tokenizer.ggml.token_type", f"{len(tokens)}, one for each token", f"{len(kinds)}"
        )
    description = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            _added(number, token, is_special=kind == TokenType.CONTROL)
            for number, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
            if kind in {TokenType.CONTROL, TokenType.USER_DEFINED}
        ],
        "normalizer": {"type": "NFC"} if pre == "qwen2" else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": _SPLITS[pre]},
        "post_processor": None,
        "decoder": _BYTES_WITH_WORDS,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": pre == "llama-bpe",
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [merge.split(" ", 1) for merge in fields.texts("tokenizer.ggml.merges")],
        },
    }
    special = {
        name: fields.token(key, tokens)
        for name, key in (
            ("bos_token", "tokenizer.ggml.bos_token_id"),
            ("eos_token", "tokenizer.ggml.eos_token_id"),
            ("unk_token", "tokenizer.ggml.unknown_token_id"),
            ("pad_token", "tokenizer.ggml.padding_token_id"),
        )
        if fields.has(key)
    }
    key = "tokenizer.chat_template"
    return TextCodec(
        tokenizer=tokenizer_from_json(json.dumps(description).encode(), origin=str(path)),
        origin=str(path),
        special_tokens=special,
        chat_template=fields.text(key) if fields.has(key) else None,
        chat_template_origin=f"{path}#{key}",
    )


def _added(number: int, token: str, *, is_special: bool) -> dict[str, object]:
    return {
        "id": number,
        "content": token,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": is_special,
    }


class _Fields:
    """The metadata of a GGUF file, each field of the type asked for or an error that names it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fields = GGUFReader(path).fields

    def has(self, key: str) -> bool:
        return key in self._fields

    def text(self, key: str) -> str:
        return _as(self, key, str, self._value(key))

    def number(self, key: str) -> int:
        return _as(self, key, int, self._value(key))

    def token(self, key: str, tokens: list[str]) -> str:
        number = self.number(key)
        if not 0 <= number < len(tokens):
            raise self.refused(key, f"an id in 0..{len(tokens) - 1}", f"{number}")
        return tokens[number]

    def texts(self, key: str) -> list[str]:
        return [_as(self, key, str, value) for value in _as(self, key, list, self._value(key))]

    def numbers(self, key: str) -> list[int]:
        return [_as(self, key, int, value) for value in _as(self, key, list, self._value(key))]

    def _value(self, key: str) -> object:
        if key not in self._fields:
            raise self.refused(key, "this field", "none")
        value: object = self._fields[key].contents()
        return value

    def refused(self, key: str, expected: str, found: str) -> RefusedInput:
        return RefusedInput(
            key,
            expected=expected,
            found=found,
            where=str(self._path),
            means="text cannot be turned into token ids, nor back",
            next_step="give --prompt-ids",
        )


def _as(fields: _Fields, key: str, kind: type[Kind], value: object) -> Kind:
    if not isinstance(value, kind):
        raise fields.refused(key, kind.__name__, repr(value))
    return value
