"""The Prometheus text format, read strictly: one sample a line, or no samples at all.

Source: Prometheus exposition formats, version 0.0.4; OpenMetrics' ``# EOF`` and exemplars are let by.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from draftproof.errors import CouldNotLook

__all__ = ["Sample", "is_metrics", "parse_samples"]

MOST_SAMPLES = 200_000
_LONGEST_SHOWN = 80
_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\\n]|\\["\\n])*)"\s*(,|$)')
_NUMBER = r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|[Ii]nf|[Nn]a[Nn])"
_LINE = re.compile(
    rf'({_NAME})(?:\{{((?:[^"}}]|"(?:[^"\\]|\\.)*")*)\}})?'
    rf"[ \t]+({_NUMBER})(?:[ \t]+-?[0-9.]+)?[ \t]*(?:#.*)?",
    re.ASCII,
)
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


@dataclass(frozen=True, slots=True)
class Sample:
    """One number with its name and labels."""

    name: str
    labels: Mapping[str, str]
    value: float


def parse_samples(text: str, where: str) -> tuple[Sample, ...]:
    """Every sample of a page of metrics.

    Raises:
        CouldNotLook: a line is neither a comment nor a sample, or there are too many.
    """
    samples: list[Sample] = []
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        sample = _sample(stripped)
        if sample is None or len(samples) >= MOST_SAMPLES:
            raise CouldNotLook(
                "metrics",
                expected=f"Prometheus text, at most {MOST_SAMPLES} samples",
                found=f"{stripped[:_LONGEST_SHOWN]!r}" if sample is None else "more",
                where=f"{where} line {number}",
                means="the page may be an error page or cut short: no number of it is used",
                next_step="look at the address with a browser; the path is /metrics as a rule",
            )
        samples.append(sample)
    return tuple(samples)


def is_metrics(text: str) -> bool:
    """Whether the first line is one of a page of metrics."""
    first = text.lstrip().partition("\n")[0].strip()
    if first.startswith(("# HELP ", "# TYPE ")):
        return True
    is_word = first.partition(" ")[0].endswith(":")  # "build: 9100" begins a log
    return not is_word and _sample(first) is not None


def _sample(line: str) -> Sample | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    name, inside, number = match.groups()
    labels = _labels(inside or "")
    return None if labels is None else Sample(name, labels, float(number))


def _labels(inside: str) -> dict[str, str] | None:
    labels: dict[str, str] = {}
    position = 0
    while inside[position:].strip():
        match = _LABEL.match(inside, position)
        if match is None or match[1] in labels:
            return None
        labels[match[1]] = re.sub(r"\\.", lambda escape: _ESCAPES[escape[0]], match[2])
        position = match.end()
    return labels
