"""What is refused before anything is sent: content that belies its name, the ledger as a target."""

import json
import os

from draftproof.config.raw import RefusedConfig, parse_raw
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.writing.refusals import DuplicateKeys, IntoLedger, Unparsable, WriteRefused

__all__ = ["check_content", "check_ledger"]

_LARGER_THAN_A_CONFIG = ("json-too-large", "json-too-many-values")


def check_content(data: bytes, name: str) -> None:
    """Raise WriteRefused where ``name`` ends in .json and ``data`` is not one strict JSON object or list.

    A list is legal JSON, though no config; a tokenizer may be larger than the limits that configs have.
    """
    if not name.endswith(".json"):
        return
    try:
        parse_raw(data, name)
    except RefusedConfig as refused:
        ids = {defect.id for defect in refused.defects}
        if ids == {"json-not-an-object"} and data.lstrip()[:1] == b"[":
            return
        if ids.issubset(_LARGER_THAN_A_CONFIG):
            _check_large(data, name)
            return
        kind: type[WriteRefused] = DuplicateKeys if ids == {"json-duplicate-key"} else Unparsable
        raise kind(
            name,
            expected=refused.expected,
            found=refused.found,
            where=refused.where,
            means=f"{refused.means}; nothing was changed",
            next_step=refused.next_step,
        ) from refused


def _check_large(data: bytes, name: str) -> None:
    """The same two refusals for a file too large for the reader that knows every place."""
    repeated: list[str] = []

    def note_repeats(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                repeated.append(key)
            seen.add(key)

    def refuse_constant(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    found = ""
    kind: type[WriteRefused] = Unparsable
    try:
        json.loads(data.decode("utf-8"), object_pairs_hook=note_repeats, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        found = str(error)
    if repeated:
        found, kind = f"the key {repeated[0]!r} twice in one object", DuplicateKeys
    if found:
        raise kind(
            name,
            expected="one strict JSON value in UTF-8",
            found=found,
            where=name,
            means="readers would refuse it or differ in what they keep; nothing was changed",
            next_step="mend the file, then write it",
        )


def check_ledger(place: Place, ledger: Ledger) -> None:
    """Raise LedgerUnusable where others can write into the ledger, IntoLedger where ``place`` is in it."""
    ledger.check_owner()
    own = os.path.realpath(ledger.directory)
    if place.host or not os.path.realpath(place.path).startswith(f"{own}/"):
        return
    raise IntoLedger(
        str(place),
        expected="a file outside of the ledger",
        found=own,
        where=str(place),
        means="the ledger would record the write that damages it; nothing was done",
        next_step="name another file, or another ledger with --ledger DIR",
    )
