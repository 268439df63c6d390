"""Kinds about an engine that was started by a plan and held against it."""

from draftproof.findings.kind import Kind, error
from draftproof.names import Layer

__all__ = ["KINDS"]

KINDS: tuple[Kind, ...] = (
    error(
        "launch-file-differs",
        "the drafter's file is not the one that this engine must find",
        "the engine would run another drafter than the plan means; it was not started",
        "put the rendered file there (draftproof render --out, then draftproof write), and launch again",
    ),
    error(
        "launch-draft-tokens",
        "the engine drafts another number of tokens per step than the plan says",
        "something between the plan and the engine changed the command: a wrapper, an environment, a default",
        "read the command of the running process (/proc/PID/cmdline) against draftproof render",
        layer=Layer.EFFECTIVE,
    ),
    error(
        "launch-first-request-failed",
        "the engine was healthy and failed at its first request",
        "health checks do not draft; what the first draft needs is wrong",
        "read the last lines of the log; out-of-range or repeated taps and a mask outside the vocabulary "
        "show only here",
        layer=Layer.OBSERVED,
    ),
    error(
        "launch-nothing-drafted",
        "the engine answered and drafted nothing",
        "it serves the target alone: speculation is off, whatever the plan says",
        "read the command of the running process against draftproof render",
        layer=Layer.OBSERVED,
    ),
)
