"""The table: every row, and the one that holds for a drafter in an engine.

Rows are the second witness only: an engine that can be asked (``runtimes``) is asked. ``until`` ends what was
read: beyond it nothing holds and nothing is denied.
"""

from draftproof.config.drafter import Method
from draftproof.findings.semantics import sglang, vllm
from draftproof.findings.semantics.row import Quantity, Semantic
from draftproof.findings.versions import Engine, Verdict

__all__ = ["SEMANTICS", "semantic"]

SEMANTICS: tuple[Semantic, ...] = (*vllm.ROWS, *sglang.ROWS)


def semantic(engine: Engine, quantity: Quantity, method: Method, dialect: str) -> Semantic | None:
    """The first row that holds for a drafter in an engine; None where none was read for that version."""
    for row in SEMANTICS:
        is_about = row.quantity is quantity and row.concerns(method, dialect)
        if is_about and row.versions.verdict(engine) is Verdict.HOLDS:
            return row
    return None
