"""models.dflash.drafter: the cached drafter against a slow plain twin, and a memory of context rows alone."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import Tensor

from dflash_drafters import native_config, speculators_config, tensors_of, write_drafter
from draftproof.engine.proof.tiny import write_tiny_target
from draftproof.errors import RefusedInput
from draftproof.models.decoder import Decoder
from draftproof.models.dflash import attention
from draftproof.models.dflash.attention import BlockMasks
from draftproof.models.dflash.load import load_dflash, read_dflash
from draftproof.models.dflash.shape import DflashLayer, DflashShape
from draftproof.models.parts.rope import inverse_frequencies
from draftproof.models.target.load import load_decoder

pytestmark = pytest.mark.engine

SLIDING = {"use_sliding_window": True, "sliding_window": 5}
LAYOUTS: dict[str, dict[str, Any]] = {
    "full": {},
    "mixed": SLIDING | {"layer_types": ["sliding_attention", "full_attention"]},
    "sliding, not causal": SLIDING | {"layer_types": ["sliding_attention"] * 2, "is_causal": False},
    "causal, biased": {"is_causal": True, "attention_bias": True},
    "partial rope": {
        "rope_theta": None,
        "rope_parameters": {"rope_theta": 5e5, "partial_rotary_factor": 0.5},
    },
    "scaled": {"input_embedding_scale": 3.0},
}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    """The tiny dense target in 64-bit floats."""
    folder = tmp_path_factory.mktemp("target")
    write_tiny_target(folder, "dense")
    return load_decoder(folder, dtype=torch.float64)


class Plain:
    """The formulas, one slot and one head at a time, without a cache."""

    def __init__(self, shape: DflashShape, tensors: Mapping[str, Tensor]) -> None:
        self.shape, self.tensors = shape, {name: tensor.double() for name, tensor in tensors.items()}

    def run(self, context: Tensor, tokens: Sequence[int], embedding: Tensor) -> Tensor:
        """[B, H] after the final norm, of a block behind all context rows."""
        c = self.norm(self.linear(context, "fc"), "hidden_norm")
        x = embedding[torch.tensor(list(tokens))].double() * self.shape.embedding_scale
        for index, layer in enumerate(self.shape.layers):
            here = f"layers.{index}"
            x = x + self.attention(self.norm(x, f"{here}.input_layernorm"), c, f"{here}.self_attn", layer)
            y = self.norm(x, f"{here}.post_attention_layernorm")
            gate, up = (self.linear(y, f"{here}.mlp.{name}_proj") for name in ("gate", "up"))
            x = x + self.linear(F.silu(gate) * up, f"{here}.mlp.down_proj")
        return self.norm(x, "norm")

    def linear(self, x: Tensor, name: str) -> Tensor:
        """The map x W^T, plus b where there is one."""
        y = x @ self.tensors[f"{name}.weight"].T
        return y + self.tensors[f"{name}.bias"] if f"{name}.bias" in self.tensors else y

    def norm(self, x: Tensor, name: str) -> Tensor:
        """RMS norm of the last dimension."""
        length = (x.square().mean(-1, keepdim=True) + self.shape.norm_eps).sqrt()
        return x / length * self.tensors[f"{name}.weight"]

    def attention(self, y: Tensor, c: Tensor, name: str, layer: DflashLayer) -> Tensor:
        """Softmax attention of every slot over the rows it sees."""
        s, start, rows = self.shape, len(c), torch.cat((c, y))
        positions = range(len(rows))
        q = self.linear(y, f"{name}.q_proj").view(len(y), s.num_heads, s.head_dim)
        k = self.linear(rows, f"{name}.k_proj").view(len(rows), s.num_kv_heads, s.head_dim)
        v = self.linear(rows, f"{name}.v_proj").view(len(rows), s.num_kv_heads, s.head_dim)
        q = self.turned(self.norm(q, f"{name}.q_norm"), positions[start:])
        k = self.turned(self.norm(k, f"{name}.k_norm"), positions)
        mixed = torch.zeros(len(y), s.num_heads, s.head_dim, dtype=torch.float64)
        for slot in range(len(y)):
            seen = [t for t in positions if self.is_seen(t, start + slot, layer)]
            for head in range(s.num_heads):
                shared = head * s.num_kv_heads // s.num_heads
                scores = k[seen, shared] @ q[slot, head] * s.head_dim**-0.5
                mixed[slot, head] = scores.softmax(0) @ v[seen, shared]
        return self.linear(mixed.flatten(1), f"{name}.o_proj")

    @staticmethod
    def is_seen(key: int, query: int, layer: DflashLayer) -> bool:
        """Whether the slot at ``query`` sees the row at ``key``."""
        in_window = layer.window is None or abs(query - key) < layer.window
        return in_window and (key <= query or not layer.is_causal)

    def turned(self, heads: Tensor, positions: Sequence[int]) -> Tensor:
        """Dimension i turned with dimension i + r/2."""
        r = self.shape.rope.rotary_dim
        angles = torch.tensor(list(positions), dtype=torch.float64)[:, None, None]
        angles = angles * inverse_frequencies(self.shape.rope)[0].double()
        a, b = heads[..., : r // 2], heads[..., r // 2 : r]
        cos, sin = angles.cos(), angles.sin()
        return torch.cat((a * cos - b * sin, b * cos + a * sin, heads[..., r:]), -1)


def drafter_of(tmp_path: Path, config: dict[str, Any], seed: int = 0) -> tuple[Path, dict[str, Tensor]]:
    """A checkpoint of this config and its tensors."""
    tensors = tensors_of(config, seed=seed)
    return write_drafter(tmp_path / "drafter", config, tensors), tensors


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_the_cached_drafter_is_its_plain_twin(layout: str, target: Decoder, tmp_path: Path) -> None:
    """Context rows in portions of any size give what all of them at once give without a cache."""
    config = {key: value for key, value in native_config(**LAYOUTS[layout]).items() if value is not None}
    folder, tensors = drafter_of(tmp_path, config)
    drafter = load_dflash(folder, target)
    plain = Plain(drafter.shape, tensors)
    memory = drafter.new_memory()
    rows = torch.randn(32, 96, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    at = 0
    for portion in (0, 3, 1, 9, 2, 17):
        block = [5 + at, *[127] * 5]
        hidden = drafter.hidden(memory, rows[at : at + portion], block)
        at += portion
        torch.testing.assert_close(hidden, plain.run(rows[:at], block, target.embedding), atol=1e-11, rtol=0)
    assert memory.length == at == 32


def test_nothing_of_a_block_is_remembered(target: Decoder, tmp_path: Path) -> None:
    """Whatever was drafted before, and however often, the next draft is the same."""
    layout = native_config(**LAYOUTS["mixed"])
    drafter = load_dflash(drafter_of(tmp_path, layout)[0], target)
    rows = torch.randn(20, 96, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    quiet, busy = drafter.new_memory(), drafter.new_memory()
    drafter.draft(quiet, rows[:12], 1, 5)
    drafter.draft(busy, rows[:12], 99, 2)
    for anchor in (3, 77):
        drafter.draft(busy, rows[:0], anchor, 5)
    assert torch.equal(drafter.draft(quiet, rows[12:], 8, 5), drafter.draft(busy, rows[12:], 8, 5))


def test_a_slot_of_a_causal_layer_does_not_see_later_ones(target: Decoder, tmp_path: Path) -> None:
    """With every layer causal the width of the block changes no slot; with a full layer it does."""
    rows = torch.randn(9, 96, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    for is_causal in (True, False):
        folder = tmp_path / str(is_causal)
        drafter = load_dflash(drafter_of(folder, native_config(is_causal=is_causal))[0], target)
        narrow = drafter.draft(drafter.new_memory(), rows, 4, 2)
        wide = drafter.draft(drafter.new_memory(), rows, 4, 5)[:2]
        assert torch.allclose(narrow, wide, atol=1e-12) is is_causal


def test_masks_of_a_growing_context_do_not_pile_up(
    target: Decoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Causal slots without a window want another mask in each step: few are kept, and all are right."""
    shape = load_dflash(drafter_of(tmp_path, native_config())[0], target).shape
    shared, most = shape.num_heads // shape.num_kv_heads, 200
    monkeypatch.setattr(attention, "_MOST_KEPT", most)
    masks = BlockMasks(shape, dtype=torch.float64, device=target.device)
    for num_columns in [*range(3, 40), 3]:
        mask = masks.of(DflashLayer(None, is_causal=True), 3, num_columns)
        assert mask is not None
        unseen = torch.ones(3, num_columns, dtype=torch.bool).triu(num_columns - 2)
        assert torch.equal(mask == -torch.inf, unseen.repeat(shared, 1))
        kept = sum(each.numel() for each in masks._kept.values())
        assert mask.numel() <= kept <= max(most, mask.numel())
        assert masks.of(DflashLayer(None, is_causal=False), 3, num_columns) is None


