"""Files that the parsed view is tested on, and what two real versions of transformers said about them.

``python tests/runtimes/record.py`` asks the real libraries again and writes the transcripts anew; a live
test holds that they are still what the libraries say.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from draftproof.config.raw import JsonValue, RawConfig, parse_raw
from draftproof.runtimes.hf.compare import compare
from draftproof.runtimes.hf.fields import FieldReading
from draftproof.runtimes.hf.reading import HfReading, parse_answer

__all__ = ["CASES", "CONFIGS", "TRANSCRIPTS", "field_of", "raw_of", "reading_of", "recorded"]

HERE = Path(__file__).parent
CONFIGS = HERE.parent / "configs"
TRANSCRIPTS = HERE / "transcripts"

SSSSF: JsonValue = [*["sliding_attention"] * 4, "full_attention"]
FFFFF: JsonValue = ["full_attention"] * 5

BASE: dict[str, JsonValue] = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "vocab_size": 248320,
    "hidden_size": 5120,
    "intermediate_size": 17408,
    "num_hidden_layers": 5,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "block_size": 16,
    "dflash_config": {"mask_token_id": 248070, "target_layer_ids": [1, 16, 31, 46, 61]},
    "rope_theta": 10000000,
}


def _with(*without: str, **fields: JsonValue) -> str:
    return (
        json.dumps({key: value for key, value in BASE.items() if key not in without} | fields, indent=1)
        + "\n"
    )


NESTED: JsonValue = {"rope_theta": 10000000, "rope_type": "default"}
YARN: dict[str, JsonValue] = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}

CASES: Mapping[str, str] = {
    # Five variants of one window, A to E.
    "A window alone": _with(sliding_window=2048),
    "B window and switch": _with(sliding_window=2048, use_sliding_window=True),
    "C types without switch": _with(sliding_window=2048, layer_types=SSSSF),
    "D types and switch": _with(sliding_window=2048, layer_types=SSSSF, use_sliding_window=True),
    "E all full": _with(sliding_window=None, layer_types=FFFFF),
    # One rotary base, flat and nested.
    "flat rope": _with(),
    "nested rope": _with("rope_theta", rope_parameters=NESTED),
    "both ropes": _with(rope_theta=5000000, rope_parameters=NESTED),
    "both ropes agree": _with(rope_parameters=NESTED),
    "flat yarn": _with(rope_scaling=YARN),
    "nested yarn": _with("rope_theta", rope_parameters={"rope_theta": 10000000, **YARN}),
    "no rope": _with("rope_theta"),
    # The remaining rows of the table of what Qwen3Config does with a window.
    "types, switch false": _with(sliding_window=2048, layer_types=SSSSF, use_sliding_window=False),
    "starts at 0": _with(sliding_window=2048, use_sliding_window=True, max_window_layers=0),
    "starts at 4": _with(sliding_window=2048, use_sliding_window=True, max_window_layers=4),
    "starts at its depth": _with(sliding_window=2048, use_sliding_window=True, max_window_layers=5),
    "nulls": _with(sliding_window=None, layer_types=None),
    "types, no window": _with(layer_types=SSSSF, use_sliding_window=True),
    "types, null window": _with(layer_types=SSSSF, use_sliding_window=True, sliding_window=None),
    "three types": _with(layer_types=["sliding_attention", "sliding_attention", "full_attention"]),
    "full types, stray window": _with(sliding_window=2048, layer_types=FFFFF),
    # Further ways in which a field may fare.
    "window switched off": _with(sliding_window=4096, use_sliding_window=False),
    "unknown label": _with(layer_types=["slipping_attention"] * 5),
    "legacy labels": _with(layer_types=["attention"] * 5),
    "old dtype": _with(torch_dtype="bfloat16"),
    "vocabulary missing": _with("vocab_size"),
    "float count": _with(attention_dropout=0, rms_norm_eps=1e-6, initializer_range=1),
    "null head_dim": _with(head_dim=None),
    "generation settings": _with(temperature=0.7, max_length=20),
    "no model_type": _with("model_type"),
    "unknown model_type": _with(model_type="qwen300"),
    "code in auto_map": _with(auto_map={"AutoConfig": "configuration_evil.EvilConfig"}),
    "class in auto_map": _with(model_type="evil", auto_map={"AutoConfig": "configuration_evil.EvilConfig"}),
    "speculators": json.dumps({"speculators_model_type": "dflash", "transformer_layer_config": BASE}) + "\n",
    **{
        name: (CONFIGS / name).read_text(encoding="utf-8")
        for name in (
            "casestudy-qwen3.6-27b-dflash-STALE-reconstructed.json",
            "qwen3.6-27b-target.json",
            "specforge-llama3-8b-eagle3.json",
            "zlab-gpt-oss-20b-dflash.json",
            "zlab-qwen3.6-27b-dflash.json",
            "zlab-qwen3.6-35b-a3b-dflash.json",
        )
    },
}


def recorded(version: str) -> dict[str, Any]:
    """Case -> the probe's recorded answer, with this version of transformers."""
    text = (TRANSCRIPTS / f"transformers-{version}.json").read_text(encoding="utf-8")
    answers: dict[str, Any] = json.loads(text)
    return answers


def raw_of(case: str) -> RawConfig:
    """The case's file."""
    return parse_raw(CASES[case].encode(), f"{case}.json")


def reading_of(case: str, version: str) -> HfReading:
    """What this version said about the case."""
    reading = parse_answer(f"python-{version}", recorded(version)[case])
    assert isinstance(reading, HfReading), reading
    return reading


def field_of(case: str, version: str, pointer: str) -> FieldReading:
    """What became of one field of the case."""
    fields = compare(raw_of(case).value, reading_of(case, version))
    path = tuple(pointer.split("/")[1:])
    return next(field for field in fields if field.path == path)
