"""What only a GPU can show: the proofs there, agreement with the CPU, training, tokens a second by method.

Run: ``bash bench/gpu_check.sh [FOLDER]``; with ``--device cpu`` it rehearses on any machine. Exit 1 if a
proof fails or the devices disagree. ``--compile MODE`` times the plain and the compiled target instead, with
``torch.compile``'s default kernels or with CUDA graphs (``reduce-overhead``).
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import torch

import draftproof
from draftproof.engine.engine import Engine
from draftproof.engine.load_compiled import CompiledDecoder, check_compiler
from draftproof.engine.proof.adversary import Adversary
from draftproof.engine.proof.selftest import run_selftest
from draftproof.engine.proof.tiny import TINY, write_tiny_target
from draftproof.engine.proposers.propose import NgramProposer
from draftproof.engine.text.stopping import Stopping
from draftproof.speculation.tree import DraftTree
from draftproof.training.drafters.train import Job, train_dflash, train_eagle3, train_mtp
from draftproof.training.loop import Report

PAIR = Path(draftproof.__file__).parent / "pair"
LEFT = {"dflash": 0.9, "eagle3": 0.9, "mtp": 1.1}
"""Share of the first loss that is left at most; the head has been trained before, and begins near its end."""

NEAR = 0.1
"""How far apart, as a share, the losses of two precisions may end."""

BOUNDS = {"float64": 1e-11, "float32": 5e-4, "bfloat16": 0.15}
"""Largest difference over largest logit, device against the CPU's float64, after 64 tokens.

