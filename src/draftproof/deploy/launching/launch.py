"""Launch: verify, start on loopback, read out, ask once, and stop again what is not as meant.

The start that is looked at has development endpoints, on loopback. What is as meant is started again exactly
as rendered, without them and on the plan's host, and left running.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from draftproof.deploy.launching.bytes_there import drafter_on_disk
from draftproof.deploy.launching.process import Running, start, stop
from draftproof.deploy.launching.readback import added_environment, added_options, read_back
from draftproof.deploy.launching.report import Launch, Stage
from draftproof.deploy.launching.smoke import Smoke, smoke
from draftproof.deploy.launching.waiting import until_healthy
from draftproof.deploy.serving.reason import Said
from draftproof.deploy.serving.rendering import Option, Rendering
from draftproof.errors import CouldNotLook, UsageError
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, NotLooked
from draftproof.findings.place import Place, at_file
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.observed.http import Address
from draftproof.runtimes.observed.pages import Page, acceptances, added, scrape
from draftproof.runtimes.observed.probe.client import connect
from draftproof.runtimes.observed.probe.report import probe

__all__ = ["How", "launch"]

_LOOPBACK = "127.0.0.1"
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 (compared with, not listened on)
_PROBE_TOKENS = 96


@dataclass(frozen=True, slots=True)
class How:
    """How a plan is to be launched."""

    python: str
    """The engine's interpreter."""

    log_folder: Path
    timeout_seconds: float
    """For the engine to become healthy."""

    request_seconds: float
    grace_seconds: float
    """Between TERM and KILL."""

    num_prompts: int
    """Of each group of the probe; 0 for none."""

    is_kept: bool
    """Leave the very process that was looked at, right or wrong."""

    is_only_look: bool
    """Stop it even where all is as meant."""

    verify_files: Callable[[], list[Stage]]
    """Every ``[[files]]`` entry read again."""

    told: Callable[[str], None]
    """Takes a line as things go on."""


def launch(made: Rendering, how: How) -> Launch:
    """Start the rendered engine, hold it against the plan, stop it where it differs, else leave it serving.

    Raises:
        DidNotStart: it ended or did not answer in time; nothing of it is left.
        CouldNotLook, RefusedInput: the drafter's file cannot be read, or is none.
        UsageError: the plan is for several machines.
    """
    if made.nodes > 1:
        raise _several(made)
    log = how.log_folder / "verify.log"
    report = Launch(made, made.argv((*_on_loopback(made), *added_options(made))), str(log))
    if not _holds_before(report, how):
        return report
    _once(report, how, log)
    if report.exit_code == 0 and not (how.is_kept or how.is_only_look):
        _serve(report, how)
    return report


def _holds_before(report: Launch, how: How) -> bool:
    """Whether everything that can be known without a start is as meant."""
    made = report.made
    if made.losses:
        told = f"{len(made.losses)} losses in this engine; not started"
        report.stages.append(Stage("render", told, is_good=False))
        return False
    stages = how.verify_files()
    report.stages += stages
    findings, blind = drafter_on_disk(made)
    report.findings += findings
    report.not_looked += blind
    if made.drafter is not None and not blind:
        told = "not the file this engine must find" if findings else "the drafter's file is as meant"
        report.stages.append(Stage("bytes", told, is_good=not findings))
    if all(stage.is_good for stage in stages) and not findings:
        return True
    report.stages.append(Stage("start", "not started", is_good=False))
    return False


def _once(report: Launch, how: How, log: Path) -> None:
    """One start for the look; nothing of it is left running unless that was asked for."""
    made = report.made
    env = _environment(made) | added_environment(made, _python_path(made))
    address = _address(made, _LOOPBACK)
    how.told(f"starting {report.argv[0]}, log {log}")
    running = start(report.argv, env, log, how.log_folder)
    is_left = False
    try:
        seconds = until_healthy(running, address, timeout_seconds=how.timeout_seconds, told=how.told)
        report.stages.append(Stage("start", f"healthy after {seconds:.0f} s", is_good=True))
        _look(report, how, running, address)
        is_left = how.is_kept
    finally:
        if not is_left:
            _stop(report, how, running)
    if is_left:
        report.pid = running.leave()
        told = f"process {report.pid} left as it is, with development endpoints on {address.shown}"
        report.stages.append(Stage("keep", told, is_good=True))


def _stop(report: Launch, how: How, running: Running) -> None:
    left = stop(running, grace_seconds=how.grace_seconds)
    told = f"processes {left} could not be ended" if left else "stopped; nothing is left of it"
    report.stages.append(Stage("stop", told, is_good=not left))
    if left:
        report.not_looked.append(NotLooked("stopping", told, is_required=True))


