"""The witness in real engines: transformers reading a pair, and vLLM drafting with one."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from draftproof.cli.main import main
from draftproof.runtimes.witness.record import hook_directory, read_record
from environments import vllm_python

pytestmark = pytest.mark.live

CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
}
WRITE = """
import json, sys, torch
from transformers import Qwen3Config, Qwen3ForCausalLM
torch.manual_seed(0)
config = Qwen3Config(**json.loads(sys.argv[2]))
Qwen3ForCausalLM(config).save_pretrained(sys.argv[1])
"""
READ = """
import sys
from transformers import AutoModelForCausalLM
AutoModelForCausalLM.from_pretrained(sys.argv[1])
"""
SERVE = """
import sys
from vllm import LLM, SamplingParams
if __name__ == "__main__":
    llm = LLM(sys.argv[1], skip_tokenizer_init=True, enforce_eager=True, dtype="float32", max_model_len=128,
              max_num_seqs=1, kv_cache_memory_bytes=64 << 20)
    greedy = SamplingParams(temperature=0, max_tokens=3, detokenize=False)
    out = llm.generate([{"prompt_token_ids": [1, 2, 3]}], greedy)
    print(len(out[0].outputs[0].token_ids))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random target with one safetensors file."""
    folder = tmp_path_factory.mktemp("pair") / "target"
    command = [str(vllm_python()), "-c", WRITE, str(folder), json.dumps(CONFIG)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def watched(script: str, model: Path, folder: Path) -> Path:
    """Run a script of the engine's Python under the witness; its record."""
    record, file = folder / "witness.jsonl", folder / "script.py"
    file.write_text(script)
    environment = {
        **os.environ,
        "PYTHONPATH": str(hook_directory()),
        "DRAFTPROOF_WITNESS": str(record),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    command = [str(vllm_python()), str(file), str(model)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return record


def test_transformers(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The config by open, the weights by safe_open: both L7."""
    record = watched(READ, model, tmp_path)
    assert {one.how for one in read_record(record).opened} == {"open", "safe_open"}
    assert main(["witness", str(record), str(model), "--json"]) in (0, 3)
    files = {Path(one["path"]).name: one["evidence"] for one in json.loads(capsys.readouterr().out)["files"]}
    assert files["config.json"]["holds"]
    assert files["model.safetensors"]["holds"]


def test_vllm_and_its_engine_process(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The weights are read in the engine's own process, which the parent started: both are on record."""
    record = watched(SERVE, model, tmp_path)
    told = read_record(record)
    assert told.trouble == ()
    readers = {Path(one.path).name: one.pid for one in told.opened}
    first = next(one.pid for one in told.opened if one.path.endswith("config.json"))
    assert readers["model.safetensors"] != first
    assert main(["witness", str(record), str(model / "config.json")]) == 0
    assert main(["witness", str(record), str(model / "model.safetensors")]) == 0
    (model / "config.json").write_text((model / "config.json").read_text().replace("512", "513"))
    assert main(["witness", str(record), str(model / "config.json")]) == 1
    assert "opened other content" in capsys.readouterr().out
