"""Run by an interpreter with PyPI ``economize``: greedy runs on a hybrid target, with its head and by lookup.

Usage: python peer_economize.py FOLDER; FOLDER/ask.json says what, FOLDER/target is the checkpoint. Nothing of
draftproof is imported here. Written: FOLDER/runs.json, the tokens of each prompt and what each cycle kept.
"""

import json
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

economize: Any = import_module("economize")  # in the peer's environment alone


def main(folder: Path) -> None:
    """Run every prompt plainly, by lookup, and with the multi-token-prediction head, in 64-bit floats."""
    ask = json.loads((folder / "ask.json").read_text())
    cycles = economize.DecodeConfig(cycle_length=ask["num_draft_tokens"] + 1)
    found = {}
    for method in ("plain", "lookup", "mtp"):
        base = AutoModelForCausalLM.from_pretrained(folder / "target", dtype=torch.float64).eval()  # type: ignore[no-untyped-call] # the peer leaves it untyped
        if method == "mtp":
            model = economize.load(base, folder / "target", decoding=cycles)
            model.double()
        elif method == "lookup":
            lookup = import_module("economize.techniques.lookup").LookupConfig
            config = lookup(max_ngram=ask["longest"], min_ngram=ask["shortest"], match="latest")
            model = economize.apply(base, config, decoding=cycles)
        else:
            model = economize.apply(base, decoding=economize.DecodeConfig(cycle_length=1))
        found[method] = [one(model, prompt, ask["max_new_tokens"]) for prompt in ask["prompts"]]
    (folder / "runs.json").write_text(json.dumps(found))
    print(f"economize {version('economize')}, transformers {version('transformers')}")  # noqa: T201


def one(model: Any, prompt: list[int], count: int) -> dict[str, Any]:
    """Tokens, and what each cycle drafted and kept."""
    result = model.decode(torch.tensor(prompt), count)
    pairs = [[int(drafted), int(kept)] for drafted, kept in result.acceptance]
    return {"prompt": prompt, "tokens": result.tokens.tolist(), "cycles": pairs}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
