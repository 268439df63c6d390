"""engine.text.stopping: a request ends where it was told to, whatever the tokens that cross the place."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof.engine.text.stopping import Detokeniser, Stopping, TextStream
from draftproof.errors import UsageError

pytestmark = pytest.mark.engine

PIECES = [b"a", b"b", b"ab", b"ST", b"OP", b"S", b"\xe2", b"\x82", b"\xac", "é".encode(), b"TOP!", b""]


def decode(tokens: list[int]) -> str:
    """Byte pieces joined; a character not yet whole shows as the replacement character."""
    return b"".join(PIECES[token] for token in tokens).decode("utf-8", errors="replace")


def streamed(tokens: list[int], stops: tuple[str, ...] = ()) -> tuple[str, int]:
    """The text shown piece by piece, and how many tokens were taken."""
    stream = TextStream(decode, stops)
    shown = ""
    for count, token in enumerate(tokens, start=1):
        shown += stream.add(token)
        if stream.stopped:
            return shown, count
    return shown + stream.finish(), len(tokens)


@settings(max_examples=500, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, len(PIECES) - 1), max_size=30))
def test_pieces_join_to_the_whole_text(tokens: list[int]) -> None:
    """Whatever the tokens, the text shown in pieces is the text of all of them."""
    assert streamed(tokens)[0] == decode(tokens)


@settings(max_examples=500, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=30), st.sampled_from([("STOP",), ("ab", "STOP"), ("bab", "ba")]))
def test_text_ends_before_the_first_stop_string(tokens: list[int], stops: tuple[str, ...]) -> None:
    """The stream stops with the token that completes a stop string, and shows what stands before it."""
    shown, taken = streamed(tokens, stops)
    whole = decode(tokens)
    ends = [n for n in range(len(tokens) + 1) if any(stop in decode(tokens[:n]) for stop in stops)]
    if not ends:
        assert (shown, taken) == (whole, len(tokens))
    else:
        text = decode(tokens[: ends[0]])
        assert taken == ends[0]
        assert shown == text[: min(text.find(stop) for stop in stops if stop in text)]


def test_a_stop_string_may_span_tokens() -> None:
    """``STOP`` written as ``ST`` and ``OP`` is found, and its beginning was never shown."""
    stream = TextStream(decode, ("STOP",))
    assert [stream.add(0), stream.add(3), stream.add(4)] == ["a", "", ""]
    assert stream.stopped


def test_what_was_held_back_is_shown_when_it_was_no_stop() -> None:
    """A beginning of a stop string is shown as soon as it goes another way."""
    stream = TextStream(decode, ("STOP",))
    assert [stream.add(3), stream.add(0)] == ["", "STa"]
    assert stream.add(3) + stream.finish() == "ST"


def test_a_character_over_three_tokens_is_shown_whole() -> None:
    """The euro sign appears with its last byte."""
    detokeniser = Detokeniser(decode)
    assert [detokeniser.add(token) for token in (6, 7, 8)] == ["", "", "€"]


def test_an_unfinished_character_is_shown_at_the_end() -> None:
    """Bytes that never become a character are not lost."""
    detokeniser = Detokeniser(decode)
    assert detokeniser.add(6) + detokeniser.rest() == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("options", [{"max_new_tokens": 0}, {"max_new_tokens": 5, "strings": ("a", "")}])
def test_requests_without_a_meaningful_end_are_refused(options: dict[str, object]) -> None:
    """No token at all, or an empty stop string, is an error."""
    with pytest.raises(UsageError):
        Stopping(**options)  # type: ignore[arg-type]
