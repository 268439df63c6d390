"""Comparing configs: typed differences of values, patches between them, and what only the bytes show."""

from draftproof.config.json.compare import BytesVerdict, compare_bytes, formatting_differences
from draftproof.config.json.diff import ABSENT, Difference, Kind, canonical, diff, invert
from draftproof.config.json.patch import Operation, apply, patch

__all__ = [
    "ABSENT",
    "BytesVerdict",
    "Difference",
    "Kind",
    "Operation",
    "apply",
    "canonical",
    "compare_bytes",
    "diff",
    "formatting_differences",
    "invert",
    "patch",
]
