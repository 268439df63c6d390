"""target.weights, shards, load: every tensor used once, every parameter filled, or both sets are named."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from draftproof.config.parse import parse_config
from draftproof.config.raw import read_raw
from draftproof.errors import CouldNotLook, RefusedInput, UsageError
from draftproof.models.target.build import build_decoder
from draftproof.models.target.load import load_decoder
from draftproof.models.target.parameters import bill_of
from draftproof.models.target.reading import read_shape
from draftproof.models.target.weights import account, allocate

pytestmark = pytest.mark.engine

CONFIGS = Path(__file__).parents[1] / "configs"
HEAD = "lm_head.weight"


@pytest.fixture
def broken(write_target: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """Writes a copy of the tiny dense checkpoint with its tensors changed by a function."""

    def write(change: Callable[[dict[str, Tensor]], object], kind: str = "qwen3") -> Path:
        source = write_target(kind)
        tensors = load_file(source / "model.safetensors")
        change(tensors)
        shutil.copy(source / "config.json", tmp_path)
        save_file(tensors, tmp_path / "model.safetensors")
        return tmp_path

    return write


def two_shards(source: Path, target: Path) -> None:
    """The same checkpoint in two shards with an index."""
    tensors = load_file(source / "model.safetensors")
    names = sorted(tensors)
    files = {n: f"model-0000{1 + (i % 2)}-of-00002.safetensors" for i, n in enumerate(names)}
    for file in sorted(set(files.values())):
        save_file({n: tensors[n] for n in names if files[n] == file}, target / file)
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": files}
    (target / "model.safetensors.index.json").write_text(json.dumps(index))
    shutil.copy(source / "config.json", target)


def test_a_missing_and_an_unexpected_tensor_are_both_named(broken: Callable[..., Path]) -> None:
    """A renamed tensor shows up in both sets of one error."""

    def rename(tensors: dict[str, Tensor]) -> None:
        tensors["model.layers.1.mlp.down.weight"] = tensors.pop("model.layers.1.mlp.down_proj.weight")

    with pytest.raises(RefusedInput) as caught:
        load_decoder(broken(rename))
    assert "1 missing: model.layers.1.mlp.down_proj.weight" in caught.value.found
    assert "1 unexpected: model.layers.1.mlp.down.weight" in caught.value.found


def test_a_wrong_shape_is_named_with_both_shapes(broken: Callable[..., Path]) -> None:
    """A projection with a row too few is refused before anything is copied."""

    def cut(tensors: dict[str, Tensor]) -> None:
        tensors["model.layers.0.self_attn.k_proj.weight"] = torch.zeros(31, 32)

    with pytest.raises(RefusedInput, match=r"k_proj.weight \[31, 32\], not \[32, 32\]"):
        load_decoder(broken(cut))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_weight_that_is_not_finite_is_counted(broken: Callable[..., Path], value: float) -> None:
    """One NaN or infinity among finite weights is found, and the tensor named."""

    def spoil(tensors: dict[str, Tensor]) -> None:
        tensors["model.layers.2.mlp.up_proj.weight"][3, 4] = value

    with pytest.raises(RefusedInput) as caught:
        load_decoder(broken(spoil))
    assert caught.value.subject == "model.layers.2.mlp.up_proj.weight"
    assert caught.value.found == f"1 of {48 * 32} NaN or infinite"


def test_large_finite_weights_are_no_infinity(broken: Callable[..., Path]) -> None:
    """A sum that overflows is looked at again, number by number."""

    def swell(tensors: dict[str, Tensor]) -> None:
        tensors[HEAD] = torch.full_like(tensors[HEAD], 3e38)

    assert load_decoder(broken(swell)).num_layers == 3


def test_a_quantised_tensor_is_refused_by_its_dtype(broken: Callable[..., Path]) -> None:
    """Integers where weights should be are named, not converted."""
    directory = broken(lambda tensors: tensors.update({HEAD: torch.zeros(97, 32, dtype=torch.int8)}))
    with pytest.raises(RefusedInput, match="I8") as caught:
        load_decoder(directory)
    assert caught.value.subject == HEAD


def test_a_tied_head_may_stand_in_the_file_as_a_copy(broken: Callable[..., Path]) -> None:
    """Some tied checkpoints carry the head as well; equal numbers are a copy, others a contradiction."""
    embedding = "model.embed_tokens.weight"
    same = broken(lambda tensors: tensors.update({HEAD: tensors[embedding].clone()}), "llama")
    assert load_decoder(same).shape.is_tied
    other = broken(lambda tensors: tensors.update({HEAD: tensors[embedding] + 1}), "llama")
    with pytest.raises(RefusedInput, match="the config ties the two"):
        load_decoder(other)


def test_parts_of_other_families_are_not_left_aside(broken: Callable[..., Path]) -> None:
    """A dense model has no multi-token head, so its tensors are one too many."""
    directory = broken(lambda tensors: tensors.update({"mtp.fc.weight": torch.zeros(2, 2)}))
    with pytest.raises(RefusedInput) as caught:
        load_decoder(directory)
    assert "1 unexpected: mtp.fc.weight" in caught.value.found


def test_shards_give_the_same_model(write_target: Callable[..., Path], tmp_path: Path) -> None:
    """Two shards and an index are the single file, bit for bit."""
    source = write_target("qwen3")
    two_shards(source, tmp_path)
    first, second = load_decoder(source), load_decoder(tmp_path)
    logits = [m.forward(m.new_session(), [1, 2, 3]).logits for m in (first, second)]
    assert torch.equal(*logits)


def test_a_missing_shard_is_named(write_target: Callable[..., Path], tmp_path: Path) -> None:
    """A shard that the index names and that is not there stops the load."""
    two_shards(write_target("qwen3"), tmp_path)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(RefusedInput, match="shard-missing"):
        load_decoder(tmp_path)


def test_a_shard_cut_short_is_refused(broken: Callable[..., Path]) -> None:
    """A file that ends before its last tensor stops the load."""
    directory = broken(dict)
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RefusedInput, match="checkpoint"):
        load_decoder(directory)


def test_no_weights_and_no_directory_cannot_be_looked_at(
    write_target: Callable[..., Path], tmp_path: Path
) -> None:
    """A directory without weights, and none at all, are told apart from bad weights."""
    shutil.copy(write_target("qwen3") / "config.json", tmp_path)
    with pytest.raises(CouldNotLook, match="safetensors"):
        load_decoder(tmp_path)
    with pytest.raises(CouldNotLook):
        load_decoder(tmp_path / "nowhere")


def test_sixteen_bit_files_load_in_any_precision(write_target: Callable[..., Path]) -> None:
    """The dtype is the file's unless asked for; bfloat16 weights widen without loss."""
    directory = write_target("qwen3", dtype="bfloat16")
    assert load_decoder(directory).dtype == torch.bfloat16
    wide = load_decoder(directory, dtype=torch.float32)
    stored = load_file(directory / "model.safetensors")["model.embed_tokens.weight"]
    assert torch.equal(wide.embedding, stored.float())
    half = load_decoder(directory, dtype=torch.float16)
    assert half.forward(half.new_session(), [1, 2]).logits.dtype == torch.float32


