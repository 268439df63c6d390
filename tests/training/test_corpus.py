"""The corpus is a function of its seed, and nothing held out is in it."""

import itertools
import json
import random
import re
from importlib.resources import files
from pathlib import Path

import pytest

from draftproof.errors import CouldNotLook, RefusedInput
from draftproof.training.corpus.document import Document
from draftproof.training.corpus.draws import SYLLABLES, Draws, is_held_out_name, is_held_out_value
from draftproof.training.corpus.held_out import COUNT, made_prompts, write_prompts
from draftproof.training.corpus.real import RealText, digest_of, read_real_text
from draftproof.training.corpus.stream import KINDS, documents

pytestmark = pytest.mark.engine

PAIR = Path(str(files("draftproof"))) / "pair"
REAL = RealText(("import spam\n\n\ndef eggs():\n    return spam\n" * 60,))
LONGEST_WORD = 9
"""Letters of three syllables; shorter or longer runs of letters are no names."""


def made(seed: int, count: int, *, held_out: bool = False) -> list[Document]:
    """Procedural documents."""
    return list(itertools.islice(documents(seed, REAL, 0.0, held_out=held_out), count))


def names_in(text: str) -> set[str]:
    """Every run of letters that is two or three syllables, in small letters."""
    found = set()
    for word in re.findall(r"[a-z]+", text.lower()):
        parts = [word[at : at + 3] for at in range(0, len(word), 3)]
        if len(parts) in (2, 3) and all(part in SYLLABLES for part in parts):
            found.add(word)
    return found


def is_held_out(name: str) -> bool:
    """By the rule, from the letters alone."""
    return is_held_out_name([SYLLABLES.index(name[at : at + 3]) for at in range(0, len(name), 3)])


def test_same_seed_same_documents() -> None:
    """And another seed makes others."""
    first = list(itertools.islice(documents(3, REAL, 0.25), 60))
    assert first == list(itertools.islice(documents(3, REAL, 0.25), 60))
    assert first != list(itertools.islice(documents(4, REAL, 0.25), 60))
    assert {document.kind for document in first} == {"real", *KINDS}


def test_syllables_spell_every_name_in_one_way() -> None:
    """All have three letters and none is there twice: a name's letters tell which space it is of."""
    assert len(set(SYLLABLES)) == len(SYLLABLES) == 64
    assert {len(syllable) for syllable in SYLLABLES} == {3}


def test_no_training_text_has_a_held_out_name_and_no_prompt_another() -> None:
    """Read from the finished texts, not from what drew them."""
    training = set().union(*(names_in(d.prompt + " " + d.response) for d in made(1, 1500)))
    held_out = set().union(*(names_in(d.prompt + " " + d.response) for d in made(1, 300, held_out=True)))
    assert len(training) > 5000
    assert len(held_out) > 1000
    assert not any(is_held_out(name) for name in training)
    assert all(is_held_out(name) for name in held_out)


@pytest.mark.parametrize("held_out", [False, True])
def test_values_are_of_their_space(held_out: bool) -> None:  # noqa: FBT001 - parametrised
    """As drawn, and as the settings' JSON shows them."""
    draws = Draws(random.Random(0), held_out)  # noqa: S311 - text for a test
    assert {is_held_out_value(draws.value(10, 9999)) for _ in range(500)} == {held_out}
    shown = []
    for document in made(2, 200, held_out=held_out):
        if document.kind == "settings":
            sections = json.loads(
                document.prompt[document.prompt.index("{") : document.prompt.rindex("}") + 1]
            )
            shown += [
                v for s in sections.values() for v in s.values() if isinstance(v, int) and v not in (0, 1)
            ]
    assert len(shown) > 100
    assert {is_held_out_value(value) for value in shown} == {held_out}


def test_sums_add_up() -> None:
    """Every line of a worked bill is true."""
    checked = 0
    for document in made(5, 200):
        for left, right, result in re.findall(r"(\d+) \+ (\d+) = (\d+)", document.response):
            assert int(left) + int(right) == int(result)
            checked += 1
        for left, right, result in re.findall(r"(\d+) x (\d+) = (\d+)", document.response):
            assert int(left) * int(right) == int(result)
            checked += 1
    assert checked > 100


def test_shipped_procedural_prompts_are_what_the_seed_makes(tmp_path: Path) -> None:
    """Two hundred and forty of them, all different."""
    prompts = made_prompts()
    write_prompts(tmp_path / "procedural.jsonl", prompts)
    shipped = (PAIR / "prompts" / "procedural.jsonl").read_bytes()
    assert (tmp_path / "procedural.jsonl").read_bytes() == shipped
    assert len({prompt.prompt for prompt in prompts}) == COUNT == 240


def test_held_out_files_are_no_training_files() -> None:
    """Neither by name nor by content."""
    manifest = json.loads((PAIR / "corpus.json").read_bytes())
    train, held_out = manifest["train"], manifest["held_out"]
    assert len(train) > 50
    assert len(held_out) > 10
    assert not train.keys() & held_out.keys()
    assert not set(train.values()) & set(held_out.values())


def test_another_file_of_the_library_is_refused() -> None:
    """A digest that does not agree, and a file that is not there."""
    with pytest.raises(RefusedInput, match="corpus"):
        read_real_text({"bisect.py": digest_of(b"another")})
    with pytest.raises(CouldNotLook, match="corpus"):
        read_real_text({"no_such_module.py": digest_of(b"")})
