"""Runs in an environment of its own: PyPI ``speculators`` writes EAGLE-3 drafters and computes with them.

Usage: python peer_eagle3.py FOLDER, where ``ask.json`` lists the drafters. For each it leaves a checkpoint as
the library writes it and ``rows.safetensors``: the pairs given, and the logits of every step.
"""

import json
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

for _name in ("torchvision", "torchaudio", "torchcodec"):
    # Optional parts of transformers whose wheels do not fit this torch; nothing here needs them.
    sys.modules[_name] = None  # type: ignore[assignment]

peer: Any = import_module("speculators.models.eagle3")  # in the peer's environment alone
transformers: Any = import_module("transformers")

NUM_PAIRS, NUM_STEPS = 17, 3


def drafter(said: dict[str, Any]) -> Any:
    """A drafter of the library's own making with seeded weights."""
    layer = transformers.AutoConfig.for_model(**said["layer"])
    layer._attn_implementation = "eager"
    model = peer.Eagle3DraftModel(
        peer.Eagle3SpeculatorConfig(transformer_layer_config=layer, **said["outer"])
    )
    generator = torch.Generator().manual_seed(said["seed"])
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.copy_(1 + 0.1 * noise if "norm" in name else noise / weight.shape[-1] ** 0.5)
    if model.use_draft_vocab:
        rows, size = model.draft_vocab_size, model.verifier_vocab_size
        ids = torch.randperm(size, generator=generator)[:rows].sort().values
        model.d2t.copy_(ids - torch.arange(rows))
        model.t2d.zero_().index_fill_(0, ids, value=True)
    return model.eval()


def answer(said: dict[str, Any], folder: Path) -> None:
    """One drafter's checkpoint and rows."""
    model = drafter(said)
    model.save_pretrained(folder)
    generator = torch.Generator().manual_seed(said["seed"] + 1)
    states = torch.randn(1, NUM_PAIRS, 3 * model.hidden_size, generator=generator)
    tokens = torch.randint(model.verifier_vocab_size, (1, NUM_PAIRS), generator=generator)
    logits: list[torch.Tensor] = []
    model.lm_head.register_forward_hook(lambda _module, _inputs, output: logits.append(output[0].clone()))
    with torch.no_grad():
        model(states, tokens, torch.zeros_like(tokens), ttt_steps=NUM_STEPS)
    save_file(
        {"states": states[0], "tokens": tokens[0], "logits": torch.stack(logits)},
        folder.with_suffix(".safetensors"),
    )


def main(folder: Path) -> None:
    """Answer everything asked."""
    versions = (f"{name} {version(name)}" for name in ("speculators", "torch", "transformers"))
    sys.stdout.write(", ".join(versions) + "\n")
    for said in json.loads((folder / "ask.json").read_text()):
        answer(said, folder / said["name"])


main(Path(sys.argv[1]))
