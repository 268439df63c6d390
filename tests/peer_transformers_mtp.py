"""Run by an interpreter with transformers: writes a target with an MTP head, drafts with its own MtpModel.

Usage: python peer_transformers_mtp.py FOLDER; FOLDER/ask.json says what. Nothing of draftproof is imported.
Written: FOLDER/target in DeepSeek's layout, and runs.json: for each prompt the tokens, and at every step what
the library drafted behind which tokens.
"""

import json
import math
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.generation.candidate_generator import MTPCandidateGenerator

Model: Any = import_module("transformers.modeling_layers").MtpModel


def seeded(model: Any, seed: int) -> None:
    """Noise of a size that keeps activations near 1."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in name:
                parameter.copy_(1 + 0.1 * noise)
            else:
                parameter.copy_(noise if "embed" in name else noise / math.sqrt(parameter.shape[-1]))


def write_target(folder: Path, ask: dict[str, Any]) -> None:
    """The trunk as the library saves it, and the head's layers behind the trunk's."""
    said = ask["target"] | {"num_mtp_layers": ask["num_layers"]}
    config: Any = LlamaConfig(**said)
    model: Any = LlamaForCausalLM(config)
    seeded(model, 1)
    with torch.no_grad():
        model.get_input_embeddings().weight[ask["blank"]] = 0.0
    head = Model(model, ask["num_layers"])
    seeded(head.layers, 2)
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    depth = config.num_hidden_layers
    for name, tensor in head.layers.state_dict().items():
        index, rest = name.split(".", 1)
        spelled = rest.removeprefix("mtp_block.").replace("post_norm.", "shared_head.norm.")
        tensors[f"model.layers.{depth + int(index)}.{spelled}"] = tensor.clone()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def main(folder: Path) -> None:
    """Write it, load it anew, generate with it."""
    ask = json.loads((folder / "ask.json").read_text())
    write_target(folder / "target", ask)
    depth = ask["target"]["num_hidden_layers"]
    # Llama names no layers of a head; the library finds them by what its classes ignore at load.
    LlamaForCausalLM._keys_to_ignore_on_load_unexpected = [
        rf"model\.layers\.{depth + i}\..*" for i in range(ask["num_layers"])
    ]
    model: Any = LlamaForCausalLM.from_pretrained(folder / "target", dtype=torch.float64)
    drafted: list[dict[str, Any]] = []
    get_candidates = MTPCandidateGenerator.get_candidates

    def listened(self: Any, input_ids: Any, *arguments: Any, **options: Any) -> Any:
        found = get_candidates(self, input_ids, *arguments, **options)
        behind = input_ids[0].tolist()
        drafted.append({"behind": behind, "drafts": found[0][0, len(behind) :].tolist()})
        return found

    MTPCandidateGenerator.get_candidates = listened  # type: ignore[method-assign]
    runs = []
    for prompt in ask["prompts"]:
        drafted.clear()
        ids = torch.tensor([prompt])
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            use_mtp=True,
            max_new_tokens=ask["max_new_tokens"],
        )
        runs.append({"prompt": prompt, "tokens": out[0, len(prompt) :].tolist(), "steps": list(drafted)})
    (folder / "runs.json").write_text(json.dumps(runs))
    sys.stdout.write(f"transformers {version('transformers')}, torch {torch.__version__}\n")


main(Path(sys.argv[1]))
