"""The prompts that ship: made from names, values and files that no training text has."""

import itertools
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from draftproof.training.corpus.document import Document
from draftproof.training.corpus.draws import Draws
from draftproof.training.corpus.real import RealText
from draftproof.training.corpus.stream import made_document

__all__ = ["COUNT", "SEED", "made_prompts", "real_prompts", "write_prompts"]

COUNT, SEED = 240, 11
"""Prompts of each set, and the seed they are drawn with."""


def made_prompts(count: int = COUNT) -> list[Document]:
    """Procedural ones, in the proportions of the corpus."""
    draws = Draws(random.Random(SEED), held_out=True)  # noqa: S311 - reproducible text, no secret
    return _first(count, (made_document(draws) for _ in itertools.count()))


def real_prompts(real: RealText, count: int = COUNT) -> list[Document]:
    """Stretches of ``real``, which must be the held-out files."""
    draws = Draws(random.Random(SEED), held_out=True)  # noqa: S311 - the same
    return _first(count, (real.document(draws) for _ in itertools.count()))


def _first(count: int, stream: Iterator[Document]) -> list[Document]:
    """The first ``count`` with different prompts."""
    found: dict[str, Document] = {}
    while len(found) < count:
        document = next(stream)
        found.setdefault(document.prompt, document)
    return list(found.values())


def write_prompts(path: Path, prompts: Iterable[Document]) -> None:
    """One JSON object a line: ``id``, ``kind``, ``is_chat``, ``prompt`` and the corpus's own ``response``."""
    lines = [
        json.dumps(
            {
                "id": f"{path.stem}-{number:03d}",
                "kind": document.kind,
                "is_chat": document.is_chat,
                "prompt": document.prompt,
                "response": document.response,
            },
            ensure_ascii=False,
        )
        for number, document in enumerate(prompts)
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
