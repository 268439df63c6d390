"""What the rendered drafter loses in an engine: what ``check`` finds in the rendered file for it."""

import json
from pathlib import Path

from draftproof.checkpoint.ledger import NoWeights
from draftproof.config.parse import Parsed, parse_config
from draftproof.config.raw import RawConfig, parse_raw, read_raw
from draftproof.deploy.serving.intent import DrafterFile
from draftproof.deploy.serving.reason import Loss, Unlooked
from draftproof.deploy.serving.rendering import ConfigFile
from draftproof.errors import CouldNotLook, RefusedInput
from draftproof.findings.check import RULES, check
from draftproof.findings.engines import Engine
from draftproof.findings.evidence import Evidence, Model
from draftproof.findings.finding import Severity
from draftproof.findings.tokenizer import NoTokenizer
from draftproof.names import Layer

__all__ = ["read_target", "refuse_faulty", "unread_fields"]

_NO_FILES = "only the config is looked at"


def unread_fields(
    file: DrafterFile, config: ConfigFile | None, engine: Engine, target: RawConfig | None
) -> tuple[list[Loss], list[Unlooked]]:
    """Every stated field that this version does not read, with the published cost; and what nobody knows."""
    raw = file.raw
    if config is not None:
        raw = parse_raw(json.dumps(config.content, indent=1).encode(), f"{file.raw.origin} as rendered")
    report = check(Evidence(_model(raw), _model(target) if target else None, None, None, engine), RULES)
    lost, unknown = [], []
    for finding in report.findings:
        if finding.layer is Layer.EFFECTIVE:
            lost.append(Loss(finding.subject, finding.found, finding.means))
        elif finding.id == "field-without-reader":
            unknown.append(Unlooked(f"{finding.subject} in {engine}", finding.means))
    return lost, unknown


def refuse_faulty(file: DrafterFile, target: RawConfig | None) -> None:
    """Raises RefusedInput where the intended config itself is faulty: no engine would make it right."""
    report = check(Evidence(_model(file.raw), _model(target) if target else None, None, None, None), RULES)
    faults = [
        f"{finding.id} at {finding.where}: expected {finding.expected}, found {finding.found}"
        for finding in report.findings
        if finding.severity is Severity.ERROR and finding.layer is Layer.BYTES
    ]
    if faults:
        raise RefusedInput(
            file.raw.origin,
            expected="a drafter's config without a fault",
            found="; ".join(faults),
            where=file.raw.origin,
            means="nothing was rendered: every engine would run it wrongly",
            next_step=f"draftproof check {file.raw.origin}",
        )


def read_target(target: str) -> RawConfig | None:
    """The target's config where it lies on this machine; None where it does not."""
    path = Path(target) / "config.json"
    try:
        return read_raw(path) if path.is_file() else None
    except CouldNotLook:
        return None


def _model(raw: RawConfig) -> Model:
    parsed: Parsed = parse_config(raw)
    return Model(
        raw.origin, None, Path(raw.origin), raw, parsed, NoWeights(_NO_FILES), NoTokenizer(_NO_FILES)
    )
