"""Tokens a second of the engine and of transformers' generate: same weights, data type and threads.

Arms take turns, round after round, so that a busy moment of the machine falls on all of them. Wall time and
CPU time are both kept: on a shared machine the second is the one to trust. Prints medians with the smallest
and largest, and writes every run to a CSV file.

    python bench/engine_speed.py [--rounds 7] [--tokens 128] [--threads 1] [--csv FILE] [--gguf FILE]

``--gguf`` needs ``accelerate``: transformers reads GGUF files with it.
"""

import argparse
import csv
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import transformers

from draftproof.engine.engine import Engine
from draftproof.engine.generation import Generation
from draftproof.engine.text.stopping import Stopping

PROMPT_LENGTH = 32
COMMON = {
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 4096,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
}


@dataclass(frozen=True, slots=True)
class Run:
    """One timed generation."""

    model: str
    dtype: str
    threads: int
    arm: str
    round: int
    tokens: int
    wall_s: float
    cpu_s: float
    tau: float
    outside_forward: float
    """Share of the decoding time spent outside the target's forward passes; 0 where it is not known."""


def write_models(folder: Path) -> dict[str, Path]:
    """Seeded random checkpoints, written by transformers itself."""
    torch.manual_seed(0)
    hybrid = transformers.Qwen3_5TextConfig(
        **COMMON,
        linear_num_key_heads=4,
        linear_num_value_heads=8,
        linear_key_head_dim=32,
        linear_value_head_dim=32,
        layer_types=(["linear_attention"] * 3 + ["full_attention"]) * 2,
    )
    transformers.Qwen3_5ForCausalLM(hybrid).save_pretrained(folder / "hybrid-8m")
    transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**COMMON)).save_pretrained(folder / "dense-8m")
    return {name: folder / name for name in ("dense-8m", "hybrid-8m")}


def arms_of(path: Path, dtype: str, tokens: int) -> dict[str, Callable[[list[int]], Generation | int]]:
    """What is timed: each takes a prompt and gives its generation, or how many tokens it made."""
    if path.suffix == ".gguf":
        peer = transformers.AutoModelForCausalLM.from_pretrained(
            path.parent,
            gguf_file=path.name,
            quantization_config=transformers.GgufConfig(dequantize=True),  # plain weights, as here
            dtype=getattr(torch, dtype),
        )
    else:
        peer = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, dtype))
    peer.generation_config.eos_token_id = None

    def transformers_arm(prompt: list[int]) -> int:
        ids = torch.tensor([prompt])
        made = peer.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, do_sample=False, pad_token_id=0
        )
        return int(made.shape[1]) - len(prompt)

    def engine_arm(method: str) -> Callable[[list[int]], Generation]:
        engine = Engine.load(path, dtype=dtype, method=method, with_text=False)
        return lambda prompt: engine.generate(prompt, stopping=Stopping(tokens, ignore_eos=True))

    return {"transformers": transformers_arm, "ar": engine_arm("ar"), "ngram": engine_arm("ngram")}


def timed(name: str, dtype: str, arm: str, number: int, work: Callable[[], Generation | int]) -> Run:
    """One run, by both clocks."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    threads = torch.get_num_threads()
    if isinstance(made, int):
        return Run(name, dtype, threads, arm, number, made, wall, cpu, 1.0, 0.0)
    share = 1 - made.seconds.verify / made.seconds.decode
    return Run(
        name, dtype, threads, arm, number, len(made.token_ids), wall, cpu, made.acceptance().tau, share
    )


def bench(name: str, path: Path, dtype: str, rounds: int, tokens: int) -> list[Run]:
    """All rounds of one model; the first round warms up and is not kept."""
    arms = arms_of(path, dtype, tokens)
    prompt = torch.randint(5, 4000, (PROMPT_LENGTH,), generator=torch.Generator().manual_seed(1)).tolist()
    runs = [
        timed(name, dtype, arm, number, lambda work=work: work(prompt))  # type: ignore[misc]
        for number in range(rounds + 1)
        for arm, work in arms.items()
    ]
    return [run for run in runs if run.round > 0]


def report(runs: list[Run]) -> None:
    """Medians (smallest to largest) of tokens a second, and ratios to transformers by CPU time."""
    peers = [run.tokens / run.cpu_s for run in runs if run.arm == "transformers"]
    for arm in dict.fromkeys(run.arm for run in runs):
        mine = [run for run in runs if run.arm == arm]
        by_cpu = [run.tokens / run.cpu_s for run in mine]
        by_wall = [run.tokens / run.wall_s for run in mine]
        outside = statistics.median(run.outside_forward for run in mine)
        head = f"{mine[0].model} {mine[0].dtype} {mine[0].threads} threads {arm}"
        print(
            f"{head}: {_spread(by_cpu)} tokens per CPU second, {_spread(by_wall)} per second, "
            f"{statistics.median(by_cpu) / statistics.median(peers):.2f} x transformers, "
            f"tau {mine[0].tau:.2f}, {outside:.0%} outside forwards"
        )


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--csv", type=Path, default=Path("out/engine_speed.csv"))
    parser.add_argument("--gguf", type=Path, help="a Llama-like GGUF file to time in bfloat16 as well")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, {options.rounds} rounds")
    runs: list[Run] = []
    with tempfile.TemporaryDirectory() as folder:
        cases = [(name, path, "float32") for name, path in write_models(Path(folder)).items()]
        if options.gguf is not None:
            cases.append((options.gguf.stem, options.gguf, "bfloat16"))
        for name, path, dtype in cases:
            runs += (mine := bench(name, path, dtype, options.rounds, options.tokens))
            report(mine)
    options.csv.parent.mkdir(parents=True, exist_ok=True)
    with options.csv.open("w", newline="", encoding="ascii") as file:
        writer = csv.DictWriter(file, fieldnames=list(asdict(runs[0])))
        writer.writeheader()
        writer.writerows(asdict(run) for run in runs)
    print(f"every run: {options.csv}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
