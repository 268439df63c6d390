"""cache.kv: rows are positions, a tail is kept by a path, and old rows leave with the window."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from draftproof.cache.kv import SMALLEST_ROOM, KvStore
from draftproof.cache.shapes import KvShape

pytestmark = pytest.mark.engine

LAYERS, HEADS, DIM = 2, 3, 4


def store(window: int | None = None, room: int = 0) -> KvStore:
    """A small store in 64-bit floats."""
    shape = KvShape(LAYERS, HEADS, DIM, window)
    return KvStore(shape, dtype=torch.float64, device=torch.device("cpu"), room=room)


def rows(marks: list[float]) -> Tensor:
    """[N, H, D] rows that carry their mark."""
    return torch.tensor(marks, dtype=torch.float64)[:, None, None].expand(-1, HEADS, DIM)


def put(kv: KvStore, marks: list[float]) -> list[list[float]]:
    """Write the marked rows in every layer; the marks each layer then sees, values checked along."""
    kv.begin(len(marks))
    seen = []
    for layer in range(LAYERS):
        keys, values = kv.write(layer, rows(marks) + 100 * layer, -rows(marks) - 100 * layer)
        assert torch.equal(keys, -values)
        assert torch.equal(keys, keys[:, :1, :, :1].expand(1, HEADS, -1, DIM))
        seen.append((keys[0, 0, :, 0] - 100 * layer).tolist())
    assert seen[0] == seen[1]
    return seen


def test_the_path_is_gathered_and_the_rest_forgotten() -> None:
    """After committing nodes 0, 2, 5 of six the next forward sees exactly those."""
    kv = store()
    put(kv, [10, 11, 12, 13, 14, 15])
    kv.commit([0, 2, 5])
    assert kv.length == 3
    assert put(kv, [20])[0] == [10, 12, 15, 20]
    kv.rollback()
    assert put(kv, [30, 31])[0] == [10, 12, 15, 30, 31]


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    st.sampled_from([None, 1, 2, 5, 40]),
    st.lists(st.tuples(st.integers(1, 30), st.randoms(use_true_random=False)), min_size=1, max_size=25),
)
def test_any_sequence_of_commits_sees_what_a_list_would(
    window: int | None,
    steps: list[tuple[int, "object"]],
) -> None:
    """Growth, gathering and compaction never lose, repeat or reorder a visible row."""
    kv, plain, mark = store(window), list[float](), 0.0
    for count, chance in steps:
        marks = [mark + i for i in range(count)]
        mark += count
        visible = plain if window is None else plain[max(0, len(plain) - window + 1) :]
        assert put(kv, marks)[0] == visible + marks
        size = chance.randint(1, count)  # type: ignore[attr-defined] # hypothesis types it as Random
        path = sorted(chance.sample(range(count), size))  # type: ignore[attr-defined] # the same
        kv.commit(path)
        plain += [marks[i] for i in path]
        assert kv.length == len(plain)


def test_a_token_copies_a_constant_number_of_rows_on_average() -> None:
    """Ten thousand single commits move the block a logarithmic number of times."""
    kv, blocks = store(), set[int]()
    for i in range(10_000):
        kv.begin(1)
        keys, _ = kv.write(0, rows([i]), rows([i]))
        blocks.add(keys.data_ptr())
        kv.commit([0])
    assert len(blocks) <= 9  # 64 doubled to 16384
    assert kv.length == 10_000


def test_a_window_bounds_the_memory() -> None:
    """Ten thousand tokens through a window of 50 take no more room than a few windows."""
    kv = store(window=50)
    for i in range(10_000):
        kv.begin(1)
        kv.write(0, rows([i]), rows([i]))
        kv.commit([0])
    assert kv.length == 10_000
    assert kv.size_bytes <= 2 * LAYERS * HEADS * DIM * 8 * 4 * 50
    assert kv.count < kv.length


def test_a_snapshot_stands_still() -> None:
    """What is committed later does not reach a snapshot, and restoring brings back its rows alone."""
    kv = store()
    put(kv, [1, 2, 3])
    kv.commit([0, 1, 2])
    kept = kv.snapshot()
    put(kv, [4] * 100)
    kv.commit(range(100))
    kv.restore(kept)
    assert kv.length == 3
    assert put(kv, [9])[0] == [1, 2, 3, 9]


def test_a_large_snapshot_fits_a_small_store() -> None:
    """Restoring grows the store it is restored into."""
    big, small = store(), store()
    marks = [float(i) for i in range(3 * SMALLEST_ROOM)]
    put(big, marks)
    big.commit(range(len(marks)))
    small.restore(big.snapshot())
    assert put(small, [-1])[0] == [*marks, -1]
