"""A drafter trained here is loaded by PyPI ``dflash`` as it is written, and computes the same there."""

import subprocess
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from safetensors.torch import load_file, save_file

from draftproof.models.dflash.load import load_dflash
from draftproof.models.target.load import load_decoder
from draftproof.training.drafters.train import Job, train_dflash
from environments import peer_python
from small_runs import write_recipe, write_speaking_target

pytestmark = [pytest.mark.engine, pytest.mark.live, pytest.mark.slow]


def test_pypi_dflash_takes_it(tmp_path: Path) -> None:
    """Nothing missing, nothing left over, the same block to 1e-4."""
    try:
        python = peer_python("dflash-0.1.0", "torch==2.13.0", "dflash==0.1.0", "transformers==5.24.0")
    except RuntimeError as error:
        pytest.skip(f"PyPI dflash could not be installed: {error}")
    target = load_decoder(write_speaking_target(tmp_path, "dflash"))
    train_dflash(Job(write_recipe(tmp_path, "dflash", steps=3), tmp_path / "run"))
    drafter = load_dflash(tmp_path / "run" / "model", target)
    tokens = [5, *[drafter.shape.mask_token_id] * 5]
    rows = torch.randn(1, 17, 2 * 48, generator=torch.Generator().manual_seed(1))
    block = F.embedding(torch.tensor([tokens]), target.embedding)
    save_file({"rows": rows, "block": block.contiguous()}, tmp_path / "ask.safetensors")
    script = Path(__file__).with_name("peer_load.py")
    ran = subprocess.run(
        [python, script, tmp_path / "run" / "model", tmp_path], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "taps [0, 1], mask 127" in ran.stdout
    told = load_file(tmp_path / "told.safetensors")["hidden"][0]
    assert (told - drafter.hidden(drafter.new_memory(), rows[0], tokens)).abs().max() < 1e-4
