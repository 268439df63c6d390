"""printable: foreign text cannot drive a terminal, hide or reorder itself."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof.printable import is_secret_key, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("mask_token_id = 248070", "mask_token_id = 248070"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\rb", "a\\rb"),
        ("\u202egnp", "\\u202egnp"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ufeff", "\\ufeff"),
        ("\x9b31m", "\\x9b31m"),
        ("Größe 大", "Größe 大"),
    ],
)
def test_controls_are_written_out(text: str, shown: str) -> None:
    """Controls become their escapes; letters of any script stay."""
    assert printable(text) == shown


@given(st.text(st.characters(codec=None)))
def test_nothing_invisible_is_left(text: str) -> None:
    """Whatever goes in, no control, format, surrogate or unassigned character comes out."""
    assert not {unicodedata.category(c) for c in printable(text)} & {"Cc", "Cf", "Cs", "Co", "Cn"}


def test_newlines_stay_only_where_asked() -> None:
    """A multi-line text of ours keeps its lines; a foreign value does not."""
    assert printable("a\nb", keep_newlines=True) == "a\nb"
    assert "\n" not in printable("a\nb")


@pytest.mark.parametrize(
    "key",
    [
        *("hf_token", "HF-TOKEN", "api_key", "password", "client_secret", "apiKey", "secret_key"),
        *("privateKey", "aws_secret_access_key", "Authorization", "credentials", "auth_tokens", "passphrase"),
    ],
)
def test_credentials_are_recognised_by_name(key: str) -> None:
    """A key that names a credential is masked."""
    assert is_secret_key(key)


@pytest.mark.parametrize(
    "key", ["mask_token_id", "mask_token", "eos_token", "num_draft_tokens", "bos_token_id", "padToken", "key"]
)
def test_token_ids_are_no_secrets(key: str) -> None:
    """The vocabulary's special tokens are what we are here to show."""
    assert not is_secret_key(key)
