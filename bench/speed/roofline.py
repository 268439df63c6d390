"""The most tokens a second that reading the weights once for each token allows."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

__all__ = ["bandwidth", "weight_bytes"]

_SIZE = 128 << 20
"""Numbers of 32 bits that are read: 512 MiB, many times the largest cache."""


def bandwidth(threads: int, runs: int = 5) -> dict[str, Any]:
    """Bytes a second that this machine reads from memory, by wall and by CPU time, the best of three ways."""
    torch.set_num_threads(threads)
    numbers = torch.ones(_SIZE)
    matrix, vector = numbers.view(-1, 8192), torch.ones(8192)
    ways: dict[str, Callable[[], object]] = {
        "sum": numbers.sum,
        "matrix times vector": lambda: matrix @ vector,
        "dot": lambda: numbers @ numbers,
    }
    best = {way: min(_spent(call) for _ in range(runs)) for way, call in ways.items()}
    way = min(best, key=lambda name: best[name])
    return {"threads": threads, "bytes_per_s": 4 * _SIZE / best[way], "way": way}


def _spent(call: Callable[[], object]) -> float:
    """Seconds on the wall: waiting for memory counts as CPU time too, being put aside does not."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return min(wall, cpu) if torch.get_num_threads() == 1 else wall


def weight_bytes(path: Path, dtype: str) -> int:
    """Bytes of all weights of a checkpoint in a data type; with tied embeddings a token reads each once."""
    numbers = 0
    with safe_open(path / "model.safetensors", "pt") as file:
        for name in file.keys():  # noqa: SIM118 - not a mapping
            size = 1
            for length in file.get_slice(name).get_shape():
                size *= length
            numbers += size
    return numbers * getattr(torch, dtype).itemsize
