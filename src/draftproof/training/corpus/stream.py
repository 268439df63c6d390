"""Documents without end, by seed: the same seed, space and share give the same documents."""

import random
from collections.abc import Iterator

from draftproof.training.corpus.document import Document
from draftproof.training.corpus.draws import Draws
from draftproof.training.corpus.functions import functions_document
from draftproof.training.corpus.real import RealText
from draftproof.training.corpus.records import log_document, table_document
from draftproof.training.corpus.settings import settings_document
from draftproof.training.corpus.sums import sums_document

__all__ = ["KINDS", "documents", "made_document"]

KINDS = {
    "settings": settings_document,
    "table": table_document,
    "log": log_document,
    "sums": sums_document,
    "functions": functions_document,
}
"""Makers of procedural documents; settings are drawn twice as often as any other."""

_ROUND = ("settings", "table", "log", "settings", "sums", "functions")


def made_document(draws: Draws) -> Document:
    """A procedural document of any kind."""
    return KINDS[draws.pick(_ROUND)](draws)


def documents(seed: int, real: RealText, real_share: float, *, held_out: bool = False) -> Iterator[Document]:
    """Documents without end.

    Args:
        seed: of everything drawn.
        real: what real stretches are cut from.
        real_share: how many of all documents are real, 0 to 1.
        held_out: draw names and values from the space kept from training.
    """
    draws = Draws(random.Random(seed), held_out)  # noqa: S311 - reproducible text, no secret
    while True:
        yield real.document(draws) if draws.random.random() < real_share else made_document(draws)
