"""Directories of true size, true headers and no data on disk: a 27B target in twelve shards, its drafter."""

import json
import shutil
from pathlib import Path

from checkpoint.build import write_sparse
from checkpoint.models import QWEN36_27B, Decoder, dflash, hybrid_target, mtp_head

__all__ = ["NUM_SHARDS", "write_27b_drafter", "write_27b_target"]

NUM_SHARDS = 12
CONFIGS = Path(__file__).parents[1] / "configs"


def write_27b_target(root: Path) -> int:
    """Write the target with its index and config; the bytes its tensors own, about 54 GB."""
    pieces = [shapes for _, shapes in hybrid_target(QWEN36_27B)] + [mtp_head(QWEN36_27B)]
    per_shard = -(-len(pieces) // NUM_SHARDS)
    root.mkdir(parents=True, exist_ok=True)
    weight_map: dict[str, str] = {}
    total = 0
    for number in range(NUM_SHARDS):
        name = f"model-{number + 1:05d}-of-{NUM_SHARDS:05d}.safetensors"
        own = pieces[number * per_shard : (number + 1) * per_shard]
        tensors = [(n, "BF16", shape) for piece in own for n, shape in piece.items()]
        total += write_sparse(root / name, tensors)
        weight_map |= {n: name for n, _, _ in tensors}
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (root / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    shutil.copyfile(CONFIGS / "qwen3.6-27b-target.json", root / "config.json")
    return total


def write_27b_drafter(root: Path) -> int:
    """Write its DFlash drafter; the bytes its tensors own (about 3.5 GB)."""
    root.mkdir(parents=True, exist_ok=True)
    shapes = dflash(5, Decoder(5120, 17408, 32, 8, 128), 5, 5120)
    shutil.copyfile(CONFIGS / "zlab-qwen3.6-27b-dflash.json", root / "config.json")
    return write_sparse(root / "model.safetensors", [(n, "BF16", s) for n, s in shapes.items()])
