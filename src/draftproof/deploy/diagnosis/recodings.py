"""The same text in other clothes: line endings, byte order mark, encoding, Unicode form, final line feed."""

import unicodedata
from collections.abc import Iterator

__all__ = ["recodings"]

_BOM = b"\xef\xbb\xbf"


def recodings(intended: bytes) -> Iterator[tuple[str, bytes]]:
    """What editors, transfers and locales make of ``intended``: what was done, and the bytes it gives."""
    try:
        text = intended.decode("utf-8")
    except UnicodeDecodeError:
        return
    for named, form in _forms(text):
        for ending, ended in _endings(form):
            for final, whole in _finals(ended):
                for coding, data in _codings(whole):
                    told = ", ".join(part for part in (named, ending, final, coding) if part)
                    if data != intended:
                        yield told, data


def _forms(text: str) -> Iterator[tuple[str, str]]:
    yield "", text
    for form in ("NFC", "NFD"):
        other = unicodedata.normalize(form, text)
        if other != text:
            yield f"Unicode {form}", other


def _endings(text: str) -> Iterator[tuple[str, str]]:
    yield "", text
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    for name, ending in (("LF line endings", "\n"), ("CRLF line endings", "\r\n"), ("CR line endings", "\r")):
        other = plain.replace("\n", ending)
        if other != text:
            yield name, other


def _finals(text: str) -> Iterator[tuple[str, str]]:
    yield "", text
    ending = "\r\n" if "\r\n" in text else "\n"
    bare = text.rstrip("\r\n")
    if bare != text:
        yield "final line ending lost", bare
    yield "a line ending added at the end", text + ending


def _codings(text: str) -> Iterator[tuple[str, bytes]]:
    plain = text.removeprefix("\ufeff")
    yield "", text.encode("utf-8")
    if plain != text:
        yield "byte order mark removed", plain.encode("utf-8")
    else:
        yield "UTF-8 byte order mark", _BOM + plain.encode("utf-8")
    yield "UTF-16 little endian", plain.encode("utf-16")
    yield "UTF-16 big endian", b"\xfe\xff" + plain.encode("utf-16-be")
    if plain.isascii():
        return
    for name in ("latin-1", "cp1252"):
        try:
            yield f"encoded as {name}", plain.encode(name)
        except UnicodeEncodeError:
            continue
    for name in ("latin-1", "cp1252"):
        try:
            yield (
                f"UTF-8 read as {name} and encoded again",
                plain.encode("utf-8").decode(name).encode("utf-8"),
            )
        except UnicodeDecodeError:
            continue
