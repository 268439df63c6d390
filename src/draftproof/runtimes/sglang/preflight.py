"""The program that runs beside SGLang and lets its own functions resolve a DFlash drafter.

Sent as text after ``runtimes.frame`` and ``runtimes.lifting``. SGLang is not imported, its modules load
kernels: the functions named below are lifted out of its source. Windows are told as the file counts them, one
more than SGLang's ``window_left``.

Request: ``{"pairs": [{"drafter", "target", "num_draft_tokens"}]}``, paths or configs sent along.
Source: SGLang 0.5.11 and 0.5.23.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from types import SimpleNamespace
from typing import Any

from draftproof.runtimes.frame import Json, attempt, placed, said, serve
from draftproof.runtimes.lifting import lifted, root_of

UTILS = "sglang/srt/speculative/dflash_utils.py"
MODEL = "sglang/srt/models/dflash.py"
PARSE = (UTILS, "parse_dflash_draft_config")
LAYER = (MODEL, "_get_dflash_layer_attention_params")
HOOKS = {
    "Qwen3ForCausalLM": ("sglang/srt/models/qwen3.py", "Qwen3ForCausalLM.set_dflash_layers_to_capture"),
    "Qwen3MoeForCausalLM": (
        "sglang/srt/models/qwen3_moe.py",
        "Qwen3MoeForCausalLM.set_dflash_layers_to_capture",
    ),
}
"""Architecture of the target -> the function that sets its taps; for others the table answers."""

KIND = SimpleNamespace(ENCODER_ONLY="encoder_only", DECODER="decoder")


def look(request: Json) -> Json:
    """Everything SGLang's functions say about each pair, or that there is no SGLang here."""
    root, error = attempt(root_of, "sglang")
    if error:
        return {"engine": None, "reason": said(error)}
    version, error = attempt(importlib.metadata.version, "sglang")
    if error:
        return {"engine": None, "reason": f"a directory {root} without a version ({said(error)})"}
    engine = {"name": "sglang", "version": version, "path": str(root)}
    return {"engine": engine, "records": [record(pair) for pair in placed(request["pairs"])]}


def record(pair: Json) -> Json:
    """Everything about one pair."""
    transformers, error = attempt(importlib.import_module, "transformers")
    answer: Json = {"facts": {}, "layers": None, "config": None, "refusal": None, "tensors": None}
    if error:
        return {**answer, "refusal": said(error)}
    read = transformers.AutoConfig.from_pretrained
    configs, error = attempt(lambda: [read(pair[name]) for name in ("drafter", "target")])
    if error:
        return {**answer, "refusal": said(error)}
    hf, target = configs
    facts: Json = {}
    facts["num_target_layers"] = told(int(target.get_text_config().num_hidden_layers), "target config")
    facts["method"] = told("dflash", "the request")
    parsed, error = called(facts, "mask_id", PARSE, lambda parse: parse(draft_hf_config=hf))
    if not error:
        of_parsed(facts, parsed, target, pair)
    return {**answer, "facts": facts, "layers": layers(hf), "config": plain(hf)}


def called(
    facts: Json, name: str, place: tuple[str, str], call: Any, **names: Any
) -> tuple[Any, Json | None]:
    """What a lifted function says; without it, or when it raises, why, kept under ``name``."""
    function, error = attempt(lifted, *place, names)
    if error:
        facts[name] = {"missing": f"{place[0]} {place[1]}: {said(error)}"}
        return None, error
    value, error = attempt(call, function)
    if error:
        facts[name] = {"raised": said(error), "source": source_of(place)}
    return value, error


def of_parsed(facts: Json, parsed: Any, target: Any, pair: Json) -> None:
    """Mask, draft tokens and taps, from what SGLang's parser made of the config."""
    source = source_of(PARSE)
    if parsed.mask_token_id is None:
        facts["mask_id"] = {"unknown": f"taken from the tokenizer ({parsed.mask_token!r}), or added to it"}
    else:
        facts["mask_id"] = told(int(parsed.mask_token_id), source)
    block = int(parsed.resolve_block_size(default=16))
    facts["k"] = told(
        pair["num_draft_tokens"] or block - 1, f"{source} block size {block}, the anchor counted"
    )
    depth = facts["num_target_layers"]["value"]
    ids, error = attempt(lambda: parsed.resolve_target_layer_ids(target_num_layers=depth))
    if error:
        facts["aux_layers"] = {"raised": said(error), "source": source}
        return
    place = HOOKS.get((target.architectures or [""])[0])
    if place is None:
        return
    captured, error = called(facts, "aux_layers", place, lambda hook: taps_after(hook, list(ids)))
    if not error:
        facts["aux_requested"] = told(captured, source_of(place))
        facts["aux_layers"] = told(sorted(set(captured)), source_of(place))


def taps_after(hook: Any, ids: list[int]) -> list[int]:
    """What a target holds after the function that sets its taps, called on an object with nothing loaded."""
    holder = SimpleNamespace(pp_group=SimpleNamespace(is_last_rank=True), model=SimpleNamespace())
    hook(holder, ids)
    return list(holder.model.layers_to_capture)


def layers(hf: Any) -> list[Json] | None:
    """Window and causality per layer; None before 0.5.14, which has no function for it."""
    kinds, error = attempt(lifted, UTILS, "get_dflash_layer_types", {})
    window, gone = attempt(lifted, UTILS, "get_dflash_attention_sliding_window_size", {})
    if error or gone:
        return None
    names = {
        "AttentionType": KIND,
        "get_dflash_layer_types": kinds,
        "get_dflash_attention_sliding_window_size": window,
    }
    function, error = attempt(lifted, *LAYER, names)
    if error:
        return None
    return [layer(function, hf, index) for index in range(int(hf.num_hidden_layers))]


def layer(function: Any, hf: Any, index: int) -> Json:
    """One layer: SGLang keeps how many tokens lie to the left, -1 for all."""
    pair, error = attempt(function, hf, index)
    source = source_of(LAYER)
    if error:
        raised = {"raised": said(error), "source": source}
        return {"window": raised, "causal": raised}
    left, kind = pair
    window = None if left < 0 else left + 1
    return {
        "window": told(window, f"{source}: window_left {left}"),
        "causal": told(kind == KIND.DECODER, source),
    }


def source_of(place: tuple[str, str]) -> str:
    """A function in words."""
    return f"{place[0]} {place[1]}, lifted from its source"


def told(value: Any, source: str) -> Json:
    """A value with its source."""
    return {"value": value, "source": source}


def plain(hf: Any) -> Json | None:
    """A config object's own values."""
    values, _ = attempt(hf.to_dict)
    return values if isinstance(values, dict) else None


def main() -> None:
    """Answer one request."""
    serve(look)
