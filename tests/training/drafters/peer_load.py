"""Run by an interpreter with PyPI ``dflash``: loads a drafter as that library does, and computes with it.

Usage: python peer_load.py DRAFTER FOLDER; FOLDER holds ``ask.safetensors`` (rows, embedded block) and gets
``told.safetensors``.
"""

import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

peer: Any = import_module("dflash.model")  # in the peer's environment alone


def main(drafter: Path, folder: Path) -> None:
    """Load, refuse anything that did not find its place, compute one block."""
    model, loading = peer.DFlashDraftModel.from_pretrained(drafter, output_loading_info=True)
    wrong = {name: sorted(found) for name, found in loading.items() if found}
    if wrong:
        sys.exit(f"not loaded as written: {wrong}")
    asked = load_file(folder / "ask.safetensors")
    count, block = asked["rows"].shape[1], asked["block"].shape[1]
    with torch.inference_mode():
        hidden = model.float().eval()(
            target_hidden=asked["rows"],
            noise_embedding=asked["block"],
            position_ids=torch.arange(count + block)[None],
            past_key_values=peer._make_cache(model.config),
            use_cache=True,
        )
    save_file({"hidden": hidden.contiguous()}, folder / "told.safetensors")
    sys.stdout.write(
        f"dflash {version('dflash')}, taps {model.target_layer_ids}, mask {model.mask_token_id}\n"
    )


main(Path(sys.argv[1]), Path(sys.argv[2]))
