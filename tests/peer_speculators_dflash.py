"""Runs in an environment of its own: PyPI ``speculators`` writes DFlash drafters and computes with them.

Usage: python peer_speculators_dflash.py FOLDER, where ``ask.json`` lists the drafters, and names the target
whose embedding and head the library is to use. For each it leaves a checkpoint as the library writes it and
``NAME.safetensors``: the rows given, and the logits of every slot of a block at every anchor.
"""

import json
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

for _name in ("torchvision", "torchaudio", "torchcodec"):
    # Optional parts of transformers whose wheels do not fit this torch; nothing here needs them.
    sys.modules[_name] = None  # type: ignore[assignment]

peer: Any = import_module("speculators.models.dflash")  # in the peer's environment alone
transformers: Any = import_module("transformers")

LENGTH = 23


def drafter(said: dict[str, Any], target: dict[str, torch.Tensor]) -> Any:
    """A drafter of the library's own making with seeded weights."""
    layer = transformers.AutoConfig.for_model(**said["layer"])
    layer._attn_implementation = "eager"
    config = peer.DFlashSpeculatorConfig(transformer_layer_config=layer, **said["outer"])
    model = peer.DFlashDraftModel(config)
    generator = torch.Generator().manual_seed(said["seed"])
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.copy_(1 + 0.1 * noise if "norm" in name else noise / weight.shape[-1] ** 0.5)
        model.embed_tokens.weight.copy_(target["model.embed_tokens.weight"])
        if not model.use_draft_vocab:
            model.lm_head.weight.copy_(target["lm_head.weight"])
    if model.use_draft_vocab:
        rows, size = model.draft_vocab_size, model.verifier_vocab_size
        ids = torch.randperm(size, generator=generator)[:rows].sort().values
        model.d2t.copy_(ids - torch.arange(rows))
        model.t2d.zero_().index_fill_(0, ids, value=True)
    return model.float().eval()


def answer(said: dict[str, Any], target: dict[str, torch.Tensor], folder: Path) -> None:
    """One drafter's checkpoint, and a block at every anchor under the training mask."""
    model = drafter(said, target)
    model.save_pretrained(folder)
    generator = torch.Generator().manual_seed(said["seed"] + 1)
    hidden = model.hidden_size
    states = torch.randn(1, LENGTH, len(model.target_layer_ids) * hidden, generator=generator)
    tokens = torch.randint(model.verifier_vocab_size, (1, LENGTH), generator=generator)
    with torch.no_grad():
        _, logits, _, _, positions = model._backbone_forward(
            states,
            tokens,
            torch.ones(1, LENGTH),
            torch.zeros(1, LENGTH, hidden),
            torch.zeros(1, LENGTH, dtype=torch.long),
            max_anchors=LENGTH - model.block_size,
        )
    blocks = logits[0].view(-1, model.block_size, logits.shape[-1])
    anchors = positions.view(-1, model.block_size)[:, 0]
    found = {"states": states[0], "tokens": tokens[0], "logits": blocks, "anchors": anchors}
    save_file({name: tensor.contiguous() for name, tensor in found.items()}, f"{folder}.safetensors")


def main(folder: Path) -> None:
    """Answer everything asked."""
    versions = (f"{name} {version(name)}" for name in ("speculators", "torch", "transformers"))
    sys.stdout.write(", ".join(versions) + "\n")
    ask = json.loads((folder / "ask.json").read_text())
    target = load_file(Path(ask["target"]) / "model.safetensors")
    for said in ask["drafters"]:
        answer(said, target, folder / said["name"])


main(Path(sys.argv[1]))
