"""Foreign text made safe to show: nothing a config or a machine says can move the cursor or hide itself.

Every character that is invisible, reorders text or drives a terminal is written as its escape.
Source: Unicode bidirectional and zero-width controls; ECMA-48 C0 and C1 controls.
"""

import unicodedata

__all__ = ["MASKED", "is_secret_key", "printable"]

MASKED = "(secret, not shown)"
_HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_SECRET_ENDINGS = ("token", "password", "passwd", "secret", "api_key", "apikey", "access_key", "private_key")


def printable(text: str, *, keep_newlines: bool = False) -> str:
    """The text with every control, bidi, zero-width and unassigned character written out."""
    return "".join(_shown(c, keep_newlines=keep_newlines) for c in text)


def is_secret_key(key: str) -> bool:
    """Whether a key by its name holds a credential (``hf_token``, ``api_key``), not a token id or count."""
    lowered = key.lower().replace("-", "_")
    return lowered.endswith(_SECRET_ENDINGS) and not lowered.endswith(
        (
            "mask_token",
            "eos_token",
            "bos_token",
            "pad_token",
            "unk_token",
            "sep_token",
            "cls_token",
            "image_token",
            "video_token",
            "audio_token",
        )
    )


def _shown(character: str, *, keep_newlines: bool) -> str:
    if character == "\n" and keep_newlines:
        return character
    if unicodedata.category(character) in _HIDDEN_CATEGORIES:
        return character.encode("unicode_escape").decode("ascii")
    return character
