"""A GGUF file as the target of a drafter: it answers as its checkpoint does, and the drafter serves it."""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import pre_tokenizers

from draftproof.cli.main import main
from draftproof.engine.engine import Engine
from draftproof.engine.text.stopping import Stopping
from draftproof.models.gguf.file import GgufFile
from draftproof.training.drafters.frozen import freeze
from draftproof.training.drafters.responses import Speaker
from draftproof.training.drafters.train import Job, train_dflash
from small_runs import write_recipe

pytestmark = pytest.mark.engine

HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, DIM = 48, 96, 3, 4, 2, 12
TOKENS = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "ab", "<|end|>", "<|mask|>"]
END, MASK = len(TOKENS) - 2, len(TOKENS) - 1
CPU = torch.device("cpu")


def write_llama(path: Path) -> Path:
    """A tiny Llama with seeded weights and a byte-level tokenizer, as llama.cpp's converter lays it out."""
    draws = np.random.default_rng(7)
    kv = KV_HEADS * DIM
    shapes = {"token_embd": (len(TOKENS), HIDDEN)}
    for layer in range(LAYERS):
        at = f"blk.{layer}"
        shapes |= {f"{at}.attn_q": (HEADS * DIM, HIDDEN), f"{at}.attn_k": (kv, HIDDEN)}
        shapes |= {f"{at}.attn_v": (kv, HIDDEN), f"{at}.attn_output": (HIDDEN, HEADS * DIM)}
        shapes |= {f"{at}.ffn_gate": (INNER, HIDDEN), f"{at}.ffn_up": (INNER, HIDDEN)}
        shapes |= {f"{at}.ffn_down": (HIDDEN, INNER)}
    writer = gguf.GGUFWriter(path, "llama")
    numbers = {"block_count": LAYERS, "context_length": 512, "embedding_length": HIDDEN}
    numbers |= {
        "feed_forward_length": INNER,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
    }
    for key, value in numbers.items():
        writer.add_uint32(f"llama.{key}", value)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-6)
    writer.add_string("tokenizer.ggml.model", "gpt2")
    writer.add_string("tokenizer.ggml.pre", "smollm")
    writer.add_array("tokenizer.ggml.tokens", TOKENS)
    kinds = [gguf.TokenType.NORMAL] * END + [gguf.TokenType.CONTROL] * 2
    writer.add_array("tokenizer.ggml.token_type", [int(kind) for kind in kinds])
    writer.add_array("tokenizer.ggml.merges", ["a b"])
    writer.add_uint32("tokenizer.ggml.eos_token_id", END)
    for name, shape in shapes.items():
        noise = draws.standard_normal(shape).astype(np.float32)
        writer.add_tensor(f"{name}.weight", noise * (1.0 if name == "token_embd" else 1.4 * shape[1] ** -0.5))
    for name in ("output_norm", *(f"blk.{i}.{part}_norm" for i in range(LAYERS) for part in ("attn", "ffn"))):
        writer.add_tensor(f"{name}.weight", np.ones(HIDDEN, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_it_answers_in_lockstep_as_the_engine_does(tmp_path: Path) -> None:
    """Rows that stand in pairs are put back: the same tokens from both readings, and the file's own end."""
    path = write_llama(tmp_path / "model.gguf")
    frozen, engine = freeze(path, CPU), Engine.load(path)
    assert frozen.endings == {END}
    prompts = [[3, 1, 4, 1, 5], [9, 2, 6], [5, 3, 5, 8, 9, 7]]
    said = [engine.generate(each, stopping=Stopping(24, ignore_eos=True)).token_ids for each in prompts]
    wanted = [(*prompt, *answer) for prompt, answer in zip(prompts, said, strict=True)]
    shape, file = frozen.decoder.shape, GgufFile(path)
    as_stored = {name: file.read(name) for name in file.shapes()}
    answers = {
        name: [tuple(each.tokens) for each in Speaker(shape, weights, frozenset(), 24).answers(prompts)]
        for name, weights in (("put back", frozen.weights), ("as stored", as_stored))
    }
    assert answers["put back"] == wanted
    assert answers["as stored"] != wanted  # the control: these weights tell the two orders apart


def test_a_drafter_of_a_gguf_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Trained, served and benched without a checkpoint directory; other trainers are not handed a file."""
    write_llama(tmp_path / "model.gguf")
    recipe = write_recipe(tmp_path, "dflash", steps=6)
    said = recipe.read_text().replace('target = "target"', 'target = "model.gguf"')
    recipe.write_text(said.replace("mask_token_id = 127", f"mask_token_id = {MASK}"))
    lines = [f'{{"prompt": "{chr(97 + i % 26)} {i} go on", "chat": false}}\n' for i in range(24)]
    (tmp_path / "prompts.jsonl").write_text("".join(lines))
    assert train_dflash(Job(recipe, tmp_path / "run")).step == 6
    made = tmp_path / "run" / "model"
    assert load_file(made / "model.safetensors")["fc.weight"].shape == (HIDDEN, 2 * HIDDEN)
    target = str(tmp_path / "model.gguf")
    few = ["--prompts", str(tmp_path / "asked.jsonl"), "--max-new-tokens", "8", "--rounds", "1", "--json"]
    (tmp_path / "asked.jsonl").write_text('{"prompt": "a 1 go on"}\n')
    assert main(["bench", "--target", target, "--drafter", str(made), *few]) == 0
    assert '"method": "ddtree"' in capsys.readouterr().out
    asked = ["train", "dflash", str(recipe), "--emit", "speculators", "--out", str(tmp_path / "out")]
    assert main([*asked, "--json"]) == 1
    assert f"{recipe}#/target" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
