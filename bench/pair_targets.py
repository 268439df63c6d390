"""What the shipped targets know, and what copying alone would give: numbers of the pair's model card.

For each target and each set of held-out prompts: nats per token of the corpus's own answers, entropy per
token of the target along its own greedy text, and tau of the n-gram method on that text.

    python bench/pair_targets.py --prompts 240
"""

import argparse
import json
import random
from importlib.resources import files
from pathlib import Path

import torch

from draftproof.engine.engine import Engine
from draftproof.engine.text.stopping import Stopping
from draftproof.training.corpus.document import Document
from draftproof.training.vocabulary import Pieces

PAIR = Path(str(files("draftproof"))) / "pair"
LONGEST = 160
"""Tokens of one answer."""


def main() -> None:
    """Measure and print one JSON object a line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pair", type=Path, default=PAIR)
    parser.add_argument("--targets", default="hybrid,dense")
    parser.add_argument("--prompts", type=int, default=240)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for target in given.targets.split(","):
        for which in ("procedural", "real"):
            print(json.dumps(measured(given.pair / target, which, given.prompts)), flush=True)


def measured(target: Path, which: str, count: int) -> dict[str, object]:
    """One target on one set."""
    plain = Engine.load(str(target), None, method="ar")
    ngram = Engine.load(str(target), None, method="ngram")
    assert plain.text is not None, "a target without its tokenizer"  # noqa: S101 - invariant
    pieces = Pieces(plain.text.tokenizer)
    lines = (PAIR / "prompts" / f"{which}.jsonl").read_text(encoding="utf-8").splitlines()[:count]
    nats: list[float] = []
    entropy: list[float] = []
    taus: list[tuple[int, int]] = []
    for line in lines:
        said = json.loads(line)
        document = Document(said["kind"], said["prompt"], said["response"], said["is_chat"])
        prompt, answer = pieces.prompt(document), pieces.response(document)
        nats += _losses(plain, prompt, answer)
        stopping = Stopping(LONGEST, frozenset({pieces.end, pieces.end_of_text}), (), ignore_eos=False)
        found = ngram.generate(prompt, stopping=stopping)
        own = list(found.token_ids)
        entropy += _entropies(plain, prompt, own)
        steps = found.acceptance()
        taus.append((steps.num_accepted + steps.num_steps, steps.num_steps))
    low, high = _interval(taus)
    return {
        "target": target.name,
        "set": which,
        "prompts": len(lines),
        "nats_per_token": round(sum(nats) / len(nats), 4),
        "entropy_per_token": round(sum(entropy) / len(entropy), 4),
        "ngram_tau": round(sum(t for t, _ in taus) / sum(s for _, s in taus), 3),
        "ngram_tau_95": [low, high],
    }


def _logits(engine: Engine, prompt: list[int], answer: list[int]) -> torch.Tensor:
    """[answer, V]: what the target said before each token of the answer."""
    run = engine.target.forward(engine.target.new_session(), [*prompt, *answer][:-1], num_logits=len(answer))
    return run.logits.log_softmax(-1)


def _losses(engine: Engine, prompt: list[int], answer: list[int]) -> list[float]:
    found: list[float] = (
        -_logits(engine, prompt, answer).gather(1, torch.tensor(answer)[:, None])[:, 0]
    ).tolist()
    return found


def _entropies(engine: Engine, prompt: list[int], answer: list[int]) -> list[float]:
    logits = _logits(engine, prompt, answer)
    found: list[float] = (-(logits.exp() * logits).sum(-1)).tolist()
    return found


def _interval(taus: list[tuple[int, int]]) -> tuple[float, float]:
    """Bootstrap over prompts, 95 %."""
    draws = random.Random(0)  # noqa: S311 - bootstrap, no secret
    means = []
    for _ in range(1000):
        drawn = draws.choices(taus, k=len(taus))
        means.append(sum(t for t, _ in drawn) / sum(s for _, s in drawn))
    means.sort()
    return round(means[25], 3), round(means[974], 3)


if __name__ == "__main__":
    main()
