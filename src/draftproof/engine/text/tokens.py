"""Text to token ids and back, as a checkpoint's own tokenizer files say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from draftproof.config.raw import JsonValue, RawConfig, read_raw
from draftproof.engine.text.chat_template import render_chat
from draftproof.errors import CouldNotLook, RefusedInput

__all__ = ["TextCodec", "read_text_codec", "tokenizer_from_json"]

_SPECIAL = ("bos_token", "eos_token", "unk_token", "pad_token")


@dataclass(frozen=True, slots=True)
class TextCodec:
    """A tokenizer with what a checkpoint says about using it."""

    tokenizer: Tokenizer
    origin: str
    """Where it comes from, as shown to people."""

    special_tokens: Mapping[str, str]
    """The texts of ``bos_token``, ``eos_token``, ``unk_token`` and ``pad_token``, those there are."""

    chat_template: str | None
    chat_template_origin: str

    def encode(self, text: str) -> list[int]:
        """The ids of a plain prompt, with what the tokenizer puts before or after it."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=True).ids
        return ids

    def encode_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """The ids of a conversation up to where the assistant speaks; the template sets all special tokens.

        Raises:
            RefusedInput: there is no template, or it cannot render these messages.
        """
        if self.chat_template is None:
            raise RefusedInput(
                "chat template",
                expected="chat_template.jinja, or chat_template in tokenizer_config.json",
                found="neither",
                where=self.chat_template_origin,
                means="how this model is spoken to is not known",
                next_step="give the prompt as text, without --chat",
            )
        prompt = render_chat(
            self.chat_template,
            messages,
            origin=self.chat_template_origin,
            special_tokens=self.special_tokens,
        )
        ids: list[int] = self.tokenizer.encode(prompt, add_special_tokens=False).ids
        return ids

    def decode(self, tokens: list[int]) -> str:
        """The text of the ids; special tokens have none."""
        text: str = self.tokenizer.decode(tokens, skip_special_tokens=True)
        return text

    @property
    def eos_id(self) -> int | None:
        """The id of ``eos_token``; None where the files name none."""
        if "eos_token" not in self.special_tokens:
            return None
        found: int | None = self.tokenizer.token_to_id(self.special_tokens["eos_token"])
        return found


def read_text_codec(directory: Path) -> TextCodec:
    """The tokenizer of a checkpoint directory.

    Raises:
        CouldNotLook: there is no ``tokenizer.json``.
        RefusedInput: it, ``tokenizer_config.json`` or the template is not what it must be.
    """
    path = directory / "tokenizer.json"
    try:
        source = path.read_bytes()
    except OSError as error:
        raise CouldNotLook(
            "tokenizer",
            expected="a tokenizer.json beside the weights",
            found=error.strerror or type(error).__name__,
            where=str(path),
            means="text cannot be turned into token ids, nor back",
            next_step="give --prompt-ids, or put the model's tokenizer.json there",
        ) from error
    tokenizer = tokenizer_from_json(source, origin=str(path))
    settings_path = directory / "tokenizer_config.json"
    settings = read_raw(settings_path) if settings_path.exists() else None
    template, template_origin = _chat_template(directory, settings)
    return TextCodec(
        tokenizer=tokenizer,
        origin=str(path),
        special_tokens=_special_tokens(settings),
        chat_template=template,
        chat_template_origin=template_origin,
    )


def tokenizer_from_json(source: bytes, *, origin: str) -> Tokenizer:
    """A tokenizer from the JSON that describes it.

    Raises:
        RefusedInput: the library cannot make a tokenizer of it.
    """
    try:
        return Tokenizer.from_buffer(source)
    except Exception as error:
        raise RefusedInput(
            "tokenizer",
            expected="a description the tokenizers library understands",
            found=str(error),
            where=origin,
            means="text cannot be turned into token ids, nor back",
            next_step="give --prompt-ids, or fetch the model's tokenizer.json again",
        ) from error


def _chat_template(directory: Path, settings: RawConfig | None) -> tuple[str | None, str]:
    """The template and where it stands; a file of its own comes before the settings."""
    own = directory / "chat_template.jinja"
    if own.exists():
        return own.read_text(encoding="utf-8"), str(own)
    if settings is None or not settings.has("/chat_template"):
        return None, str(directory)
    origin = f"{settings.origin}#/chat_template"
    written = settings.at("/chat_template")
    if isinstance(written, list):
        written = _named_default(written)
    if written is not None and not isinstance(written, str):
        raise _mistyped("chat_template", "text, or a list with one named default", written, origin)
    return written, origin


def _named_default(templates: list[JsonValue]) -> JsonValue:
    for entry in templates:
        if isinstance(entry, dict) and entry.keys() >= {"name", "template"} and entry["name"] == "default":
            return entry["template"]
    return None


def _special_tokens(settings: RawConfig | None) -> dict[str, str]:
    """Written as text, or as an object with its text under ``content``; null is none."""
    found: dict[str, str] = {}
    for name in _SPECIAL:
        if settings is None or not settings.has(f"/{name}"):
            continue
        written = settings.at(f"/{name}")
        if isinstance(written, dict) and "content" in written:
            written = written["content"]
        if isinstance(written, str):
            found[name] = written
        elif written is not None:
            raise _mistyped(
                name, "text, null, or an object with content", written, f"{settings.origin}#/{name}"
            )
    return found


def _mistyped(subject: str, expected: str, found: object, where: str) -> RefusedInput:
    return RefusedInput(
        subject,
        expected=expected,
        found=repr(found),
        where=where,
        means="the model's own text rules are not known",
        next_step="give --prompt-ids, or mend the file",
    )
