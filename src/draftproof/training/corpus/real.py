"""Real text that may be redistributed: modules and help topics of the Python standard library.

Which files, and the digest of each as it was used, stand in the corpus manifest; another interpreter's files
are refused, not silently taken. A module is kept from training whole or not at all.
"""

import ast
import hashlib
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from draftproof.errors import CouldNotLook, RefusedInput
from draftproof.training.corpus.document import Document
from draftproof.training.corpus.draws import Draws

__all__ = ["RealText", "digest_of", "read_real_text"]

_SMALLEST_PROMPT, _LARGEST_PROMPT = 300, 420
"""Characters of real text that a prompt shows."""

_LARGEST = 1000
"""Characters of one stretch."""


@dataclass(frozen=True, slots=True)
class RealText:
    """The files' texts, ready to be cut."""

    texts: tuple[str, ...]

    def document(self, draws: Draws) -> Document:
        """A stretch that begins at the beginning of a line."""
        text = draws.random.choices(self.texts, [len(text) for text in self.texts])[0]
        begin = text.rfind("\n", 0, draws.count(0, max(0, len(text) - _LARGEST))) + 1
        stretch = text[begin : begin + _LARGEST]
        cut = draws.count(_SMALLEST_PROMPT, _LARGEST_PROMPT)
        return Document("real", stretch[:cut], stretch[cut:], is_chat=False)


def read_real_text(digests: Mapping[str, str]) -> RealText:
    """The named files of this interpreter's standard library.

    Args:
        digests: sha256 by path inside the library.

    Raises:
        CouldNotLook: a file is not there.
        RefusedInput: a file is another than the one named.
    """
    root = Path(sysconfig.get_path("stdlib"))
    texts = []
    for name, wanted in sorted(digests.items()):
        found = _read(root / name)
        if digest_of(found) != wanted:
            raise RefusedInput(
                "corpus",
                expected=f"sha256 {wanted}",
                found=digest_of(found),
                where=str(root / name),
                means="this is another release of Python than the one the corpus was made with",
                next_step="train with the Python that the manifest of the corpus names",
            )
        texts += _texts(name, found.decode("utf-8"))
    return RealText(tuple(texts))


def digest_of(source: bytes) -> str:
    """The sha256 of a file's bytes in hexadecimal."""
    return hashlib.sha256(source).hexdigest()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CouldNotLook(
            "corpus",
            expected="a file of the standard library",
            found=error.strerror or type(error).__name__,
            where=str(path),
            means="the real share of the corpus cannot be made",
            next_step="train with a Python whose standard library is installed as sources",
        ) from error


def _texts(name: str, source: str) -> list[str]:
    """A module is one text; the module of help topics is read for its topics."""
    if not name.endswith("topics.py"):
        return [source]
    assigned = next(node for node in ast.parse(source).body if isinstance(node, ast.Assign))
    topics: dict[str, str] = ast.literal_eval(assigned.value)
    return [text for _, text in sorted(topics.items())]