def test_a_device_or_dtype_that_cannot_be_is_a_wrong_call(write_target: Callable[..., Path]) -> None:
    """An integer dtype, and a GPU where there is none, are errors of the call."""
    with pytest.raises(UsageError):
        load_decoder(write_target("qwen3"), dtype=torch.int8)
    if not torch.cuda.is_available():
        with pytest.raises(UsageError):
            load_decoder(write_target("qwen3"), device=torch.device("cuda"))


def names_of_27b() -> set[str]:
    """The text tensors of Qwen3.6-27B's checkpoint, from its published layout."""
    names = {"lm_head.weight"}
    base = "model.language_model."
    names |= {f"{base}embed_tokens.weight", f"{base}norm.weight"}
    for i in range(64):
        here = f"{base}layers.{i}."
        parts = ["input_layernorm.weight", "post_attention_layernorm.weight"]
        parts += [f"mlp.{p}_proj.weight" for p in ("gate", "up", "down")]
        if (i + 1) % 4:
            parts += [f"linear_attn.in_proj_{p}.weight" for p in ("qkv", "z", "b", "a")]
            parts += [f"linear_attn.{p}" for p in ("A_log", "dt_bias", "conv1d.weight", "norm.weight")]
            parts += ["linear_attn.out_proj.weight"]
        else:
            parts += [f"self_attn.{p}_proj.weight" for p in ("q", "k", "v", "o")]
            parts += ["self_attn.q_norm.weight", "self_attn.k_norm.weight"]
        names |= {here + part for part in parts}
    return names


