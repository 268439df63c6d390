"""A RawConfig becomes a typed description: what it is, what it says, and what nobody here reads."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from draftproof.config.coverage import covers, written_pointers
from draftproof.config.dialects.eagle import parse_eagle
from draftproof.config.dialects.families import is_causal_lm
from draftproof.config.dialects.mtp import parse_mtp_drafter
from draftproof.config.dialects.native import parse_native
from draftproof.config.dialects.recognise import Recognised, recognise_drafter
from draftproof.config.dialects.speculators import parse_speculators
from draftproof.config.dialects.target import parse_target, text_reader
from draftproof.config.drafter import DrafterConfig
from draftproof.config.json.value import one_line
from draftproof.config.problem import Problem, ProblemKind
from draftproof.config.raw import RawConfig
from draftproof.config.reader import Reader
from draftproof.config.target import TargetConfig
from draftproof.errors import CouldNotLook, RefusedInput

__all__ = [
    "Parsed",
    "Problem",
    "ProblemKind",
    "UnrecognisedConfig",
    "find_config",
    "parse_config",
    "require_recognised",
]

_MAX_KEYS = 8
_LOOKED_FOR = (
    "drafters: speculators_model_type, dflash_config, dspark_config, eagle_config, draft_vocab_size, a "
    "DFlash, DSpark, Domino, EAGLE-3, P-EAGLE or MTP architecture; targets: a known model_type, an "
    "architecture ending in ForCausalLM or ForConditionalGeneration, or hidden_size with num_hidden_layers"
)


@dataclass(frozen=True, slots=True)
class UnrecognisedConfig:
    """One strict JSON object that describes neither a drafter nor a target."""

    looked_for: str
    """The fields that would have told, in words."""

    keys: tuple[str, ...]
    """The keys that stand at the top instead."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A config file, read."""

    config: DrafterConfig | TargetConfig | UnrecognisedConfig
    unparsed: tuple[str, ...]
    """Pointers of what nobody here reads; a subtree by its root."""

    superseded: tuple[str, ...]
    """Pointers that were read, but another place of the file or a rule decides: repetitions, nulls."""

    problems: tuple[Problem, ...]
    """What the parser had to step over: mistyped values, fields in conflict, odd recognitions."""


def parse_config(raw: RawConfig) -> Parsed:
    """Read a config file into its canonical form. Never fails: what cannot be read is named."""
    read = Reader(raw)
    config = _parse(read)
    sources = written_pointers(config)
    return Parsed(
        config=config,
        unparsed=read.unread(),
        superseded=tuple(p for p in read.leaves_read() if not covers(sources, p)),
        problems=read.problems,
    )


def find_config(path: Path) -> Path:
    """The config file that ``path`` stands for: a directory's ``config.json``, or the file itself.

    Raises:
        CouldNotLook: there is nothing at ``path``, or the directory holds no ``config.json``.
    """
    if not stat.S_ISDIR(_mode(path, "a directory with a config.json, or a JSON file", "nothing there")):
        return path
    inside = path / "config.json"
    _mode(inside, "a config.json in this directory", "none")
    return inside


def require_recognised(parsed: Parsed, origin: str) -> Parsed:
    """The same, where the file describes a drafter or a target.

    Raises:
        RefusedInput: it describes neither.
    """
    if not isinstance(parsed.config, UnrecognisedConfig):
        return parsed
    keys = ", ".join(one_line(key) for key in parsed.config.keys[:_MAX_KEYS])
    more = len(parsed.config.keys) - _MAX_KEYS
    raise RefusedInput(
        origin,
        expected="the config of a drafter or a target",
        found=f"the keys {keys}{f' and {more} more' if more > 0 else ''}" if keys else "an empty object",
        where=origin,
        means=f"nothing can be said about it; looked for {parsed.config.looked_for}",
        next_step=f"head {origin}",
    )


def _mode(path: Path, expected: str, absent: str) -> int:
    """What stands at ``path``, links followed. Raises CouldNotLook, with what the system says of it."""
    try:
        return os.stat(path).st_mode  # noqa: PTH116 (Path.stat hides that links are followed)
    except (FileNotFoundError, NotADirectoryError) as error:
        found = "a link to nothing" if os.path.islink(path) else absent  # noqa: PTH114 (never raises)
        raise _not_found(path, expected, found) from error
    except OSError as error:
        raise _not_found(path, expected, f"{error.strerror or error} (errno {error.errno})") from error
    except ValueError as error:  # a NUL inside the path
        raise _not_found(path, expected, str(error)) from error


def _not_found(path: Path, expected: str, found: str) -> CouldNotLook:
    return CouldNotLook(
        str(path),
        expected=expected,
        found=found,
        where=str(path),
        means="nothing was read, so nothing is known about it",
        next_step=f"ls -l {str(path.parent)!r}",
    )


def _parse(read: Reader) -> DrafterConfig | TargetConfig | UnrecognisedConfig:
    found = recognise_drafter(read)
    if found is not None:
        return _parse_drafter(read, found)
    if is_causal_lm(read, text_reader(read)):
        return parse_target(read)
    return UnrecognisedConfig(looked_for=_LOOKED_FOR, keys=read.keys())


def _parse_drafter(read: Reader, found: Recognised) -> DrafterConfig:
    match found.dialect:
        case "speculators":
            return parse_speculators(read, found.method)
        case "native":
            return parse_native(read, found.method)
        case "mtp":
            return parse_mtp_drafter(read, found.method)
        case _:
            return parse_eagle(read, found.method)