float32 leaves room for other orders of summation; bfloat16 has 8 bits, and errors of 4 layers add up.
"""

SCALE = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "vocab_size": 32768,
    "max_position_embeddings": 4096,
}
"""About a hundred million parameters with the depth below."""

TREE = DraftTree([3, 4, 5, 6, 7, 8], [-1, 0, 0, 1, 2, 3, 1])


def proofs(device: str, folder: Path) -> bool:
    """The self-test on the device."""
    checks = list(run_selftest(folder, device=device))
    failed = [check for check in checks if not check.holds]
    for check in failed:
        print(f"FAIL {check.name}: {check.measured:.3g}, at most {check.bound:g}")
    print(f"self-test on {device}: {len(checks)} checks ran, {len(failed)} failed")
    return not failed


def agreement(device: str, folder: Path) -> bool:
    """Logits over a tree on the device, in three data types, against float64 on the CPU."""
    prompt = torch.randint(0, 128, (64,), generator=torch.Generator().manual_seed(0)).tolist()
    holds = True
    for kind in TINY:
        reference = tree_logits(Engine.load(folder / kind, dtype="float64", with_text=False), prompt)
        for dtype, bound in BOUNDS.items():
            engine = Engine.load(folder / kind, device=device, dtype=dtype, with_text=False)
            found = tree_logits(engine, prompt)
            distance = float((found - reference).abs().max() / reference.abs().max())
            holds &= distance <= bound
            verdict = "ok  " if distance <= bound else "FAIL"
            print(f"{verdict} {kind} {dtype} {device} against cpu float64: {distance:.2e}, at most {bound:g}")
    return holds


def tree_logits(engine: Engine, prompt: list[int]) -> torch.Tensor:
    """[7, V] float64 on the CPU."""
    session = engine.target.new_session()
    engine.target.prefill(session, prompt[:-1])
    return engine.target.verify(session, prompt[-1], TREE).logits.double().cpu()


def speed(
    device: str, folder: Path, *, layers: int, tokens: int, rounds: int, compiled: str | None = None
) -> None:
    """Tokens a second of plain decoding, prompt lookup and half-true trees, interleaved, bfloat16.

    With a mode of ``torch.compile``, of the plain and the compiled target instead.
    """
    for kind, config in TINY.items():
        types = (config["layer_types"] * layers)[:layers]
        scaled = {**config, **SCALE, "num_hidden_layers": layers, "layer_types": types, "dtype": "bfloat16"}
        write_tiny_target(folder / f"{kind}-large", kind, config=scaled)
        engine = Engine.load(folder / f"{kind}-large", device=device, dtype="bfloat16", with_text=False)
        prompt = list(range(64))
        alone = engine.generate(prompt, stopping=Stopping(tokens, ignore_eos=True)).token_ids
        truth = [*prompt, *alone]
        arms = {
            "ar": engine,
            "ngram": replace(engine, start_proposer=NgramProposer),
            "half-true tree": replace(
                engine, start_proposer=lambda truth=truth: Adversary(truth, 32768, 0, max_nodes=16)
            ),
        }
        if compiled is not None:
            check_compiler(torch.device(device))
            target = CompiledDecoder(engine.target, None if compiled == "default" else compiled)
            arms = {"ar": engine, f"ar, compiled ({compiled})": replace(engine, target=target)}
            for arm in arms.values():  # the compiler's time is not the target's
                arm.generate(prompt, stopping=Stopping(tokens, ignore_eos=True))
        rates: dict[str, list[float]] = {name: [] for name in arms}
        taus: dict[str, float] = {}
        for _ in range(rounds):
            for name, arm in arms.items():
                began = time.perf_counter()
                made = arm.generate(prompt, stopping=Stopping(tokens, ignore_eos=True))
                rates[name].append(len(made.token_ids) / (time.perf_counter() - began))
                taus[name] = made.acceptance().tau
        for name, values in rates.items():
            record = {
                "device": device,
                "target": f"{kind}, {layers} layers of {SCALE['hidden_size']}, bfloat16",
                "method": name,
                "tokens_per_s": round(statistics.median(values), 1),
                "smallest": round(min(values), 1),
                "largest": round(max(values), 1),
                "tau": round(taus[name], 3),
            }
            print(json.dumps(record))


def training(device: str, folder: Path) -> bool:
    """Small drafters of the pair's hybrid on the device: losses fall, and bfloat16 ends near float32."""
    holds = True
    for what, train in (("dflash", train_dflash), ("eagle3", train_eagle3), ("mtp", train_mtp)):
        losses = []
        for dtype in ("float32", "bfloat16"):
            reports: list[Report] = []
            recipe = shortened(what, folder / f"{what}-{dtype}.toml", device, dtype)
            train(Job(recipe, folder / f"{what}-{dtype}", reports.append))
            first, last = (report.figures["loss"] for report in (reports[0], reports[-1]))
            losses.append(last)
            holds &= last < LEFT[what] * first
            verdict = "ok  " if last < LEFT[what] * first else "FAIL"
            speed = f"{1e3 * reports[-1].seconds:.0f} ms a step"
            print(f"{verdict} train {what} {dtype} {device}: loss {first:.3f} to {last:.3f}, {speed}")
        is_near = abs(losses[1] - losses[0]) < NEAR * losses[0]
        holds &= is_near
        print(f"{'ok  ' if is_near else 'FAIL'} train {what}: bfloat16 within {NEAR:.0%} of float32")
    return holds


def shortened(what: str, path: Path, device: str, dtype: str) -> Path:
    """The shipped recipe with few answers and steps, from drawn weights, on the device."""
    said = tomllib.loads((PAIR / "recipes" / f"hybrid-{what}.toml").read_text(encoding="utf-8"))
    said["target"] = str(PAIR / "hybrid")
    said["responses"] |= {"count": 32, "manifest": str(PAIR / "corpus.json")}
    said["training"] |= {"steps": 30, "report_every": 5, "start": ""}
    said["machine"] = {"device": device, "dtype": dtype}
    tables = {name: value for name, value in said.items() if isinstance(value, dict)}
    lines = [f"{name} = {json.dumps(value)}" for name, value in said.items() if name not in tables]
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def main() -> int:
    """Run all four."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--compile", choices=("default", "reduce-overhead"))
    options = parser.parse_args()
    name = torch.cuda.get_device_name() if options.device.startswith("cuda") else "CPU"
    print(f"torch {torch.__version__} on {name}")
    with tempfile.TemporaryDirectory() as folder:
        root, sizes = Path(folder), {"layers": options.layers, "tokens": options.tokens}
        if options.compile is not None:
            speed(options.device, root, **sizes, rounds=options.rounds, compiled=options.compile)
            return 0
        holds = proofs(options.device, root)
        holds &= agreement(options.device, root)
        holds &= training(options.device.partition(":")[0], root)
        speed(options.device, root, **sizes, rounds=options.rounds)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
