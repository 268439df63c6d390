"""models.decoder: batches, captures, what is refused, and what memory a forward keeps."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from draftproof.cache.fault import SessionFault
from draftproof.errors import RefusedInput, UsageError
from draftproof.models.forward import Block
from draftproof.models.target.load import load_decoder
from draftproof.names import HiddenIndex
from draftproof.speculation.tree import DraftTree

pytestmark = pytest.mark.engine

FORK = DraftTree([5, 6, 7, 5], [-1, 0, 0, 1, 3])
KINDS = ("qwen3-sliding", "llama", "hybrid")


def apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest absolute difference over the largest absolute entry expected."""
    return float((found - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_its_sequences_alone(write_target: Callable[..., Path], kind: str) -> None:
    """Sequences of different lengths, chains and trees in one forward, give what each gives alone."""
    model = load_decoder(write_target(kind), dtype=torch.float64)
    prompts = [[1, 2, 3], [9] * 21, [4, 4, 8, 90, 11, 3, 2]]
    blocks = [([7, 8], None), ([3, *FORK.tokens.tolist()], FORK), ([6], None)]
    capture = [HiddenIndex(0), HiddenIndex(2), HiddenIndex(model.num_layers)]
    alone, together = [], []
    for prompt, (tokens, tree) in zip(prompts, blocks, strict=True):
        sessions = [model.new_session() for _ in range(2)]
        for session in sessions:
            model.prefill(session, prompt)
        alone.append(model.forward(sessions[0], tokens, tree, capture=capture, with_normed=True))
        together.append(Block(sessions[1], tokens, tree))
    found = model.forward_batch(together, capture=capture, with_normed=True)
    for one, block, of_batch in zip(alone, together, found, strict=True):
        assert apart(of_batch.logits, one.logits) < 1e-12
        assert of_batch.normed is not None
        assert one.normed is not None
        assert apart(of_batch.normed, one.normed) < 1e-12
        assert max(apart(of_batch.hidden[j], one.hidden[j]) for j in capture) < 1e-12
        block.session.check()
        block.session.commit([0])
        block.session.check()


def test_a_batch_can_prefill(write_target: Callable[..., Path]) -> None:
    """With ``advance`` every sequence of a batch is committed to its own end."""
    model = load_decoder(write_target("hybrid"), dtype=torch.float64)
    prompts = [[1, 2, 3], [5] * 70]
    blocks = [Block(model.new_session(), prompt) for prompt in prompts]
    found = model.forward_batch(blocks, num_logits=1, advance=True)
    for prompt, block, of_batch in zip(prompts, blocks, found, strict=True):
        block.session.check()
        assert block.session.length == len(prompt)
        alone = model.prefill(model.new_session(), prompt)
        assert apart(of_batch.logits, alone.logits) < 1e-12


def test_only_the_logits_asked_for_are_made(write_target: Callable[..., Path]) -> None:
    """None asks for all nodes, a number for the last so many, 0 for none."""
    model = load_decoder(write_target("qwen3"))
    session = model.new_session()
    every = model.forward(session, [1, 2, 3, 4]).logits
    session.rollback()
    assert every.shape == (4, 97)
    assert every.dtype == torch.float32
    last = model.forward(session, [1, 2, 3, 4], num_logits=2).logits
    session.rollback()
    assert apart(last, every[2:]) < 1e-6, "the same numbers, whatever number of rows the library multiplied"
    assert model.forward(session, [1, 2, 3, 4], num_logits=0).logits.shape == (0, 97)


@pytest.mark.parametrize("token", [-1, 97, 2**40])
def test_a_token_outside_the_vocabulary_is_named(write_target: Callable[..., Path], token: int) -> None:
    """The id is refused before anything is computed, and the session stays usable."""
    model = load_decoder(write_target("qwen3"))
    session = model.new_session()
    for call in (model.forward, model.prefill):
        with pytest.raises(RefusedInput, match=str(token)):
            call(session, [1, token])
    session.check()
    model.forward(session, [1])


def test_a_prompt_beyond_the_context_is_refused(write_target: Callable[..., Path]) -> None:
    """One token more than there are positions is refused; exactly as many are read."""
    model = load_decoder(write_target("hybrid", max_position_embeddings=16))
    session = model.new_session()
    with pytest.raises(RefusedInput, match="16 at most"):
        model.prefill(session, [1] * 17)
    assert session.length == 0
    model.prefill(session, [1] * 12)
    assert session.room == 4
    # Four more positions: a tree of five nodes and depth 3 fits, a chain of five does not.
    model.verify(session, 1, FORK)
    session.rollback()
    with pytest.raises(RefusedInput, match="4 at most"):
        model.forward(session, [1] * 5)
    session.check()


def test_nothing_to_run_and_nodes_that_do_not_fit_are_refused(write_target: Callable[..., Path]) -> None:
    """No token, a token too few for the tree, a hidden state that does not exist, a tree to advance."""
    model = load_decoder(write_target("qwen3"))
    session = model.new_session()
    with pytest.raises(RefusedInput, match="one at least"):
        model.forward(session, [])
    with pytest.raises(RefusedInput, match="expected 5"):
        model.forward(session, [1, 2], FORK)
    for index in (-1, 4):
        with pytest.raises(UsageError, match="hidden state"):
            model.forward(session, [1], capture=[HiddenIndex(index)])
    with pytest.raises(UsageError, match="a chain"):
        model.forward_batch([Block(session, [1, 5, 6, 7, 5], FORK)], advance=True)
    session.check()


def test_a_pending_forward_is_not_lost(write_target: Callable[..., Path]) -> None:
    """A second forward before the commit is refused and leaves the first one pending."""
    model = load_decoder(write_target("hybrid"))
    session = model.new_session()
    model.verify(session, 3, FORK)
    with pytest.raises(SessionFault, match="commit or rollback"):
        model.forward(session, [1])
    session.check()
    session.commit(FORK.path(4))
    session.check()
    assert session.length == 4


def test_one_session_cannot_stand_in_a_batch_twice(write_target: Callable[..., Path]) -> None:
    """Two blocks of one session are refused, and nothing stays pending."""
    model = load_decoder(write_target("hybrid"))
    session = model.new_session()
    with pytest.raises(SessionFault):
        model.forward_batch([Block(session, [1]), Block(session, [2])])
    session.check()
    assert session.num_pending == 0


def test_no_state_is_kept_per_node(write_target: Callable[..., Path]) -> None:
    """What 64 nodes put aside grows by keys, updates, decays and inputs, not by a state for each."""
    model = load_decoder(write_target("hybrid"))
    session = model.new_session()
    model.prefill(session, [1, 2, 3])
    store = session.recurrent
    assert store is not None
    pending = []
    for count in (1, 2, 65):
        model.forward(session, list(range(count)))
        pending.append(store.pending_bytes)
        session.rollback()
    s = store.shape
    node = s.num_key_heads * (s.key_dim + s.values_per_key * (s.value_dim + 1)) + s.conv_channels
    assert pending[1] - pending[0] == 4 * s.num_layers * node
    assert pending[2] - pending[1] == 63 * (pending[1] - pending[0])
    assert store.pending_bytes == 0
