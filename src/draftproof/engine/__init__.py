"""The loop: propose, verify, accept, commit; text in and out; what happened, as it happened."""

from draftproof.engine.engine import Engine

__all__ = ["Engine"]
