"""models.gguf.file, gguf_shape: a GGUF file is the model whose numbers it holds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf.quants import dequantize, quantize
from safetensors.numpy import load_file

from draftproof.errors import RefusedInput
from draftproof.models.gguf.file import GgufFile, is_gguf
from draftproof.models.gguf.shape import read_gguf_shape
from draftproof.models.parts.rope import inverse_frequencies
from draftproof.models.target.load import load_decoder
from draftproof.models.target.plain import run_plain
from draftproof.models.target.shape import RopeShape

pytestmark = pytest.mark.engine

Array = np.ndarray[Any, Any]
TOKENS = [3, 90, 17, 17, 4, 55, 8, 1, 70, 70, 2, 9]
LLAMA3 = (("factor", 8.0), ("high_freq_factor", 4.0), ("low_freq_factor", 1.0))
NAMES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def file_name(name: str) -> str:
    """llama.cpp's name of a checkpoint tensor."""
    whole = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    if name in whole:
        return whole[name]
    if name == "lm_head.weight":
        return "output.weight"
    _, _, layer, *rest = name.split(".")
    return f"blk.{layer}.{NAMES['.'.join(rest[:-1])]}.{rest[-1]}"


def paired(rows: Array, heads: int) -> Array:
    """Query or key rows as llama.cpp's converter orders Llama's: rotating partners side by side."""
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows.shape))


