"""Evidence: everything a check may look at, read once; what is not there says why.

A rule asks for what it needs. Asking for what could not be had raises Lacking, which the check turns into
"not looked, because"; asking for what does not apply to this subject raises NotApplicable, which is silent.
"""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from draftproof.checkpoint.hub.layout import resolve
from draftproof.checkpoint.ledger import Checkpoint, NoWeights, read_checkpoint
from draftproof.config.drafter import DrafterConfig
from draftproof.config.parse import Parsed, parse_config
from draftproof.config.raw import RawConfig, RefusedConfig, read_raw
from draftproof.config.target import TargetConfig
from draftproof.errors import CouldNotLook
from draftproof.findings.engines import Engine
from draftproof.findings.tokenizer import NoTokenizer, Tokenizer, read_tokenizer

__all__ = ["Evidence", "Lacking", "Model", "NotApplicable", "read_evidence", "read_model"]


class Lacking(Exception):
    """A rule asked for something that could not be looked at; the message is the reason."""


class NotApplicable(Exception):
    """A rule asked for something this subject does not have by its nature."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model directory, or one config file, as read."""

    given: str
    """As the user named it."""

    directory: Path | None
    """None where a config file alone was named."""

    config_path: Path
    raw: RawConfig | RefusedConfig | CouldNotLook
    parsed: Parsed | None
    """None exactly where ``raw`` is not a RawConfig."""

    weights: Checkpoint | NoWeights
    tokenizer: Tokenizer | NoTokenizer
    far: str | None = None
    """Of a model on another machine: why its files are not at hand, but for what was read of them there."""

    @property
    def values(self) -> Checkpoint | NoWeights:
        """The weights where their bytes can be read: of another machine's only the headers are here."""
        if self.far is not None and isinstance(self.weights, Checkpoint):
            return NoWeights(self.far)
        return self.weights

    @property
    def drafter(self) -> DrafterConfig | None:
        """The drafter this directory holds; None if it holds something else, or could not be read."""
        config = self.parsed.config if self.parsed else None
        return config if isinstance(config, DrafterConfig) else None

    @property
    def target(self) -> TargetConfig | None:
        """The language model this directory holds; None as for ``drafter``."""
        config = self.parsed.config if self.parsed else None
        return config if isinstance(config, TargetConfig) else None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything one check looks at."""

    subject: Model
    target_model: Model | None
    intent: Model | None
    named_tokenizer: Tokenizer | NoTokenizer | None
    """What ``--tokenizer`` named."""

    engine: Engine | None
    """What ``--engine`` named."""

    with_digests: bool = False
    """Whether every byte of the weights is read and hashed."""

    @property
    def raw(self) -> RawConfig:
        """The subject's file."""
        if isinstance(self.subject.raw, RawConfig):
            return self.subject.raw
        why = (
            "is not one strict JSON object" if isinstance(self.subject.raw, RefusedConfig) else "was not read"
        )
        raise Lacking(f"{self.subject.config_path} {why}")

    @property
    def parsed(self) -> Parsed:
        """The subject's file as understood."""
        if self.subject.parsed is None:
            raise Lacking(f"{self.raw.origin} was not parsed")
        return self.subject.parsed

    @property
    def drafter(self) -> DrafterConfig:
        """The subject as a drafter."""
        config = self.parsed.config if self.raw else None
        if isinstance(config, DrafterConfig):
            return config
        raise NotApplicable

    @property
    def target(self) -> TargetConfig:
        """The model that ``--target`` named."""
        if self.target_model is None:
            raise Lacking("no --target was given")
        if self.target_model.target is not None:
            return self.target_model.target
        if not isinstance(self.target_model.raw, RawConfig):
            raise Lacking(_unread(self.target_model, "--target"))
        kind = "a drafter, not a target" if self.target_model.drafter else "not a target that is known"
        raise Lacking(f"{self.target_model.given} is {kind}")

    @property
    def target_raw(self) -> RawConfig:
        """The file of the model that ``--target`` named."""
        if self.target_model is None:
            raise Lacking("no --target was given")
        if isinstance(self.target_model.raw, RawConfig):
            return self.target_model.raw
        raise Lacking(_unread(self.target_model, "--target"))

    @property
    def weights(self) -> Checkpoint:
        """The subject's tensors."""
        if isinstance(self.subject.weights, Checkpoint):
            return self.subject.weights
        raise Lacking(self.subject.weights.reason)

    @property
    def values(self) -> Checkpoint:
        """The subject's tensors, their bytes at hand."""
        if isinstance(self.subject.values, Checkpoint):
            return self.subject.values
        raise Lacking(self.subject.values.reason)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer the drafter's ids belong to: --tokenizer, the target's, or the subject's own."""
        candidates = (
            self.named_tokenizer,
            self.target_model.tokenizer if self.target_model else None,
            self.subject.tokenizer,
        )
        for candidate in candidates:
            if isinstance(candidate, Tokenizer):
                return candidate
        if isinstance(self.named_tokenizer, NoTokenizer):
            raise Lacking(f"no tokenizer at hand: --tokenizer names none ({self.named_tokenizer.reason})")
        raise Lacking("no tokenizer at hand: none beside the subject or the target, no --tokenizer")

    @property
    def intended(self) -> RawConfig:
        """The intended file."""
        if self.intent is None:
            raise Lacking("no --intent was given")
        if isinstance(self.intent.raw, RawConfig):
            return self.intent.raw
        raise Lacking(_unread(self.intent, "--intent"))