def test_a_reduced_vocabulary_leads_back_to_the_targets_ids(target: Decoder, tmp_path: Path) -> None:
    """Speculators' layout: row j of its head is target id j + d2t[j], and no other id can be drafted."""
    config = speculators_config(40)
    tensors = tensors_of(config)
    ids = torch.arange(40) * 3 + 2
    whole = tensors | {"d2t": ids - torch.arange(40), "t2d": torch.zeros(128).index_fill_(0, ids, 1).bool()}
    folder = write_drafter(tmp_path / "reduced", config, whole)
    rows = torch.randn(7, 96, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    drafter = load_dflash(folder, target)
    logits = drafter.draft(drafter.new_memory(), rows, 11, 5)
    normed = Plain(read_dflash(folder), tensors).run(rows, [11, *[127] * 5], target.embedding)[1:]
    torch.testing.assert_close(
        logits[:, ids], normed @ tensors["lm_head.weight"].double().T, atol=1e-11, rtol=0
    )
    assert int(torch.isfinite(logits).sum()) == 5 * 40
    del whole["d2t"]
    with pytest.raises(RefusedInput, match="d2t"):
        load_dflash(write_drafter(tmp_path / "without", config, whole), target)


def test_logits_are_multiplied_and_capped_where_the_file_says_so(target: Decoder, tmp_path: Path) -> None:
    """Multiplier first, then c tanh(z / c)."""
    rows = torch.randn(7, 96, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    plain = load_dflash(drafter_of(tmp_path / "a", native_config())[0], target)
    said = native_config(output_multiplier=0.5, final_logit_softcapping=2.0)
    capped = load_dflash(drafter_of(tmp_path / "b", said)[0], target)
    logits = plain.draft(plain.new_memory(), rows, 1, 5)
    expected = torch.tanh(logits * 0.5 / 2.0) * 2.0
    torch.testing.assert_close(capped.draft(capped.new_memory(), rows, 1, 5), expected, atol=1e-12, rtol=0)


def test_where_the_anchor_predicts_a_block_drafts_one_token_more(target: Decoder, tmp_path: Path) -> None:
    """sample_from_anchor: slot 0 gives the token after the anchor, and no slot is thrown away."""
    config = native_config(dflash_config={"sample_from_anchor": True})
    folder, tensors = drafter_of(tmp_path, config)
    drafter = load_dflash(folder, target)
    assert drafter.shape.num_draft_tokens == 6
    rows = torch.randn(7, 96, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    logits = drafter.draft(drafter.new_memory(), rows, 1, 6)
    normed = Plain(drafter.shape, tensors).run(rows, [1, *[127] * 5], target.embedding)
    torch.testing.assert_close(logits, target.head(normed), atol=1e-11, rtol=0)


@pytest.mark.parametrize("prefix", ["", "model."])
def test_other_spellings_are_read(prefix: str, target: Decoder, tmp_path: Path) -> None:
    """A prefix and vLLM's encoder names change nothing."""
    config = native_config()
    tensors = tensors_of(config)
    renamed = {"fc.weight": "encoder.fc.weight", "hidden_norm.weight": "encoder.output_norm_enc.weight"}
    spelt = {prefix + renamed.get(name, name): value for name, value in tensors.items()}
    native = load_dflash(write_drafter(tmp_path / "native", config, tensors), target)
    other = load_dflash(write_drafter(tmp_path / "other", config, spelt), target)
    rows = torch.randn(4, 96, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    drafts = [drafter.draft(drafter.new_memory(), rows, 1, 5) for drafter in (native, other)]
    assert torch.equal(*drafts)


@pytest.mark.parametrize("fault", ["missing", "unexpected", "shape"])
def test_every_tensor_is_used_once_and_every_weight_filled(
    fault: str, target: Decoder, tmp_path: Path
) -> None:
    """A tensor too few, too many or of another shape loads nothing."""
    config = native_config()
    tensors = tensors_of(config)
    if fault == "missing":
        del tensors["layers.1.self_attn.k_norm.weight"]
    elif fault == "unexpected":
        tensors["layers.0.self_attn.g_proj.weight"] = torch.zeros(4, 48)
    else:
        tensors["fc.weight"] = torch.zeros(48, 48)
    with pytest.raises(RefusedInput):
        load_dflash(write_drafter(tmp_path / "drafter", config, tensors), target)


TESTS = Path(__file__).parents[1]
GRADES = json.loads((TESTS / "config_grades.json").read_text())["grades"]
COMPLETE = sorted(
    name
    for name, grade in GRADES.items()
    if grade in "VN" and name.endswith(("-dflash.json", "-dflash-b16.json"))
)


@pytest.mark.parametrize("name", COMPLETE)
def test_every_complete_published_config_can_be_run(name: str) -> None:
    """Each gives taps, layers and tokens to draft; which layers slide is what the file says."""
    shape, said = read_dflash(TESTS / "configs" / name), json.loads((TESTS / "configs" / name).read_text())
    assert shape.taps == tuple(index + 1 for index in said["dflash_config"]["target_layer_ids"])
    kinds = said["layer_types"] if said.get("layer_types") else ["full_attention"] * len(shape.layers)
    assert [layer.window is not None for layer in shape.layers] == [k == "sliding_attention" for k in kinds]
    assert shape.num_draft_tokens == shape.block_size - 1 > 0


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"architectures": ["DFlash2DraftModel"]}, "dflash2"),
        ({"attention_sink_bias": True}, "attention_sink_bias"),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"some_new_switch": True}, "some_new_switch"),
        ({"dflash_config": {"mask_token_id": None}}, "mask_token_id"),
        ({"input_embedding_scale": -1}, "input_embedding_scale"),
    ],
)
def test_what_is_not_built_in_is_refused_by_name(change: dict[str, Any], named: str, tmp_path: Path) -> None:
    """A config that asks for another forward pass is not run as if it had not asked."""
    config = native_config(**change)
    folder = write_drafter(tmp_path / "drafter", config, tensors_of(native_config()))
    with pytest.raises(RefusedInput, match=named):
        read_dflash(folder)
