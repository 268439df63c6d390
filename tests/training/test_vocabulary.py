"""The tokenizer gives back every text, and the chat template says what training said."""

from pathlib import Path

import pytest

from draftproof.engine.text.tokens import read_text_codec
from draftproof.training.corpus.document import Document
from draftproof.training.vocabulary import SPECIAL, Pieces, train_tokenizer, write_tokenizer
from tiny_training import small_tokenizer

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n\n  x\n",
        "def f(x):\n\treturn x\n",
        "kemnop KEMNOP",
        "caf\u00e9 \u4f60\u597d \U0001f600",
        "12 + 345",
    ],
)
def test_texts_come_back(tmp_path: Path, text: str) -> None:
    """Through the files and the reader that a checkpoint goes through."""
    write_tokenizer(small_tokenizer(), tmp_path)
    codec = read_text_codec(tmp_path)
    assert codec.decode(codec.encode(text)) == text


def test_a_digit_is_a_token() -> None:
    """Numbers are read digit by digit."""
    tokenizer = small_tokenizer()
    assert tokenizer.encode("x 40719").tokens[-5:] == list("40719")


def test_the_template_is_what_training_read(tmp_path: Path) -> None:
    """A conversation's ids and those of a training prompt are the same, its end token the reader's."""
    tokenizer = small_tokenizer()
    write_tokenizer(tokenizer, tmp_path)
    codec = read_text_codec(tmp_path)
    pieces = Pieces(tokenizer)
    document = Document("sums", "Add up this bill:\nkem costs 3", "In all: 3.", is_chat=True)
    prompt = pieces.prompt(document)
    assert codec.encode_chat([{"role": "user", "content": document.prompt}]) == prompt
    assert codec.eos_id == pieces.end == pieces.response(document)[-2]


def test_special_ids_are_the_last() -> None:
    """Five of them, none a part of any text."""
    tokenizer = small_tokenizer()
    size = tokenizer.get_vocab_size()
    assert [tokenizer.token_to_id(token) for token in SPECIAL] == list(range(size - 5, size))
    pieces = Pieces(tokenizer)
    assert len(pieces.texts) == size
    assert pieces.drills.alike[-1]
    assert max(max(group) for group in pieces.drills.alike) < size - 5


def test_too_little_text_is_no_tokenizer() -> None:
    """A vocabulary is never silently smaller than asked for."""
    with pytest.raises(ValueError, match="too little text"):
        train_tokenizer(["abc"], 400)