def read_model(given: str, *, config_only: bool = False) -> Model:
    """A directory, or a config file, read as far as it can be; nothing here raises for bad input."""
    path, unclear = _resolved(given)
    # os.path answers False where pathlib raises: no permission, a NUL, a name too long.
    directory = path if given and unclear is None and os.path.isdir(path) else None  # noqa: PTH112
    config_path = path / "config.json" if directory else path
    raw = unclear or _read_raw(config_path)
    has_more = directory is not None and not config_only
    alone = _alone(given, unclear) if directory is None else "only its config was asked for"
    return Model(
        given=given,
        directory=directory,
        config_path=config_path,
        raw=raw,
        parsed=parse_config(raw) if isinstance(raw, RawConfig) else None,
        weights=_read_weights(directory) if directory and has_more else NoWeights(alone),
        tokenizer=read_tokenizer(directory) if directory and has_more else NoTokenizer(alone),
    )


def read_evidence(
    subject: str,
    *,
    target: str | None = None,
    intent: str | None = None,
    tokenizer: str | None = None,
    engine: Engine | None = None,
    with_digests: bool = False,
) -> Evidence:
    """Everything named on the command line, read once."""
    return Evidence(
        subject=read_model(subject),
        target_model=None if target is None else read_model(target),
        intent=None if intent is None else read_model(intent, config_only=True),
        named_tokenizer=None if tokenizer is None else _named_tokenizer(tokenizer),
        engine=engine,
        with_digests=with_digests,
    )


def _resolved(given: str) -> tuple[Path, CouldNotLook | None]:
    """The path meant, a cache's repository folder followed to its snapshot; why none is, where none is."""
    if not given:  # an unset shell variable; pathlib would read the current directory
        return Path(), CouldNotLook(
            "''",
            expected="a path",
            found="an empty path",
            where="command line",
            means="nothing was read, so nothing is known about it",
            next_step="set the shell variable that the command line names, or leave the option out",
        )
    try:
        return resolve(Path(given)), None
    except CouldNotLook as error:
        return Path(given), error


def _alone(given: str, unclear: CouldNotLook | None) -> str:
    """Why there is nothing beside a config: no directory was named."""
    if unclear is not None:
        return f"{unclear.subject}: {unclear.found}"
    # os.path: pathlib raises where it may not look.
    if os.path.lexists(given):
        return f"{given} is a file, not a directory"
    return f"there is no {given}"


def _unread(model: Model, option: str) -> str:
    """Why a model that an option named is not there to look at."""
    if isinstance(model.raw, CouldNotLook):
        return f"{option} {shlex.quote(model.given)}: {model.raw.found}"
    return f"{option} {model.config_path} is not one strict JSON object"


def _read_raw(path: Path) -> RawConfig | RefusedConfig | CouldNotLook:
    try:
        return read_raw(path)
    except (RefusedConfig, CouldNotLook) as error:
        return error


def _read_weights(directory: Path) -> Checkpoint | NoWeights:
    try:
        return read_checkpoint(directory)
    except CouldNotLook as error:
        return NoWeights(f"{error.subject}: {error.found}")


def _named_tokenizer(given: str) -> Tokenizer | NoTokenizer:
    path, unclear = _resolved(given)
    if unclear is not None:
        return NoTokenizer(f"{unclear.subject}: {unclear.found}")
    if not os.path.exists(path):  # noqa: PTH110 - as above
        return NoTokenizer(f"{given}: No such file or directory")
    return read_tokenizer(path if os.path.isdir(path) else path.parent)  # noqa: PTH112
