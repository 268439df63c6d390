"""A model directory on another machine: config and tokenizer whole, of the weights the headers."""

import secrets
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from draftproof.checkpoint.ledger import NoWeights
from draftproof.config.parse import parse_config
from draftproof.config.raw import RawConfig, RefusedConfig, parse_raw
from draftproof.deploy.hosts import KEEP_BYTES, Seen, look
from draftproof.deploy.place import Place
from draftproof.deploy.remote_weights import read_remote_weights
from draftproof.errors import CouldNotLook
from draftproof.findings.evidence import Model
from draftproof.findings.tokenizer import NoTokenizer, Tokenizer, read_tokenizer
from draftproof.host.protocol import Host, HostUnreachable

__all__ = ["read_remote_model", "read_remote_raw", "read_remote_tokenizer"]

_CONFIG = "config.json"
_VOCABULARIES = ("tokenizer.json", "vocab.json")
_DIRECTORY = "d"


@dataclass(frozen=True, slots=True)
class _Found:
    """The config's place, what is there, and whether its directory was what was named."""

    place: Place
    seen: Seen
    is_in_directory: bool


def read_remote_raw(host: Host, place: Place) -> RawConfig:
    """The config at ``place``, or in that directory.

    Raises:
        CouldNotLook: the machine did not answer, or there is no file that can be read.
        RefusedConfig: it is not one strict JSON object.
    """
    return _raw(_find(host, place))


def read_remote_model(host: Host, place: Place, *, config_only: bool = False) -> Model:
    """As findings.evidence.read_model, for another machine; of the weights only the headers are fetched."""
    far = f"{place}: of another machine's files only config, tokenizer and the headers of weights are read"
    raw: RawConfig | RefusedConfig | CouldNotLook
    config, is_in_directory = place, False
    try:
        found = _find(host, place)
        config, is_in_directory = found.place, found.is_in_directory
        raw = _raw(found)
    except (RefusedConfig, CouldNotLook) as error:
        raw = error
    if isinstance(raw, HostUnreachable):
        far = f"{place}: the machine was not reached"
    elif not is_in_directory:
        far = f"{place}: no directory with a config.json"
    has_more = is_in_directory and not config_only
    return Model(
        given=str(place),
        directory=None,
        config_path=Path(str(config)),
        raw=raw,
        parsed=parse_config(raw) if isinstance(raw, RawConfig) else None,
        weights=read_remote_weights(host, place) if has_more else NoWeights(far),
        tokenizer=read_remote_tokenizer(host, place) if has_more else NoTokenizer(far),
        far=far,
    )


def _find(host: Host, place: Place) -> _Found:
    if not place.path.endswith(".json"):
        inside = Place(place.host, f"{place.path.rstrip('/')}/{_CONFIG}")
        seen = _look(host, inside)
        if seen.kind == "file":
            return _Found(inside, seen, is_in_directory=True)
    own = _look(host, place)
    if own.kind == "other" and own.file["found"] == _DIRECTORY:
        inside = Place(place.host, f"{place.path.rstrip('/')}/{_CONFIG}")
        return _Found(inside, _look(host, inside), is_in_directory=True)
    return _Found(place, own, is_in_directory=False)


def _raw(found: _Found) -> RawConfig:
    place, seen = found.place, found.seen
    if seen.data is None:
        why = {
            "absent": "No such file or directory",
            "file": f"more than {KEEP_BYTES} bytes",
            "other": "no regular file",
        }
        raise CouldNotLook(
            str(place),
            expected="a regular file that can be read",
            found=why[seen.kind],
            where=str(place),
            means="nothing is known about its content; nothing may be concluded",
            next_step=f"ssh {place.host} ls -lL {place.path!r}",
        )
    return parse_raw(seen.data, str(place))


def read_remote_tokenizer(host: Host, place: Place) -> Tokenizer | NoTokenizer:
    """The tokenizer files of a directory, or beside a file, brought into a private directory for a moment."""
    folder = place.path.rstrip("/")
    if folder.endswith(".json"):
        folder = folder.rpartition("/")[0]
    with tempfile.TemporaryDirectory(prefix="draftproof-") as scratch:
        for name in (*_VOCABULARIES, "tokenizer_config.json"):
            try:
                seen = _look(host, Place(place.host, f"{folder}/{name}"))
            except CouldNotLook as error:
                return NoTokenizer(f"{error.subject}: {error.found}")
            if seen.kind == "file" and seen.data is None:
                return NoTokenizer(f"{place.host}:{folder}/{name}: more than {KEEP_BYTES} bytes")
            if seen.data is not None:
                (Path(scratch) / name).write_bytes(seen.data)
        read = read_tokenizer(Path(scratch))
    if isinstance(read, Tokenizer):
        return replace(read, path=Path(f"{place.host}:{folder}/{read.path.name}"))
    return replace(read, reason=read.reason.replace(scratch, f"{place.host}:{folder}"))


def _look(host: Host, place: Place) -> Seen:
    return look(host, place, nonce=secrets.token_hex(16))
