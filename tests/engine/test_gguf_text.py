"""engine.text.gguf: the tokenizer a GGUF file carries gives the ids its merges say."""

from pathlib import Path

import gguf
import pytest
from tokenizers import pre_tokenizers

from draftproof.engine.text.gguf import read_gguf_text_codec
from draftproof.errors import RefusedInput

pytestmark = pytest.mark.engine

BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
TOKENS = [*BYTES, "he", "hell", "ll", "<|im_start|>", "<|im_end|>", "[USER]"]
CONTROL, USER = [len(BYTES) + 3, len(BYTES) + 4], len(BYTES) + 5


def write(path: Path, **changed: object) -> Path:
    """A GGUF file that holds a tokenizer and no tensors; a field changed to None is left out."""
    kinds = [gguf.TokenType.NORMAL] * len(TOKENS)
    kinds[CONTROL[0]] = kinds[CONTROL[1]] = gguf.TokenType.CONTROL
    kinds[USER] = gguf.TokenType.USER_DEFINED
    fields: dict[str, object] = {
        "model": "gpt2",
        "pre": "smollm",
        "tokens": TOKENS,
        "token_type": [int(kind) for kind in kinds],
        "merges": ["h e", "l l", "he ll"],
        "eos_token_id": CONTROL[1],
        "bos_token_id": CONTROL[0],
    }
    writer = gguf.GGUFWriter(path, "llama")
    for name, value in (fields | changed).items():
        key = f"tokenizer.ggml.{name}"
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, list):
            writer.add_array(key, value)
    writer.add_string("tokenizer.chat_template", "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_merges_are_applied_and_undone(tmp_path: Path) -> None:
    """The word is cut at its merges, and its ids decode to it."""
    text = read_gguf_text_codec(write(tmp_path / "m.gguf"))
    ids = text.encode("hello né")
    assert [TOKENS[i] for i in ids] == ["hell", "o", "Ġ", "n", "Ã", "©"]
    assert text.decode(ids) == "hello né"


def test_special_tokens_are_one_id_and_no_text(tmp_path: Path) -> None:
    """Control tokens are never cut, and do not show; tokens of the user's are text."""
    text = read_gguf_text_codec(write(tmp_path / "m.gguf"))
    ids = text.encode("<|im_start|>h[USER]")
    assert ids == [CONTROL[0], BYTES.index("h"), USER]
    assert text.decode(ids) == "h[USER]"
    assert text.eos_id == CONTROL[1]
    assert text.encode_chat([{"role": "user", "content": "h"}]) == [CONTROL[0], BYTES.index("h"), CONTROL[1]]


def test_digits_are_cut_one_by_one_where_the_file_says_so(tmp_path: Path) -> None:
    """Smollm splits every digit, qwen2 too, llama-bpe by three, gpt-2 not at all."""
    tokens = [*TOKENS, "12", "123", "1234"]
    for pre, expected in (("smollm", 4), ("qwen2", 4), ("llama-bpe", 2), ("gpt-2", 1)):
        path = write(
            tmp_path / f"{pre}.gguf",
            pre=pre,
            tokens=tokens,
            token_type=[1] * len(tokens),
            merges=["1 2", "12 3", "123 4"],
        )
        assert len(read_gguf_text_codec(path).encode("1234")) == expected, pre


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "llama"},
        {"model": None},
        {"pre": "mystery"},
        {"tokens": None},
        {"merges": None},
        {"token_type": None},
        {"tokens": [1, 2]},
        {"token_type": [1, 1]},
        {"eos_token_id": 5000},
        {"model": 5},
    ],
)
def test_other_tokenizers_and_missing_fields_are_named(tmp_path: Path, changed: dict[str, object]) -> None:
    """What is not known here, or not there, is an error that names the field."""
    with pytest.raises(RefusedInput) as caught:
        read_gguf_text_codec(write(tmp_path / "m.gguf", **changed))
    assert next(iter(changed)) in caught.value.subject