def _look(report: Launch, how: How, running: Running, address: Address) -> None:
    made, python, pid = report.made, EnginePython(how.python), running.process.pid
    records, findings, blind = read_back(
        made, python, address.shown, pid, timeout_seconds=how.request_seconds
    )
    report.effective = records
    report.findings += findings
    report.not_looked += blind
    good = bool(records) and not report.is_wrong
    told = f"{len(records)} workers read" if records else "no worker could be read"
    told += "; as meant" if good else f"; {_ids(findings)}"
    report.stages.append(Stage("effective", told, is_good=good))
    if report.is_wrong:
        return
    asked = _first_request(report, how, running, address)
    if asked and how.num_prompts and not report.is_wrong:
        _probe(report, how, address)


def _first_request(report: Launch, how: How, running: Running, address: Address) -> bool:
    """Whether the engine answered; what it counted is read before and after."""
    before = _page(report, address, how)
    answer = smoke(address, _model(report.made), timeout_seconds=how.request_seconds)
    if answer.error:
        report.findings.append(_failed(report, running, answer))
        report.stages.append(Stage("first request", answer.error, is_good=False))
        return False
    report.fingerprints.append(answer.fingerprint)
    after = _page(report, address, how)
    if isinstance(before, Page) and isinstance(after, Page):
        difference, findings = added(after, before)
        report.findings += findings
        records = acceptances(difference)
        drafts = records[0].num_drafts.value if records else None
        report.acceptance = records[0].as_dict() if records else None
        if report.made.num_draft_tokens is not None and not drafts:
            report.findings.append(_nothing_drafted(drafts))
    good = not report.is_wrong
    report.stages.append(Stage("first request", f"{answer.num_tokens} tokens answered", is_good=good))
    return True


def _probe(report: Launch, how: How, address: Address) -> None:
    try:
        client = connect(address, None, num_tokens=_PROBE_TOKENS, timeout_seconds=how.request_seconds)
        told = probe(client, num_prompts=how.num_prompts, reference=None)
    except CouldNotLook as error:
        report.not_looked.append(NotLooked("probe", f"{error.subject}: {error.found}", is_required=True))
        report.stages.append(Stage("probe", error.found, is_good=False))
        return
    report.findings += told.findings
    report.not_looked += told.not_looked
    report.stages.append(Stage("probe", told.verdict, is_good=told.exit_code == 0))


def _serve(report: Launch, how: How) -> None:
    """Start it again as rendered, ask once, and leave it running."""
    made, log = report.made, how.log_folder / "serve.log"
    how.told(f"starting again as rendered, log {log}")
    running = start(made.argv(), _environment(made), log, how.log_folder)
    is_left = False
    try:
        host = made.plan.text("host")
        address = _address(made, _LOOPBACK if host in _EVERYWHERE else host)
        seconds = until_healthy(running, address, timeout_seconds=how.timeout_seconds, told=how.told)
        answer = smoke(address, _model(made), timeout_seconds=how.request_seconds)
        if answer.error:
            report.findings.append(_failed(report, running, answer))
            return
        is_left = True
        report.pid, report.log = running.leave(), str(log)
        told = f"healthy after {seconds:.0f} s as rendered, left running as process {report.pid}"
        report.stages.append(Stage("serve", told, is_good=True))
    finally:
        if not is_left:
            _stop(report, how, running)


def _page(report: Launch, address: Address, how: How) -> Page | None:
    try:
        return scrape(address, timeout_seconds=how.request_seconds)
    except CouldNotLook as error:
        report.not_looked.append(NotLooked("counters", f"{error.subject}: {error.found}", is_required=True))
        return None


def _failed(report: Launch, running: Running, answer: Smoke) -> Finding:
    return found(
        "launch-first-request-failed",
        report.made.engine.name,
        expected="an answer",
        found=answer.error,
        at=at_file(running.log),
    )


def _nothing_drafted(drafts: int | None) -> Finding:
    return found(
        "launch-nothing-drafted",
        "num_drafts",
        expected="one draft or more",
        found=drafts,
        at=Place("/metrics"),
    )


def _on_loopback(made: Rendering) -> tuple[Option, ...]:
    if made.plan.text("host") == _LOOPBACK:
        return ()
    return (Option("--host", Said(_LOOPBACK, "the look needs development endpoints", "draftproof launch")),)


def _python_path(made: Rendering) -> str:
    """What the engine would find there without us."""
    return str(made.env["PYTHONPATH"].value) if "PYTHONPATH" in made.env else os.environ.get("PYTHONPATH", "")


def _environment(made: Rendering) -> dict[str, str]:
    return {name: str(said.value) for name, said in made.env.items()}


def _address(made: Rendering, host: str) -> Address:
    return Address("http", host, made.plan.number("port"), "")


def _model(made: Rendering) -> str:
    return made.plan.text("served_name") or made.plan.text("target")


def _ids(findings: list[Finding]) -> str:
    return ", ".join(dict.fromkeys(finding.id for finding in findings)) or "nothing found"


def _several(made: Rendering) -> UsageError:
    return UsageError(
        "PLAN",
        expected="a plan for one machine",
        found=f"{made.nodes} nodes",
        where=f"{made.plan.origin}#/serve/nodes",
        means="nothing was started",
        next_step="render it (systemd, lws, ray) and look at each node with draftproof views",
    )
