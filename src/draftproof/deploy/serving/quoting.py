"""One text through each kind of reader unchanged: POSIX shell, systemd, YAML, compose, Kubernetes.

Source: POSIX sh 2.2; systemd.service(5) and systemd.syntax(7); YAML 1.2.2 section 5.7; the compose
specification on interpolation; the Kubernetes API on ``$(NAME)`` in commands and arguments.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence

from draftproof.config.raw import JsonValue

__all__ = ["compose_text", "kubernetes_text", "shell_line", "systemd_setting", "systemd_word", "yaml_text"]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_NOT_TEXT = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
"""Keys that YAML 1.1 readers take for something else than text."""

_SAFE_SYSTEMD = re.compile(r"[A-Za-z0-9_@+=:,./-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def shell_line(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """A command line for sh, its variables before it."""
    pairs = [f"{name}={value}" for name, value in env.items()]
    return shlex.join(["env", *pairs, *argv] if pairs else argv)


def systemd_word(text: str) -> str:
    """One word of ``ExecStart=``: no specifier, no variable, no escape is read out of it."""
    doubled = text.replace("%", "%%").replace("$", "$$")
    if _SAFE_SYSTEMD.fullmatch(doubled):
        return doubled
    return _quoted(doubled)


def systemd_setting(name: str, value: str) -> str:
    """One assignment of ``Environment=``, where variables are not expanded and specifiers are."""
    return _quoted(f"{name}={value}".replace("%", "%%"))


def compose_text(text: str) -> str:
    """A text that compose does not interpolate."""
    return text.replace("$", "$$")


def kubernetes_text(text: str) -> str:
    """An argument in which the kubelet finds no ``$(NAME)``: it reads ``$$`` as one ``$`` everywhere."""
    return text.replace("$", "$$")


def yaml_text(value: JsonValue, indent: int = 0) -> str:
    """A block of YAML that every YAML reader, 1.1 or 1.2, takes for ``value``."""
    pad = " " * indent
    match value:
        case dict() if value:
            lines = (f"{pad}{_yaml_key(key)}:{_below(item, indent)}" for key, item in value.items())
            return "".join(lines)
        case list() if value:
            return "".join(f"{pad}-{_below(item, indent)}" for item in value)
        case _:
            return f"{pad}{_yaml_scalar(value)}\n"


def _below(value: JsonValue, indent: int) -> str:
    if isinstance(value, dict | list) and value:
        return f"\n{yaml_text(value, indent + 2)}"
    return f" {_yaml_scalar(value)}\n"


def _yaml_key(key: str) -> str:
    is_plain = _PLAIN_KEY.fullmatch(key) and key.lower() not in _NOT_TEXT
    return key if is_plain else _yaml_scalar(key)


def _yaml_scalar(value: JsonValue) -> str:
    match value:
        case str():
            return _double_quoted(value)
        case float():
            return _yaml_float(value)
        case _:
            return json.dumps(value)


def _yaml_float(value: float) -> str:
    """With a point before the exponent: YAML 1.1 takes ``1e-06`` for text."""
    mantissa, mark, exponent = repr(value).partition("e")
    if not mark:
        return mantissa
    signed = exponent if exponent.startswith("-") else f"+{exponent.lstrip('+')}"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{signed}"


def _double_quoted(text: str) -> str:
    """Every character outside printable ASCII as YAML's own escape, which is not always JSON's."""
    return f'"{"".join(map(_yaml_character, text))}"'


def _yaml_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    if 0x20 <= code < 0x7F:  # noqa: PLR2004 (printable ASCII)
        return character
    if code <= 0xFF:  # noqa: PLR2004
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004


def _quoted(text: str) -> str:
    """Systemd's double quotes with C escapes."""
    return f'"{"".join(map(_systemd_character, text))}"'


def _systemd_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if ord(character) < 0x20 or ord(character) == 0x7F:  # noqa: PLR2004
        return f"\\x{ord(character):02x}"
    return character
