"""Which tokens end a text, by what the checkpoint's own files say."""

from pathlib import Path

from draftproof.config.parse import find_config, parse_config
from draftproof.config.raw import JsonValue, read_raw
from draftproof.config.target import TargetConfig
from draftproof.errors import RefusedInput

__all__ = ["config_endings", "token_ids"]


def config_endings(path: Path) -> frozenset[int]:
    """The ids under ``eos_token_id`` in the target's ``config.json``; empty where it names none.

    Raises:
        CouldNotLook: there is no config file.
        RefusedInput: the value is no id and no list of ids.
    """
    config_path = find_config(path)
    config = parse_config(read_raw(config_path)).config
    if not isinstance(config, TargetConfig) or "eos_token_id" not in config.advisory:
        return frozenset()
    return token_ids(
        config.advisory["eos_token_id"].value, f"{config_path}#{config.text_pointer}/eos_token_id"
    )


def token_ids(value: JsonValue, where: str) -> frozenset[int]:
    """One id, several, or none, as ``eos_token_id`` is written.

    Raises:
        RefusedInput: anything else.
    """
    listed = value if isinstance(value, list) else [] if value is None else [value]
    found: set[int] = set()
    for entry in listed:
        if not isinstance(entry, int) or isinstance(entry, bool) or entry < 0:
            raise RefusedInput(
                "eos_token_id",
                expected="a token id, a list of them, or null",
                found=repr(value),
                where=where,
                means="where a text ends is not known",
                next_step="mend the file, or give --ignore-eos",
            )
        found.add(entry)
    return frozenset(found)
