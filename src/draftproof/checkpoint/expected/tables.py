"""The expected table for any parsed config: which tensors its architecture reads."""

from draftproof.checkpoint.expected.drafter import drafter_table
from draftproof.checkpoint.expected.table import ExpectedTable, ExpectedTensor
from draftproof.checkpoint.expected.target import target_table
from draftproof.config.drafter import DrafterConfig
from draftproof.config.target import TargetConfig

__all__ = ["ExpectedTable", "ExpectedTensor", "expected_tensors"]


def expected_tensors(config: DrafterConfig | TargetConfig) -> ExpectedTable:
    """Every tensor that engines read for this config, both required and optional."""
    return target_table(config) if isinstance(config, TargetConfig) else drafter_table(config)
