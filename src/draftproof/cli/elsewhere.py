"""What check and diff share for files that are not plain paths here: host:/path, and a process's view."""

import os
import re
import secrets
from dataclasses import replace
from pathlib import Path

from draftproof.cli.ledger_option import host_for, ledger_at, place_at
from draftproof.config.raw import RawConfig, read_raw
from draftproof.deploy.diagnosis.consult import consulted, consulted_on_host, with_answers
from draftproof.deploy.hosts import look
from draftproof.deploy.place import Place
from draftproof.deploy.process import NOBODY, Process
from draftproof.deploy.proof.consumer_view import consumer_answers, path_as_seen
from draftproof.deploy.remote_model import read_remote_model, read_remote_raw, read_remote_tokenizer
from draftproof.deploy.sight import Sight, sight_in
from draftproof.findings.check import Report
from draftproof.findings.evidence import Evidence, Model
from draftproof.findings.finding import Finding, NotLooked
from draftproof.host.protocol import HostUnreachable

__all__ = ["fetched", "read_anywhere", "with_consumer", "with_ledger"]


def fetched(evidence: Evidence, tokenizer: str | None, ssh_config: Path | None) -> Evidence:
    """The evidence with every model, and the tokenizer, that was named as host:/path read there."""
    named = _elsewhere(tokenizer) if tokenizer else None
    target, intent = evidence.target_model, evidence.intent
    return replace(
        evidence,
        subject=_fetched(evidence.subject, ssh_config),
        target_model=_fetched(target, ssh_config) if target else None,
        intent=_fetched(intent, ssh_config, config_only=True) if intent else None,
        named_tokenizer=read_remote_tokenizer(host_for(named, ssh_config), named)
        if named
        else evidence.named_tokenizer,
    )


def with_ledger(report: Report, evidence: Evidence, option: Path | None, ssh_config: Path | None) -> Report:
    """The report with what the ledger says was meant to be where the subject is."""
    subject, ledger, is_named = evidence.subject, ledger_at(option), option is not None
    if not subject.given:
        return report  # an empty name is no place; the check itself tells that
    place = _elsewhere(subject.given)
    if place is None:
        return consulted(report, Path(subject.given), ledger, is_ledger_named=is_named)
    unreachable = subject.raw if isinstance(subject.raw, HostUnreachable) else None

    def look_there(path: str) -> Sight:
        if unreachable is not None:
            raise unreachable  # asked once; a machine that is down is not waited for again
        there = Place(place.host, path)
        return sight_in(look(host_for(there, ssh_config), there, nonce=secrets.token_hex(16)))

    return consulted_on_host(report, place, ledger, look_there, is_ledger_named=is_named)


def with_consumer(report: Report, evidence: Evidence, process: Process, ssh_config: Path | None) -> Report:
    """The report with what a process on the subject's machine has of the config and its shards."""
    if not process.is_named:
        return report
    subject = evidence.subject
    answers: list[Finding | NotLooked]
    if isinstance(subject.raw, HostUnreachable) or not subject.given:
        reason = subject.raw.found if isinstance(subject.raw, HostUnreachable) else "an empty path"
        lack = NotLooked(f"the file as {process} sees it", reason, is_required=True)
        answers = [lack]
    else:
        place = _elsewhere(str(subject.config_path)) or place_at(str(subject.config_path))
        answers = consumer_answers(host_for(place, ssh_config), place, process)
    return with_answers(report, answers)


def read_anywhere(given: Path, ssh_config: Path | None, process: Process = NOBODY) -> RawConfig:
    """The config at a path here or host:/path, as ``process`` there finds it where one is named.

    Raises:
        CouldNotLook: there is no file that can be read, no such process, or no answer from the machine.
        RefusedConfig: it is not one strict JSON object.
    """
    place = _elsewhere(str(given))
    path = given
    if process.is_named:
        named = place or place_at(str(given))
        seen_from = path_as_seen(host_for(named, ssh_config), named, process)
        place, path = (seen_from, path) if place else (None, Path(seen_from.path))
    if place is not None:
        return read_remote_raw(host_for(place, ssh_config), place)
    # os.path: unlike Path.is_dir it answers False where it may not look, and read_raw says why.
    return read_raw(path / "config.json" if os.path.isdir(path) else path)  # noqa: PTH112


def _elsewhere(given: str) -> Place | None:
    """The place on another machine that ``given`` names (host:/path); None for a path here."""
    # A file here that bears such a name is meant first.
    if re.match(r"[^/:]+:/", given) and not os.path.lexists(given):
        return place_at(given)
    return None


def _fetched(model: Model, ssh_config: Path | None, *, config_only: bool = False) -> Model:
    place = _elsewhere(model.given)
    if place is None:
        return model
    return read_remote_model(host_for(place, ssh_config), place, config_only=config_only)
