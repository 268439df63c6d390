"""Clean header sets of each architecture, beside the real config that describes them."""

from pathlib import Path

from checkpoint.build import write_sparse
from checkpoint.models import (
    QWEN36_27B,
    Decoder,
    Shapes,
    dflash,
    dflash2_extra,
    eagle3,
    hybrid_target,
    mtp_head,
)
from draftproof.checkpoint.ledger import Checkpoint, read_checkpoint
from draftproof.config.drafter import DrafterConfig
from draftproof.config.parse import parse_config
from draftproof.config.raw import parse_raw
from draftproof.config.target import TargetConfig

__all__ = ["CLEAN", "CONFIGS", "EAGLE3_LLAMA", "SIZE_8B", "checkpoint_of", "config_of"]

CONFIGS = Path(__file__).parents[1] / "configs"
EAGLE3_LLAMA = (Decoder(4096, 14336, 32, 8, 128), 4096, 128256, 32000)
SIZE_27B = Decoder(5120, 17408, 32, 8, 128)
SIZE_8B = Decoder(4096, 12288, 32, 8, 128)

CLEAN: dict[str, tuple[str, Shapes]] = {
    "dflash 27B": ("zlab-qwen3.6-27b-dflash.json", dflash(5, SIZE_27B, 5, 5120)),
    "dflash 8B": ("zlab-qwen3-8b-dflash-b16.json", dflash(5, SIZE_8B, 5, 4096)),
    "dflash gpt-oss": (
        "zlab-gpt-oss-20b-dflash.json",
        dflash(8, Decoder(2880, 7680, 64, 8, 64), 5, 2880, bias=True),
    ),
    "dflash 2": (
        "zlab-qwen3.8-27b-dflash2.json",
        dflash(5, SIZE_27B, 5, 5120) | dflash2_extra(5, 5120, 248320, kernel=2, group=16, rank=256),
    ),
    "eagle3 official": ("specforge-llama3-8b-eagle3.json", eagle3(*EAGLE3_LLAMA, layer="midlayer.")),
    "eagle3 as speculators": ("specforge-llama3-8b-eagle3.json", eagle3(*EAGLE3_LLAMA, layer="layers.0.")),
    "hybrid target": (
        "qwen3.6-27b-target.json",
        {n: s for _, piece in hybrid_target(QWEN36_27B) for n, s in piece.items()} | mtp_head(QWEN36_27B),
    ),
}


def config_of(name: str, *changes: tuple[str, str]) -> DrafterConfig | TargetConfig:
    """A real config, with text replaced in it."""
    text = (CONFIGS / name).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    config = parse_config(parse_raw(text.encode(), name)).config
    assert isinstance(config, DrafterConfig | TargetConfig)
    return config


def checkpoint_of(root: Path, shapes: Shapes, dtype: str = "BF16") -> Checkpoint:
    """A checkpoint of true headers without data."""
    dtypes = {"d2t": "I64", "t2d": "BOOL"}
    write_sparse(root / "model.safetensors", [(n, dtypes.get(n, dtype), s) for n, s in shapes.items()])
    found = read_checkpoint(root)
    assert isinstance(found, Checkpoint)
    assert found.defects == ()
    return found
