"""proposers.propose: what is guessed is a draft within the depth asked for, and follows what stood before."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof.engine.proposers.propose import Context, NgramProposer, NoProposer
from draftproof.errors import UsageError
from draftproof.speculation.chance import SeededChance
from draftproof.speculation.sampling import Sampling

pytestmark = pytest.mark.engine


def context(tokens: list[int], max_depth: int = 100) -> Context:
    """Before a step of a greedy request."""
    return Context(tokens, max_depth, {}, Sampling(), SeededChance(0))


def drafted(proposer: NgramProposer, tokens: list[int], max_depth: int = 100) -> list[int]:
    """The tokens proposed."""
    return proposer.propose(context(tokens, max_depth)).tree.tokens.tolist()


def plain_lookup(tokens: list[int], longest: int, shortest: int, count: int) -> list[int]:
    """The same guess by searching the whole text."""
    for length in range(min(longest, len(tokens)), shortest - 1, -1):
        suffix = tokens[-length:]
        for end in range(len(tokens) - 1, length - 1, -1):
            if tokens[end - length : end] == suffix:
                grown = list(tokens)
                for step in range(count):
                    grown.append(grown[end + step])
                return grown[len(tokens) :]
    return []


def test_no_proposer_drafts_nothing() -> None:
    """Plain decoding is the empty tree."""
    assert NoProposer().propose(context([1, 2, 1])).tree.num_draft_tokens == 0


def test_what_followed_before_is_proposed_again() -> None:
    """After 1 2 came 3 9; 1 2 stands at the end again."""
    assert drafted(NgramProposer(num_draft_tokens=2), [1, 2, 3, 9, 1, 2]) == [3, 9]


def test_a_longer_match_is_trusted_before_a_later_one() -> None:
    """Three matching tokens far back beat two matching ones nearby."""
    tokens = [7, 1, 2, 5, 5, 3, 1, 2, 6, 7, 1, 2]
    assert drafted(NgramProposer(num_draft_tokens=1), tokens) == [5]


def test_a_repetition_goes_on_past_the_end() -> None:
    """A loop of two tokens is drafted to the depth asked for."""
    assert drafted(NgramProposer(num_draft_tokens=5), [4, 1, 2, 1, 2]) == [1, 2, 1, 2, 1]


def test_nothing_known_is_nothing_proposed() -> None:
    """Without an earlier occurrence there is no draft."""
    assert drafted(NgramProposer(), [1, 2, 3, 4]) == []
    assert drafted(NgramProposer(), [1]) == []


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(0, 6), st.integers(1, 3), st.data())
def test_index_agrees_with_searching_the_text(
    tokens: list[int], max_depth: int, shortest: int, data: st.DataObject
) -> None:
    """However the text grows between steps, the guess is the one a full search makes."""
    proposer = NgramProposer(num_draft_tokens=4, longest=3, shortest=shortest)
    length = 1
    while length < len(tokens):
        found = drafted(proposer, tokens[:length], max_depth)
        assert found == plain_lookup(tokens[:length], 3, shortest, min(4, max_depth))
        length += data.draw(st.integers(1, 5))


@pytest.mark.parametrize("lengths", [(0, 4, 2), (8, 1, 2), (8, 4, 0)])
def test_lengths_that_describe_no_suffix_are_refused(lengths: tuple[int, int, int]) -> None:
    """At least one token to draft, and a suffix of at least one."""
    with pytest.raises(UsageError):
        NgramProposer(*lengths)