def names_of_mtp() -> set[str]:
    """The fifteen tensors of its multi-token-prediction head."""
    layer = "mtp.layers.0."
    norms = ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm", "fc")
    attention = ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm")
    found = {f"mtp.{n}.weight" for n in norms} | {f"{layer}self_attn.{n}.weight" for n in attention}
    found |= {f"{layer}mlp.{n}_proj.weight" for n in ("gate", "up", "down")}
    return found | {f"{layer}{n}.weight" for n in ("input_layernorm", "post_attention_layernorm")}


def test_the_27b_is_accounted_for_without_memory() -> None:
    """On the meta device the real config builds, and every tensor name is used or left by name."""
    path = CONFIGS / "qwen3.6-27b-target.json"
    shape = read_shape(parse_config(read_raw(path)), str(path))
    bill = bill_of(shape, "model.language_model.")
    mtp, vision = names_of_mtp(), {"model.visual.patch_embed.proj.weight"}
    assert len(mtp) == 15
    found = account(bill, sorted(names_of_27b() | mtp | vision))
    assert not found.missing
    assert not found.unexpected
    assert set(found.used) == names_of_27b() == set(bill.pieces)
    assert set(found.left) == mtp | vision
    assert bill.pieces["model.language_model.layers.0.linear_attn.conv1d.weight"].shape == (10240, 1, 4)
    assert bill.pieces["model.language_model.layers.3.self_attn.q_proj.weight"].shape == (12288, 5120)
    homes = allocate(bill, dtype=torch.bfloat16, device=torch.device("meta"))
    num_weights = sum(home.numel() for home in homes.values())
    assert num_weights == 26_895_998_464
    model = build_decoder(shape, homes, dtype=torch.bfloat16, device=torch.device("meta"))
    assert model.num_layers == 64
    assert model.session_shape.kv[0].num_layers == 16
    assert model.session_shape.recurrent is not None
    assert model.session_shape.recurrent.num_layers == 48


@pytest.mark.parametrize("missing", ["mtp.fc.weight", "model.language_model.layers.5.linear_attn.A_log"])
def test_the_accounting_can_fail(missing: str) -> None:
    """A name too few is missing where the model needs it, and no loss where a drafter would."""
    path = CONFIGS / "qwen3.6-27b-target.json"
    bill = bill_of(read_shape(parse_config(read_raw(path)), str(path)), "model.language_model.")
    found = account(bill, (names_of_27b() | names_of_mtp() | {"model.extra"}) - {missing})
    assert found.missing == ((missing,) if missing in names_of_27b() else ())
    assert found.unexpected == ("model.extra",)


def test_every_row_of_every_home_is_filled_once(write_target: Callable[..., Path]) -> None:
    """The places of a bill cover each home exactly, whatever the switches."""
    for kind in ("qwen3", "qwen2", "llama-biased", "hybrid", "hybrid-plain"):
        path = write_target(kind) / "config.json"
        bill = bill_of(read_shape(parse_config(read_raw(path)), str(path)), "model.")
        filled: dict[str, list[int]] = {}
        for piece in bill.pieces.values():
            taken = sorted(row for place in piece.places for row in place.rows)
            assert taken == list(range(piece.shape[0]))
            for place in piece.places:
                filled.setdefault(place.home, []).extend(range(place.row, place.row + len(place.rows)))
        assert {home: sorted(rows) for home, rows in filled.items()} == {
            name: list(range(home.shape[0])) for name, home in bill.homes.items()
        }
