"""checkpoint.catalogue: every id that the package gives has its meaning, and no meaning lacks its id."""

import re
from pathlib import Path

from draftproof.checkpoint.catalogue import ARTEFACTS

SOURCE = Path(__file__).parents[2] / "src" / "draftproof" / "checkpoint"
KINDS = {"catalogue.py", "file_kinds.py", "tensor_kinds.py"}
WORD = re.compile(r'"([a-z0-9]+(?:-[a-z0-9]+)+)"')
NOT_IDS = {"utf-8", "git-sha1"}


def test_ids_in_the_code_and_in_the_catalogue_are_the_same() -> None:
    """Every hyphenated word in quotes in the package's code is an id of the catalogue, and the reverse."""
    files = [p for p in SOURCE.rglob("*.py") if p.name not in KINDS]
    assert len(files) > 20
    words = {w for p in files for w in WORD.findall(p.read_text(encoding="utf-8"))} - NOT_IDS
    assert words == set(ARTEFACTS)


def test_every_kind_is_complete() -> None:
    """Severity is one of three words; title, meaning and next step say something without a full stop."""
    for name, kind in ARTEFACTS.items():
        assert kind.severity in {"error", "warning", "note"}, name
        for text in (kind.title, kind.means, kind.next_step):
            assert len(text) > 10, name
            assert not text.endswith("."), name


def test_every_id_is_provoked_by_a_test() -> None:
    """Each id stands in a test of this folder: a defect nobody provokes may not exist."""
    here = Path(__file__)
    text = "\n".join(p.read_text(encoding="utf-8") for p in here.parent.glob("test_*.py") if p != here)
    assert [name for name in ARTEFACTS if f'"{name}"' not in text] == []
