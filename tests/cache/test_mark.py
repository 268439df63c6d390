"""cache.session marks: having gone back is never having gone on."""

import pytest
import torch
from torch import Tensor

from draftproof.cache.fault import SessionFault
from draftproof.cache.recurrent import Deferred
from draftproof.cache.session import Session
from draftproof.cache.shapes import KvShape, RecurrentShape, SessionShape

pytestmark = pytest.mark.engine

RECURRENT = RecurrentShape(
    num_layers=1, num_key_heads=2, values_per_key=1, key_dim=3, value_dim=4, conv_channels=5, conv_taps=3
)
SHAPE = SessionShape(
    kv=(KvShape(1, 2, 4, None), KvShape(1, 2, 4, 6)),
    recurrent=RECURRENT,
    max_length=1000,
    dtype=torch.float64,
    device=torch.device("cpu"),
)


def noise(*shape: int, seed: int) -> Tensor:
    """Seeded noise in 64-bit floats."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def add(session: Session, count: int, seed: int) -> None:
    """Commit a chain of so many tokens, with noise for a model."""
    session.begin(range(-1, count - 1))
    for store in session.kv:
        store.write(0, noise(count, 2, 4, seed=seed), noise(count, 2, 4, seed=seed + 1))
    assert session.recurrent is not None
    window = torch.cat((session.recurrent.tail(0), noise(count, 5, seed=seed)))
    decays = -noise(2, 1, count, seed=seed + 2).abs()
    session.recurrent.defer(
        window, Deferred(noise(2, count, 3, seed=seed), noise(2, 1, count, 4, seed=seed), decays)
    )
    session.commit(range(count))


def memory(session: Session) -> list[Tensor]:
    """Everything that is committed."""
    kept = session.snapshot()
    assert kept.recurrent is not None
    return [*(kv.rows for kv in kept.kv), kept.recurrent.states, kept.recurrent.tails]


@pytest.mark.parametrize("ahead", [1, 5, 150])
def test_tokens_tried_and_taken_back_leave_nothing(ahead: int) -> None:
    """Whatever was committed after the mark, past a reallocation too, the session goes on like its twin."""
    tried, twin = Session(SHAPE), Session(SHAPE)
    for session in (tried, twin):
        add(session, 40, seed=1)
    mark = tried.mark()
    for turn in range(3):
        for _ in range(3):
            add(tried, ahead, seed=7 + turn)
        tried.rewind(mark)
        tried.check()
    for session in (tried, twin):
        add(session, 3, seed=5)
    assert all(torch.equal(a, b) for a, b in zip(memory(tried), memory(twin), strict=True))


def test_a_later_of_two_marks_keeps_what_lies_before_it() -> None:
    """Going back to the second mark keeps the tokens between the two."""
    tried, twin = Session(SHAPE), Session(SHAPE)
    for session in (tried, twin):
        add(session, 9, seed=1)
    tried.mark()
    for session in (tried, twin):
        add(session, 2, seed=3)
    mark = tried.mark()
    add(tried, 4, seed=4)
    tried.rewind(mark)
    assert tried.length == 11
    assert all(torch.equal(a, b) for a, b in zip(memory(tried), memory(twin), strict=True))


def test_marks_and_rewinds_out_of_turn_are_faults() -> None:
    """Nothing may be pending, and a mark ahead of the session is no place to go back to."""
    session = Session(SHAPE)
    add(session, 4, seed=1)
    empty = Session(SHAPE).mark()
    ahead = session.mark()
    session.rewind(empty)
    with pytest.raises(SessionFault):
        session.rewind(ahead)
    session.begin([-1])
    with pytest.raises(SessionFault):
        session.mark()
    with pytest.raises(SessionFault):
        session.rewind(empty)
