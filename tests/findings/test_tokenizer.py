"""findings.tokenizer: ids and texts from real file layouts, duplicates and damage named."""

import json
from pathlib import Path

import pytest

from draftproof.findings.tokenizer import NoTokenizer, Tokenizer, read_tokenizer

CONFIG = {
    "eos_token": "<|im_end|>",
    "mask_token": {"content": "<|MASK|>", "special": True},
    "added_tokens_decoder": {"7": {"content": "<|repo_name|>"}},
}


def _write(directory: Path, vocab: object, added: object = (), config: object = None) -> None:
    document = {
        "model": {"type": "BPE", "vocab": vocab},
        "added_tokens": added,
        "pre_tokenizer": {"type": "ByteLevel"},
    }
    (directory / "tokenizer.json").write_text(json.dumps(document), "utf-8")
    if config is not None:
        (directory / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")


def _read(directory: Path) -> Tokenizer:
    tokenizer = read_tokenizer(directory)
    assert isinstance(tokenizer, Tokenizer)
    return tokenizer


def test_every_place_that_names_an_id_is_read(tmp_path: Path) -> None:
    """Vocabulary, added tokens and added_tokens_decoder give one table; special tokens are known by role."""
    _write(tmp_path, {"a": 0, "b": 1}, [{"id": 5, "content": "<think>"}], CONFIG)
    tokenizer = _read(tmp_path)
    assert tokenizer.texts == {0: "a", 1: "b", 5: "<think>", 7: "<|repo_name|>"}
    assert tokenizer.added == {5: "<think>", 7: "<|repo_name|>"}
    assert (tokenizer.length, tokenizer.id_of("<think>"), tokenizer.id_of("c")) == (8, 5, None)
    assert tokenizer.specials == {"eos_token": "<|im_end|>", "mask_token": "<|MASK|>"}
    assert tokenizer.defects == ()


def test_a_unigram_vocabulary_is_a_list(tmp_path: Path) -> None:
    """SentencePiece models list [text, score] in the order of their ids."""
    _write(tmp_path, [["<unk>", 0.0], ["a", -1.0]])
    assert _read(tmp_path).texts == {0: "<unk>", 1: "a"}


def test_vocab_json_alone_is_a_tokenizer(tmp_path: Path) -> None:
    """Older repositories have vocab.json and merges.txt only."""
    (tmp_path / "vocab.json").write_text('{"a": 0, "b": 1}', "utf-8")
    assert _read(tmp_path).texts == {0: "a", 1: "b"}


def test_the_way_text_is_split_has_a_digest(tmp_path: Path) -> None:
    """Equal pre-tokenizers have equal digests whatever their key order; none is None."""
    for name, text in (("a", '{"type":"X","y":1}'), ("b", '{"y":1,"type":"X"}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tokenizer.json").write_text(
            f'{{"model":{{"vocab":{{}}}},"pre_tokenizer":{text}}}', "utf-8"
        )
    one, other = _read(tmp_path / "a"), _read(tmp_path / "b")
    assert one.pre_tokenizer_digest == other.pre_tokenizer_digest is not None
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "vocab.json").write_text("{}", "utf-8")
    assert _read(tmp_path / "c").pre_tokenizer_digest is None


def test_a_duplicate_key_is_named(tmp_path: Path) -> None:
    """Python keeps the last of two equal keys without a word; the tokenizer's defects say it."""
    (tmp_path / "tokenizer.json").write_text('{"model": {"vocab": {"a": 0, "a": 1}}}', "utf-8")
    assert _read(tmp_path).defects == ("tokenizer.json has duplicate keys: 'a'",)


def test_two_texts_for_one_id_are_named(tmp_path: Path) -> None:
    """What an id means must not depend on the file that is read."""
    _write(tmp_path, {"a": 7}, (), CONFIG)
    assert len(_read(tmp_path).defects) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', "\ufeff{}"])
def test_a_damaged_file_is_no_tokenizer_and_says_so(tmp_path: Path, text: str) -> None:
    """A tokenizer file that is not a JSON object is damage, not absence."""
    (tmp_path / "tokenizer.json").write_text(text, "utf-8")
    tokenizer = read_tokenizer(tmp_path)
    assert isinstance(tokenizer, NoTokenizer)
    assert tokenizer.is_damaged
    assert str(tmp_path) in tokenizer.reason


def test_absence_is_told_with_the_place(tmp_path: Path) -> None:
    """No tokenizer file is a reason, not an error."""
    tokenizer = read_tokenizer(tmp_path)
    assert isinstance(tokenizer, NoTokenizer)
    assert not tokenizer.is_damaged
    assert str(tmp_path) in tokenizer.reason


def test_an_empty_vocabulary_has_length_0(tmp_path: Path) -> None:
    """A length is never guessed."""
    _write(tmp_path, {})
    assert _read(tmp_path).length == 0
