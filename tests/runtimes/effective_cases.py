"""Pairs put to real engines: healthy drafters of every kind, and faults that engines take in silence.

``python tests/runtimes/effective_cases.py`` asks the engines in their environments and records what they say.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from draftproof.findings.evidence import Model, read_model
from draftproof.runtimes.asking import EnginePython
from draftproof.runtimes.interpreter import Answer
from draftproof.runtimes.pair import Pair
from draftproof.runtimes.resolve import drafter_of
from draftproof.runtimes.vllm.preflight_reading import speculative_config
from environments import sglang_python, vllm_old_python, vllm_python
from runtimes.tiny_checkpoints import (
    DFLASH,
    DRAFT,
    EAGLE3,
    SPECULATORS,
    TARGET,
    changed,
    dflash_tensors,
    write,
)

__all__ = [
    "CASES",
    "ENGINES",
    "RECORDED",
    "TRANSCRIPTS",
    "WANTED",
    "laid_out",
    "pair_of",
    "python_of",
    "request_of",
]

TRANSCRIPTS = Path(__file__).parent / "transcripts"
SLIDING = changed(
    DFLASH,
    layer_types=["sliding_attention", "sliding_attention"],
    sliding_window=32,
    use_sliding_window=True,
    max_window_layers=2,
)
MIXED = changed(SLIDING, layer_types=["sliding_attention", "full_attention"])
WINDOWED = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 32}

CASES: Mapping[str, tuple[dict[str, Any], int | None]] = {
    "full": (DFLASH, None),
    "sliding": (SLIDING, None),
    "mixed": (MIXED, None),
    "no-gate": (changed(SLIDING, use_sliding_window=None), None),
    "out-of-range": (changed(DFLASH, dflash_config__target_layer_ids=[1, 3, 9]), None),
    "duplicate": (changed(DFLASH, dflash_config__target_layer_ids=[1, 3, 3]), None),
    "unsorted": (changed(DFLASH, dflash_config__target_layer_ids=[5, 3, 1]), None),
    "off-by-one": (changed(DFLASH, dflash_config__target_layer_ids=[0, 2, 4]), None),
    "no-mask": (changed(DFLASH, dflash_config__mask_token_id=None), None),
    "mask-beyond": (changed(DFLASH, dflash_config__mask_token_id=600), None),
    "mask-other": (changed(DFLASH, dflash_config__mask_token_id=5), None),
    "mask-at-top": (changed(DFLASH, dflash_config__mask_token_id=None, mask_token_id=3), None),
    "overridden": (changed(DFLASH, eagle_aux_hidden_state_layer_ids=[1, 3, 5]), None),
    "too-many": (DFLASH, 15),
    "speculators": (SPECULATORS, None),
    "speculators-window-at-top": (changed(SPECULATORS, **WINDOWED), None),
    "speculators-causal": (
        changed(
            SPECULATORS,
            sliding_window_non_causal=False,
            transformer_layer_config__layer_types=WINDOWED["layer_types"],
            transformer_layer_config__sliding_window=32,
            transformer_layer_config__use_sliding_window=True,
        ),
        None,
    ),
    "eagle3": (EAGLE3, 3),
    "eagle3-nested": (
        changed(
            EAGLE3,
            eagle_aux_hidden_state_layer_ids=None,
            eagle_config={"eagle_aux_hidden_state_layer_ids": [1, 3, 6]},
        ),
        3,
    ),
    "draft-model": (DRAFT, 3),
}
"""Name -> the drafter's config and the number of draft tokens asked for."""

OLD = ("full", "sliding", "unsorted", "mask-at-top", "speculators", "eagle3", "eagle3-nested", "draft-model")
SGLANG = ("full", "sliding", "mixed", "no-gate", "out-of-range", "unsorted", "no-mask")
ENGINES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "vllm-0.32.0": ("vllm.preflight", tuple(CASES)),
    "vllm-0.20.1": ("vllm.preflight", OLD),
    "sglang-0.5.23": ("sglang.preflight", SGLANG),
}
"""Engine -> the program that asks it, and the cases it is asked about."""

RECORDED = ("sglang-0.5.23", "vllm-0.20.1", "vllm-0.32.0")
"""Engines whose answers are recorded."""

