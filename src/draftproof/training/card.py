"""The part of the pair's card that is derived: every file but recipes, with its size and digest."""

import hashlib
from pathlib import Path

__all__ = ["CARD", "LIMIT", "files_table", "write_files_table"]

CARD = "README.md"
LIMIT = 25 * 1024 * 1024
"""Bytes that all files of the pair may take together."""

_HEADING = "## Files\n\n"


def files_table(pair: Path) -> str:
    """A Markdown table of all files below ``pair`` but the card itself and recipes."""
    rows = ["| file | bytes | sha256 |", "|---|---:|---|"]
    for path in sorted(pair.rglob("*")):
        if path.is_file() and path.name != CARD and path.suffix != ".toml":
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            rows.append(f"| `{path.relative_to(pair).as_posix()}` | {len(content)} | `{digest}` |")
    return "".join(f"{row}\n" for row in rows)


def write_files_table(pair: Path) -> None:
    """Put the table at the end of the card, in the place of the one there."""
    card = pair / CARD
    head, heading, _ = card.read_text(encoding="utf-8").partition(_HEADING)
    card.write_text(head + (heading or _HEADING) + files_table(pair), encoding="utf-8")
