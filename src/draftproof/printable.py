"""Foreign text made safe to show: nothing a config or a machine says can move the cursor or hide itself.

Every character that is invisible, reorders text or drives a terminal is written as its escape.
Source: Unicode bidirectional and zero-width controls; ECMA-48 C0 and C1 controls.
"""

import re
import unicodedata

__all__ = ["MASKED", "is_secret_key", "printable"]

MASKED = "(secret, not shown)"
_HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_SECRET_ENDINGS = (
    *("token", "authtokens", "accesstokens", "apitokens", "password", "passwd", "passphrase"),
    *("secret", "secrets", "credential", "credentials", "authorization"),
    *("apikey", "apikeys", "accesskey", "secretkey", "privatekey", "signingkey", "encryptionkey"),
)
_SPECIAL_TOKENS = tuple(
    f"{name}token" for name in ("mask", "eos", "bos", "pad", "unk", "sep", "cls", "image", "video", "audio")
)


def printable(text: str, *, keep_newlines: bool = False) -> str:
    """The text with every control, bidi, zero-width and unassigned character written out."""
    if text.isprintable():  # by far most text; a look at each of five million characters takes seconds
        return text
    return "".join(_shown(c, keep_newlines=keep_newlines) for c in text)


def is_secret_key(key: str) -> bool:
    """Whether a key by its name holds a credential (``hf_token``, ``api_key``), not a token id or count."""
    folded = _SEPARATORS.sub("", key.lower())  # api_key, API-KEY and apiKey are one name
    return folded.endswith(_SECRET_ENDINGS) and not folded.endswith(_SPECIAL_TOKENS)


def _shown(character: str, *, keep_newlines: bool) -> str:
    if character == "\n" and keep_newlines:
        return character
    if unicodedata.category(character) in _HIDDEN_CATEGORIES:
        return character.encode("unicode_escape").decode("ascii")
    return character
