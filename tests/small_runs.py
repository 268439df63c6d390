"""Tiny recipes over tiny targets that speak a language of 128 words."""

import json
import random
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers

from draftproof.engine.proof.tiny import write_tiny_target
from tiny_mtp import write_tiny_mtp

__all__ = ["write_recipe", "write_speaking_target"]

_SIZES = """
intermediate_size = 96
num_attention_heads = 4
num_key_value_heads = 2
head_dim = 16
"""

_DRAFTERS = {
    "dflash": f"""
[drafter]
layer_types = ["sliding_attention", "full_attention"]
sliding_window = 12
block_size = 6
mask_token_id = 127
target_layer_ids = [0, 1]
{_SIZES}
[loss]
anchors = 10
""",
    "eagle3": f"""
[drafter]
target_layer_ids = [0, 1, 2]
draft_vocab_size = 128
{_SIZES}
[loss]
depth = 3
""",
    "mtp": """
[loss]
depth = 3
""",
}


def write_speaking_target(folder: Path, what: str) -> Path:
    """A tiny target with a tokenizer, with a head where that is what is trained, and prompts beside it."""
    target = folder / "target"
    if what == "mtp":
        write_tiny_mtp(target, "hybrid")
    else:
        write_tiny_target(target, "dense")
    spelt = {f"w{i}": i for i in range(127)} | {"<|mask|>": 127}
    words = Tokenizer(models.WordLevel(spelt, unk_token="w1"))  # noqa: S106 - a word
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save(str(target / "tokenizer.json"))
    chance = random.Random(3)  # noqa: S311 - prompts
    prompts = [" ".join(f"w{chance.randrange(1, 120)}" for _ in range(6)) for _ in range(24)]
    lines = [json.dumps({"prompt": prompt, "chat": False}) + "\n" for prompt in prompts]
    (folder / "prompts.jsonl").write_text("".join(lines))
    return target


def write_recipe(folder: Path, what: str, *, steps: int, more: str = "", training: str = "") -> Path:
    """A recipe for the target in ``folder``."""
    path = folder / f"{what}.toml"
    path.write_text(
        f"""
target = "target"
seed = 5
{more}
[responses]
count = 24
prompts = "prompts.jsonl"
max_new_tokens = 40
[training]
steps = {steps}
learning_rate = 0.004
batch = 6
report_every = 5
save_every = 20
{training}
{_DRAFTERS[what]}
"""
    )
    return path