def write_gguf(
    path: Path,
    architecture: str,
    tensors: dict[str, Array],
    *,
    kind: gguf.GGMLQuantizationType | None = None,
    metadata: dict[str, Any],
) -> None:
    """A file with these tensors, those of two dimensions quantised as ``kind``."""
    writer = gguf.GGUFWriter(path, architecture)
    numbers = {"block_count": 3, "context_length": 640, "embedding_length": 32, "feed_forward_length": 64}
    heads = {"attention.head_count": 4, "attention.head_count_kv": 2}
    for key, value in {**numbers, **heads, **metadata}.items():
        add = writer.add_float32 if isinstance(value, float) else writer.add_uint32
        add(f"{architecture}.{key}", value)
    for name, tensor in tensors.items():
        if kind is None or tensor.ndim == 1:
            writer.add_tensor(name, tensor)
        else:
            writer.add_tensor(name, quantize(tensor, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def llama_tensors(directory: Path) -> dict[str, Array]:
    """The tiny Llama's tensors as a converter would write them, the llama3 rope as divisors."""
    found = {}
    for name, tensor in load_file(directory / "model.safetensors").items():
        heads = 4 if "q_proj" in name else 2 if "k_proj" in name else 0
        found[file_name(name)] = paired(tensor, heads) if heads else tensor
    plain, _ = inverse_frequencies(RopeShape(10000.0, "default", 8, ()))
    scaled, _ = inverse_frequencies(
        RopeShape(10000.0, "llama3", 8, (*LLAMA3, ("original_max_position_embeddings", 64)))
    )
    found["rope_freqs.weight"] = (plain / scaled).numpy()
    return found


EPS = {"attention.layer_norm_rms_epsilon": 1e-6}


@pytest.fixture
def llama(write_target: Callable[..., Path]) -> Path:
    """A tiny Llama whose widths are whole blocks of 32."""
    return write_target("llama", intermediate_size=64)


def test_a_llama_file_is_the_checkpoint_it_was_made_from(llama: Path, tmp_path: Path) -> None:
    """Paired rows, rope divisors and the tied head give the logits of the safetensors model."""
    path = tmp_path / "model.gguf"
    write_gguf(path, "llama", llama_tensors(llama), metadata={**EPS, "rope.dimension_count": 8})
    first, second = load_decoder(llama), load_decoder(path)
    assert second.dtype == torch.float32
    assert second.shape.is_tied
    logits = [m.forward(m.new_session(), TOKENS).logits for m in (first, second)]
    assert float((logits[0] - logits[1]).abs().max()) < 1e-4


def test_a_qwen3_file_keeps_its_rows(write_target: Callable[..., Path], tmp_path: Path) -> None:
    """Qwen3's rows are not paired by the converter, and its head norms come along."""
    source = write_target("qwen3", intermediate_size=64)
    tensors = {file_name(n): t for n, t in load_file(source / "model.safetensors").items()}
    path = tmp_path / "model.gguf"
    lengths = {"attention.key_length": 16, "attention.value_length": 16}
    write_gguf(path, "qwen3", tensors, metadata={**EPS, **lengths})
    logits = [m.forward(m.new_session(), TOKENS).logits for m in map(load_decoder, (source, path))]
    assert torch.equal(*logits)


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_1", "Q4_0", "Q5_1"])
def test_quantised_blocks_are_the_numbers_they_stand_for(llama: Path, tmp_path: Path, kind: str) -> None:
    """The model that runs is the file's own: its twin on the expanded numbers agrees."""
    quantised = gguf.GGMLQuantizationType[kind]
    path = tmp_path / "model.gguf"
    tensors = llama_tensors(llama)
    write_gguf(path, "llama", tensors, kind=quantised, metadata={**EPS, "rope.dimension_count": 8})
    model = load_decoder(path, dtype=torch.float64)
    # The twin reads checkpoint order, so what the file rounds is put back into it.
    back = {}
    for name, tensor in load_file(llama / "model.safetensors").items():
        stored = tensors[file_name(name)]
        if stored.ndim > 1:
            stored = dequantize(quantize(stored, quantised), quantised).astype(np.float32)
        heads = 4 if "q_proj" in name else 2 if "k_proj" in name else 0
        if heads:
            pairs = stored.reshape(heads, -1, 2, *stored.shape[1:])
            stored = pairs.swapaxes(1, 2).reshape(tensor.shape)
        back[name] = torch.from_numpy(np.ascontiguousarray(stored))
    twin = run_plain(model.shape, back, TOKENS)
    found = model.forward(model.new_session(), TOKENS).logits
    assert float((found - twin.logits).abs().max() / twin.logits.abs().max()) < 1e-12


def test_what_is_not_known_is_refused_by_name(llama: Path, tmp_path: Path) -> None:
    """Another architecture, a key of unknown effect, a missing key, a tensor too many: each is named."""
    tensors = llama_tensors(llama)
    cases: list[tuple[str, dict[str, Any], dict[str, Array], str]] = [
        ("gemma", {**EPS}, tensors, "general.architecture"),
        ("llama", {**EPS, "expert_count": 8}, tensors, "llama.expert_count"),
        ("llama", {}, tensors, "layer_norm_rms_epsilon"),
        ("llama", {**EPS}, {**tensors, "blk.0.attn_sinks.weight": np.ones(4, np.float32)}, "attn_sinks"),
        ("llama", {**EPS}, {n: t for n, t in tensors.items() if n != "blk.1.ffn_up.weight"}, "up_proj"),
        ("llama", {**EPS, "attention.value_length": 4}, tensors, "value_length"),
    ]
    for number, (architecture, metadata, given, named) in enumerate(cases):
        path = tmp_path / f"{number}.gguf"
        write_gguf(path, architecture, given, metadata=metadata)
        with pytest.raises(RefusedInput) as caught:
            load_decoder(path)
        assert named in caught.value.subject + caught.value.found


def test_a_file_cut_short_is_refused(llama: Path, tmp_path: Path) -> None:
    """Half a file, and a file that only bears the name, are no model."""
    path = tmp_path / "model.gguf"
    write_gguf(path, "llama", llama_tensors(llama), metadata=EPS)
    whole = path.read_bytes()
    for size in (3, 4, 20, 300, len(whole) // 2, len(whole) - 40):
        short = tmp_path / f"{size}.gguf"
        short.write_bytes(whole[:size])
        assert is_gguf(short)
        with pytest.raises(RefusedInput):
            load_decoder(short)
    assert not is_gguf(tmp_path)


def test_metadata_is_read_by_name(llama: Path, tmp_path: Path) -> None:
    """What the file says is found, what it does not say is refused."""
    path = tmp_path / "model.gguf"
    write_gguf(path, "llama", llama_tensors(llama), metadata=EPS)
    file = GgufFile(path)
    assert read_gguf_shape(file).attention.num_kv_heads == 2
    with pytest.raises(RefusedInput):
        file.value("llama.nothing")