WANTED: dict[tuple[str, str], set[str]] = {
    ("vllm-0.32.0", "full"): set(),
    ("vllm-0.32.0", "sliding"): set(),
    ("vllm-0.32.0", "mixed"): {"effective-refused"},
    ("vllm-0.32.0", "no-gate"): {"effective-refused"},
    ("vllm-0.32.0", "out-of-range"): {"effective-fails-at-first-draft"},
    ("vllm-0.32.0", "duplicate"): {"effective-taps", "effective-fails-at-first-draft"},
    ("vllm-0.32.0", "unsorted"): {"effective-taps"},
    ("vllm-0.32.0", "off-by-one"): set(),  # BYTES against the intent: no engine can tell
    ("vllm-0.32.0", "no-mask"): {"effective-refused"},
    ("vllm-0.32.0", "mask-beyond"): {"effective-fails-at-first-draft"},
    ("vllm-0.32.0", "mask-other"): set(),  # the same
    ("vllm-0.32.0", "mask-at-top"): set(),
    ("vllm-0.32.0", "overridden"): {"effective-taps"},
    ("vllm-0.32.0", "too-many"): {"effective-draft-tokens"},
    ("vllm-0.32.0", "speculators"): set(),
    ("vllm-0.32.0", "speculators-causal"): {"effective-refused", "effective-causality"},
    ("vllm-0.32.0", "eagle3"): set(),
    ("vllm-0.32.0", "eagle3-nested"): {"effective-taps"},  # SGLang's key and meaning, taken literally here
    ("vllm-0.32.0", "draft-model"): set(),
    ("vllm-0.20.1", "full"): {"taps-read-literally"},
    ("vllm-0.20.1", "sliding"): {"taps-read-literally", "effective-window", "effective-causality"},
    ("vllm-0.20.1", "unsorted"): {"effective-taps"},
    ("vllm-0.20.1", "speculators"): set(),
    ("vllm-0.20.1", "eagle3"): set(),
    ("vllm-0.20.1", "eagle3-nested"): {"effective-taps"},  # not read there: its own default taps
    ("vllm-0.20.1", "draft-model"): set(),
    ("sglang-0.5.23", "full"): set(),
    ("sglang-0.5.23", "sliding"): set(),
    ("sglang-0.5.23", "mixed"): set(),
    ("sglang-0.5.23", "no-gate"): {"effective-refused"},
    ("sglang-0.5.23", "out-of-range"): {"effective-refused"},
    ("sglang-0.5.23", "unsorted"): {"effective-taps"},
    ("sglang-0.5.23", "no-mask"): set(),  # not known before a start: SGLang asks the tokenizer
}
"""Engine and case -> the findings above a note."""


def python_of(engine: str) -> Path:
    """The engine's interpreter, made if it is not there."""
    makers = {"vllm-0.32.0": vllm_python, "vllm-0.20.1": vllm_old_python, "sglang-0.5.23": sglang_python}
    return makers[engine]()


def laid_out(folder: Path, case: str) -> tuple[Model, Model]:
    """Drafter and target of a case on disk; a DFlash drafter with weights."""
    config = CASES[case][0]
    tensors = dflash_tensors(config) if "dflash_config" in config else None
    drafter = write(folder / case, config, tensors)
    return read_model(str(drafter)), read_model(str(write(folder / "target", TARGET)))


def pair_of(folder: Path, case: str) -> Pair:
    """The question about a case. Raises AssertionError where the case holds no drafter."""
    subject, target = laid_out(folder, case)
    drafter = drafter_of(subject, target)
    assert drafter is not None, case
    return Pair(subject.given, target.given, drafter, CASES[case][1])


def request_of(engine: str, pair: Pair) -> dict[str, object]:
    """One entry of a program's request."""
    if engine.startswith("sglang"):
        names = (pair.drafter_path, pair.target_path, pair.num_draft_tokens)
        return dict(zip(("drafter", "target", "num_draft_tokens"), names, strict=True))
    return {**speculative_config(pair), "target": pair.target_path, "engine_args": {}}


def main() -> None:
    """Record every engine's answers, with no path of this machine in them."""
    folder = Path("/tmp/draftproof-effective")  # noqa: S108 - the same in every recording
    for engine in sys.argv[1:] or list(ENGINES):
        program, cases = ENGINES[engine]
        pairs = [request_of(engine, pair_of(folder, case)) for case in cases]
        python = EnginePython(str(python_of(engine)))
        answer = python.ask(program, {"pairs": pairs}, timeout_seconds=3600)
        assert isinstance(answer, Answer), answer
        text = json.dumps(answer.body, indent=1, sort_keys=True)
        text = text.replace(str(Path(__file__).parents[2]), "/opt/draftproof")
        (TRANSCRIPTS / f"effective-{engine}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
