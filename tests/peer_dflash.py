"""Run by an interpreter with PyPI ``dflash``: writes checkpoints, and what dflash makes of them.

Usage: python peer_dflash.py FOLDER; FOLDER/ask.json says what. Nothing of draftproof is imported here.
Per case: FOLDER/<case>/{target,drafter} as saved by the peer itself, rows.safetensors (what the drafter was
fed and gave back, one pass after another on one cache) and runs.json (whole greedy runs).
"""

import json
import math
import sys
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import Qwen3Config, Qwen3ForCausalLM

peer: Any = import_module("dflash.model")  # in the peer's environment alone


def seeded(model: Any, seed: int) -> Any:
    """Noise of a size that keeps activations near 1, in place of the library's small initial values."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("norm.weight"):
                parameter.copy_(1 + 0.1 * noise)
            elif name.endswith("bias"):
                parameter.copy_(0.1 * noise)
            elif "embed" in name:
                parameter.copy_(noise)
            else:
                parameter.copy_(noise / math.sqrt(parameter.shape[-1]))
    return model.float().eval()


def passes(drafter: Any, target: Any, sizes: list[int], seed: int) -> dict[str, torch.Tensor]:
    """The drafter's output for context rows that come in portions, its cache cropped after every block."""
    generator = torch.Generator().manual_seed(seed)
    cache, start = peer._make_cache(drafter.config), 0
    out: dict[str, torch.Tensor] = {}
    width = len(drafter.target_layer_ids) * drafter.config.hidden_size
    scale = float(peer._draft_value(drafter.config, "input_embedding_scale", 1.0))
    for number, rows in enumerate(sizes):
        context = torch.randn(1, rows, width, generator=generator)
        tokens = torch.full((1, drafter.block_size), drafter.mask_token_id)
        tokens[0, 0] = 7 + number
        positions = torch.arange(start, start + rows + drafter.block_size)[None]
        start += rows
        with torch.inference_mode():
            hidden = drafter(
                target_hidden=context,
                noise_embedding=peer._raw_input_embeddings(target, tokens, scale),
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
            )
            logits = drafter.compute_logits(hidden, target.lm_head)
        peer._crop_to(cache, start)
        out |= {f"context.{number}": context[0], f"tokens.{number}": tokens[0]}
        out |= {f"hidden.{number}": hidden[0], f"logits.{number}": logits[0]}
    return {name: tensor.contiguous().clone() for name, tensor in out.items()}


def runs(drafter: Any, target: Any, prompts: list[list[int]], count: int) -> list[dict[str, Any]]:
    """Greedy texts with their acceptance lengths."""
    found = []
    for prompt in prompts:
        stats = peer.dflash_generate(
            drafter, target, torch.tensor([prompt]), count, None, temperature=0.0, return_stats=True
        )
        found.append(
            {
                "prompt": prompt,
                "tokens": stats.output_ids[0, len(prompt) :].tolist(),
                "lengths": [int(length) for length in stats.acceptance_lengths],
            }
        )
    return found


def main(folder: Path) -> None:
    """Every case that is asked for."""
    peer._cuda_time = time.perf_counter
    for case in json.loads((folder / "ask.json").read_text()):
        here = folder / case["name"]
        target = seeded(Qwen3ForCausalLM(Qwen3Config(**case["target"])), 1)
        drafter = seeded(peer.DFlashDraftModel(Qwen3Config(**case["drafter"])), 2)
        target.save_pretrained(here / "target")
        drafter.save_pretrained(here / "drafter")
        save_file(passes(drafter, target, case["portions"], 3), here / "rows.safetensors")
        found = runs(drafter, target, case["prompts"], case["max_new_tokens"])
        (here / "runs.json").write_text(json.dumps(found))
    sys.stdout.write(f"dflash {version('dflash')}, torch {torch.__version__}\n")


main(Path(sys.argv[1]))
