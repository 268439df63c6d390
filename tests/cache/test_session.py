"""cache.session: everything one sequence remembers moves together, or says that it did not."""

import pytest
import torch
from torch import Tensor

from draftproof.cache.fault import SessionFault
from draftproof.cache.recurrent import Deferred
from draftproof.cache.session import Session
from draftproof.cache.shapes import KvShape, RecurrentShape, SessionShape

pytestmark = pytest.mark.engine

RECURRENT = RecurrentShape(
    num_layers=2, num_key_heads=2, values_per_key=3, key_dim=4, value_dim=5, conv_channels=7, conv_taps=4
)
SHAPE = SessionShape(
    kv=(KvShape(1, 2, 4, None), KvShape(2, 2, 4, 6)),
    recurrent=RECURRENT,
    max_length=1000,
    dtype=torch.float64,
    device=torch.device("cpu"),
)


def noise(*shape: int, seed: int) -> Tensor:
    """Seeded noise in 64-bit floats."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def run(session: Session, parents: list[int], seed: int) -> None:
    """What a forward does to a session, with noise for a model."""
    n = len(parents)
    session.begin(parents)
    for store in session.kv:
        for layer in range(store.shape.num_layers):
            store.write(layer, noise(n, 2, 4, seed=seed), noise(n, 2, 4, seed=seed + 1))
    assert session.recurrent is not None
    for layer in range(2):
        window = torch.cat((session.recurrent.tail(layer), noise(n, 7, seed=seed + layer)))
        decays = -noise(2, 3, n, seed=seed + 5).abs()
        deferred = Deferred(noise(2, n, 4, seed=seed + 3), noise(2, 3, n, 5, seed=seed + 4), decays)
        session.recurrent.defer(window, deferred)


def memory(session: Session) -> list[Tensor]:
    """Everything that is committed."""
    kept = session.snapshot()
    assert kept.recurrent is not None
    return [*(kv.rows for kv in kept.kv), kept.recurrent.states, kept.recurrent.tails]


def same(first: Session, second: Session) -> bool:
    """Whether two sessions remember the same, bit for bit."""
    return all(torch.equal(a, b) for a, b in zip(memory(first), memory(second), strict=True))


def test_lengths_agree_after_every_step() -> None:
    """``check`` holds before, during and after a forward, a commit and a rollback."""
    session = Session(SHAPE)
    for step, path in enumerate(([0], [0, 1, 3], [0, 2], None, [0, 2, 4, 5])):
        session.check()
        run(session, [-1, 0, 0, 1, 2, 4], seed=step)
        session.check()
        assert session.num_pending == 6
        if path is None:
            session.rollback()
        else:
            session.commit(path)
        session.check()
    assert session.length == 10
    assert session.room == 990


def test_check_names_the_part_that_does_not_agree() -> None:
    """A store that lost a row, a recurrent part that lags, a state that is no number: each is named."""
    for spoil, named in (
        (lambda s: setattr(s.kv[1], "count", s.kv[1].count - 1), "kv store 1"),
        (lambda s: setattr(s.recurrent, "length", 0), "recurrent"),
        (lambda s: s.recurrent.states.fill_(float("nan")), "recurrent"),
        (lambda s: setattr(s.kv[0], "pending", 1), "kv store 0"),
        (lambda s: s.recurrent.begin(3), "recurrent"),
    ):
        session = Session(SHAPE)
        run(session, [-1, 0], seed=1)
        session.commit([0, 1])
        session.check()
        spoil(session)
        with pytest.raises(SessionFault) as caught:
            session.check()
        assert caught.value.subject == named


@pytest.mark.parametrize("path", [[], [1], [0, 2], [0, 0], [0, 1, 2], [0, 5], [-1], [0, 1, 1]])
def test_what_is_no_path_is_not_committed(path: list[int]) -> None:
    """A path starts at the root and follows parents; anything else is refused and stays pending."""
    session = Session(SHAPE)
    run(session, [-1, 0, 1, 1], seed=1)
    if path == [0, 1, 2]:
        session.commit(path)
        return
    with pytest.raises(SessionFault, match="path"):
        session.commit(path)
    assert session.num_pending == 4
    session.check()


def test_calls_out_of_turn_are_refused() -> None:
    """Commit, rollback and snapshot each have their moment."""
    session = Session(SHAPE)
    with pytest.raises(SessionFault):
        session.commit([0])
    with pytest.raises(SessionFault):
        session.rollback()
    run(session, [-1], seed=1)
    with pytest.raises(SessionFault):
        session.snapshot()
    with pytest.raises(SessionFault):
        session.begin([-1])


def test_a_snapshot_restores_what_it_was_taken_of() -> None:
    """Whatever was committed or pending since, restoring brings back every part."""
    session, twin = Session(SHAPE), Session(SHAPE)
    for s in (session, twin):
        run(s, [-1, 0, 1], seed=1)
        s.commit([0, 1, 2])
    kept = session.snapshot()
    for step in range(40):
        run(session, [-1, 0], seed=step)
        session.commit([0, 1])
    run(session, [-1], seed=9)
    assert session.length == 83
    session.restore(kept)
    session.check()
    assert session.length == 3
    assert same(session, twin)


def test_a_fork_has_its_own_future() -> None:
    """Two forks of one past diverge without touching each other."""
    session = Session(SHAPE)
    run(session, [-1, 0, 1], seed=1)
    session.commit([0, 1, 2])
    fork = session.fork()
    fork.check()
    assert same(session, fork)
    before = memory(session)
    run(fork, [-1, 0], seed=7)
    fork.commit([0, 1])
    assert all(torch.equal(a, b) for a, b in zip(before, memory(session), strict=True))
    assert not same(session, fork)


def test_a_prefill_that_broke_off_must_be_restored() -> None:
    """A session whose state moved half-way refuses to go on until a snapshot is restored."""
    session = Session(SHAPE)
    kept = session.snapshot()
    session.begin([-1, 0], advance=True)
    session.abandon()
    for call in (session.rollback, lambda: session.begin([-1])):
        with pytest.raises(SessionFault):
            call()
    session.restore(kept)
    session.check()
    run(session, [-1], seed=1)
    session.commit([0])


def test_a_snapshot_of_another_shape_is_refused() -> None:
    """A session with other parts cannot take it."""
    other = SessionShape(SHAPE.kv, None, 1000, torch.float64, torch.device("cpu"))
    with pytest.raises(SessionFault):
        Session(other).restore(Session(SHAPE).snapshot())


def test_size_is_what_is_held() -> None:
    """The bytes of keys, values, states and tails, room included."""
    session = Session(SHAPE)
    parts = sum(store.size_bytes for store in session.kv)
    assert session.recurrent is not None
    assert session.size_bytes == parts + session.recurrent.size_bytes
    assert session.recurrent.size_bytes == 8 * 2 * (2 * 4 * 15 + 3 * 7)
