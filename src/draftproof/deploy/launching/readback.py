"""Read-back: what a start for verification adds to the rendered command, and what the workers then say."""

from draftproof.config.parse import parse_config
from draftproof.config.target import TargetConfig
from draftproof.deploy.serving.losses import read_target
from draftproof.deploy.serving.reason import Said
from draftproof.deploy.serving.rendering import Option, Rendering
from draftproof.findings.catalogue import found
from draftproof.findings.finding import Finding, NotLooked
from draftproof.findings.place import Place
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.effective import Effective
from draftproof.runtimes.judge_effective import Meant, judge_effective
from draftproof.runtimes.running import look_at
from draftproof.runtimes.worker_extension import VLLM_CLASS, extension_directory

__all__ = ["added_environment", "added_options", "read_back"]


def added_options(made: Rendering) -> tuple[Option, ...]:
    """What lets the workers be asked."""
    if made.engine.name != "vllm":
        return ()
    said = Said(VLLM_CLASS, "lets each worker be asked what it holds", "vLLM worker_extension_cls")
    return (Option("--worker-extension-cls", said),)


def added_environment(made: Rendering, inherited: str) -> dict[str, str]:
    """The development endpoints and the extension's directory, before the ``inherited`` PYTHONPATH."""
    if made.engine.name != "vllm":
        return {}
    own = extension_directory("vllm")
    path = f"{own}:{inherited}" if inherited else str(own)
    return {"VLLM_SERVER_DEV_MODE": "1", "PYTHONPATH": path}


def read_back(
    made: Rendering, python: EnginePython, url: str, pid: int, *, timeout_seconds: float
) -> tuple[tuple[Effective, ...], list[Finding], list[NotLooked]]:
    """Every rank's record, and where it is not what the plan means."""
    running = look_at(python, url, pid, timeout_seconds=timeout_seconds)
    findings = list(running.findings)
    meant = _meant(made)
    for record in running.records:
        findings += judge_effective(record, meant) if meant is not None else ()
        findings += _draft_tokens(made, record)
    return running.records, findings, list(running.not_looked)


def _meant(made: Rendering) -> Meant | None:
    if made.drafter is None:
        return None
    raw = read_target(made.plan.text("target"))
    target = parse_config(raw).config if raw is not None else None
    beside = target if isinstance(target, TargetConfig) else None
    return Meant.beside(made.drafter.raw, made.drafter.config, beside)


def _draft_tokens(made: Rendering, record: Effective) -> list[Finding]:
    """K as the plan says it, exactly: more than the drafter's own is the judge's business, too."""
    fact = record.fact("k")
    if made.num_draft_tokens is None or not fact.is_known or fact.value == made.num_draft_tokens:
        return []
    return [
        found(
            "launch-draft-tokens",
            "k",
            expected=made.num_draft_tokens,
            found=fact.value,
            at=Place(str(made.plan.origin)),
            detail=f"{record.engine} {record.version}: {fact.source}",
        )
    ]
