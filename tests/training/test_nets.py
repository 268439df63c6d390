"""The nets that are trained are the models that are run: same weights, same numbers."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import tiny_mtp
from draftproof.engine.proof.tiny import TINY, write_tiny_target
from draftproof.models.mtp.load import load_mtp
from draftproof.models.parts.deltanet import Steps, recurrence
from draftproof.models.target.load import load_decoder
from draftproof.names import HiddenIndex
from draftproof.training.nets.delta import CHUNK, delta_rule
from draftproof.training.nets.layers import _Convolution
from draftproof.training.nets.target import TargetNet
from draftproof.training.start import initial_weights

pytestmark = pytest.mark.engine

SLIDING = {
    **TINY["dense"],
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "sliding_window": 7,
    "use_sliding_window": True,
}
TIED = {**TINY["hybrid"], "tie_word_embeddings": True}


@pytest.mark.parametrize(
    ("kind", "config"),
    [("dense", None), ("hybrid", None), ("dense", SLIDING), ("hybrid", TIED)],
    ids=["dense", "hybrid", "sliding", "tied"],
)
@pytest.mark.parametrize("length", [1, 3, CHUNK, 2 * CHUNK + 7])
def test_a_net_is_the_decoder(
    tmp_path: Path, kind: str, config: dict[str, object] | None, length: int
) -> None:
    """Logits and every hidden state within 1e-4, absolute or relative, for two sequences of one batch."""
    write_tiny_target(tmp_path, kind, config=config)
    decoder = load_decoder(tmp_path, dtype=torch.float32)
    weights = load_file(tmp_path / "model.safetensors")
    ids = torch.randint(0, 128, (2, length), generator=torch.Generator().manual_seed(length))
    net = TargetNet(decoder.shape, weights)
    read = net.read(ids)
    logits = net.logits(read.normed)
    capture = tuple(HiddenIndex(i) for i in range(decoder.num_layers + 1))
    for row in range(2):
        run = decoder.forward(decoder.new_session(), ids[row].tolist(), capture=capture)
        torch.testing.assert_close(logits[row], run.logits, rtol=1e-4, atol=1e-4)
        for index in capture:
            torch.testing.assert_close(read.hidden[index][row], run.hidden[index], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["hybrid", "dense"])
def test_the_mtp_net_is_the_mtp_head(tmp_path: Path, kind: str) -> None:
    """Its rows within 1e-4 of the head that drafts, over the trunk's normed rows."""
    tiny_mtp.write_tiny_mtp(tmp_path, kind)
    decoder = load_decoder(tmp_path, dtype=torch.float32)
    head = load_mtp(tmp_path, decoder)
    net = TargetNet(decoder.shape, load_file(tmp_path / "model.safetensors"))
    ids = torch.randint(0, 128, (1, 41), generator=torch.Generator().manual_seed(0))
    normed = net.read(ids).normed[:, :-1]
    rows = net.mtp(normed, ids[:, 1:])[0]
    wanted = head.read(head.new_session(), normed[0], ids[0, 1:].tolist())
    torch.testing.assert_close(rows, wanted, rtol=1e-4, atol=1e-4)


def test_the_delta_rule_is_the_recurrence() -> None:
    """Outputs and gradients of the chunked rule are those of one step after another, in 64-bit floats."""
    generator = torch.Generator().manual_seed(5)
    t, heads, r, dk, dv = CHUNK + 5, 2, 3, 4, 6

    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    q, k = (torch.nn.functional.normalize(noise(1, t, heads, dk), dim=-1) for _ in range(2))
    v, g, beta = noise(1, t, heads, r, dv), -noise(1, t, heads, r).exp(), noise(1, t, heads, r).sigmoid()
    leaves = [part.requires_grad_() for part in (q, k, v, g, beta)]
    fast = delta_rule(q, k, v, g, beta)
    steps = Steps(torch.stack((q[0], k[0]), 1), v[0], g[0], beta[0])
    state = torch.zeros(heads, dk, r * dv, dtype=torch.float64)
    slow, _ = recurrence(steps, state, range(-1, t - 1))
    torch.testing.assert_close(fast[0], slow)
    weight = noise(*fast.shape)
    found = torch.autograd.grad((fast * weight).sum(), leaves)
    wanted = torch.autograd.grad((slow * weight[0]).sum(), leaves)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("length", [1, 2, 9])
def test_the_gradient_of_the_convolution(length: int) -> None:
    """The one derivative written by hand agrees with finite differences."""
    generator = torch.Generator().manual_seed(length)
    u = torch.randn(2, length, 3, generator=generator, dtype=torch.float64).requires_grad_()
    taps = torch.randn(3, 4, generator=generator, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(_Convolution.apply, (u, taps))


def test_weights_of_a_recipe_fill_the_bill(tmp_path: Path) -> None:
    """What a recipe starts from is a checkpoint that the strict loader takes, head included."""
    from_config = {**tiny_mtp.MTP_CONFIGS["hybrid"], "vocab_size": 300}
    (tmp_path / "config.json").write_text(json.dumps(from_config), encoding="ascii")
    shape = tiny_mtp.shape_of(tmp_path)
    weights = initial_weights(shape, 0, ["a"] * 300, with_mtp=True)
    save_file({name: w.detach() for name, w in weights.items()}, tmp_path / "model.safetensors")
    load_mtp(tmp_path, load_decoder(tmp_path, dtype=torch.float32))
