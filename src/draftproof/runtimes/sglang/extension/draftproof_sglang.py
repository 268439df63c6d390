"""What an SGLang worker really holds of its DFlash drafter: a plugin, one file, standard library only.

SGLang loads it by an entry point of the group ``sglang.srt.plugins``; the ``.dist-info`` directory beside it
declares one: that their directory stands on PYTHONPATH is enough. When the worker has been made, it writes
``effective-RANK.json`` into the directory that DRAFTPROOF_EFFECTIVE names. Nothing is changed.

Windows are told as the config counts them, one more than ``window_left``. Source: SGLang 0.5.23
plugins/hook_registry.py, speculative/dflash_worker_v2.py, models/dflash.py; 0.5.11 dflash_worker.py. It was
read against that source and run on stand-ins only: SGLang's DFlash needs an accelerator.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

__all__ = ["register"]

Json = dict[str, Any]
FOLDER = "DRAFTPROOF_EFFECTIVE"
WORKERS = (
    "sglang.srt.speculative.dflash_worker_v2.DFlashWorkerV2.__init__",
    "sglang.srt.speculative.dflash_worker.DFlashWorker.__init__",
)
MISSING = object()


def register() -> None:
    """Ask SGLang to call us after a DFlash worker has been made."""
    if not os.environ.get(FOLDER):
        return
    hooks = importlib.import_module("sglang.srt.plugins.hook_registry")
    for target in WORKERS:
        module, _, _ = target.rpartition(".__init__")[0].rpartition(".")
        if importlib.util.find_spec(module) is not None:
            hooks.HookRegistry.register(target, after_init, hooks.HookType.AFTER)


def after_init(result: Any, worker: Any, *_: Any, **__: Any) -> Any:
    """Write the record of this worker; whatever it is, what was returned stays as it was."""
    record = record_of(worker)
    path = Path(os.environ[FOLDER], f"effective-{record['rank']}.json")
    beside = path.with_suffix(".part")
    engine = {"name": "sglang", "version": importlib.metadata.version("sglang"), "path": root()}
    beside.write_text(json.dumps({"engine": engine, "records": [record]}), encoding="ascii")
    beside.replace(path)
    return result


def record_of(worker: Any) -> Json:
    """The record: facts, layers, config."""
    draft = first(worker, "draft_model", "draft_model_runner.model", "model_runner.draft_model")
    target = first(worker, "_target_worker.model_runner.model", "target_worker.model_runner.model")
    facts: Json = {
        "method": {"value": "dflash", "source": "the class of the worker"},
        "drafter_cls": {"value": type(worker).__name__, "source": "the worker"},
    }
    tell(facts, "draft_model_cls", type(draft).__name__ if draft is not MISSING else MISSING, "draft_model")
    tell(facts, "mask_id", first(worker, "_mask_token_id", "mask_token_id"), "worker._mask_token_id")
    block = first(worker, "block_size")
    tell(facts, "k", block - 1 if isinstance(block, int) else MISSING, "worker.block_size, less the anchor")
    taps = first(target, "model.layers_to_capture", "model.model.layers_to_capture", "layers_to_capture")
    tell(
        facts, "aux_layers", sorted(set(taps)) if taps is not MISSING else MISSING, "target layers_to_capture"
    )
    return {
        "rank": none_if_missing(first(worker, "tp_rank", "model_runner.tp_rank", "gpu_id")),
        "facts": facts,
        "layers": layers(draft),
        "config": config_of(draft),
        "refusal": None,
        "tensors": None,
    }


def tell(facts: Json, name: str, value: Any, source: str) -> None:
    """Keep a value with where it was read."""
    known = {"value": value, "source": source}
    facts[name] = {"unknown": f"no {source} in this version"} if value is MISSING else known


def layers(draft: Any) -> list[Json] | None:
    """Window and causality of every layer of the drafter."""
    found = first(draft, "layers", "model.layers")
    if found is MISSING:
        return None
    return [layer(first(one, "self_attn"), index) for index, one in enumerate(found)]


def layer(attention: Any, index: int) -> Json:
    """One layer: ``sliding_window_size`` is how many tokens lie to the left, -1 for all."""
    home = f"layers.{index}.self_attn"
    left, kind = first(attention, "sliding_window_size"), first(attention, "attn_type", "attn.attn_type")
    window: Json = {"value": None, "source": f"{home} has no sliding_window_size: no window code"}
    if isinstance(left, int):
        window = {"value": None if left < 0 else left + 1, "source": f"{home}.sliding_window_size {left}"}
    if kind is MISSING:
        return {"window": window, "causal": {"unknown": f"{home} has no attn_type"}}
    name = str(getattr(kind, "value", kind)).lower()
    return {"window": window, "causal": {"value": "decoder" in name, "source": f"{home}.attn_type {name}"}}


def config_of(draft: Any) -> Json | None:
    """The config of the drafter's module."""
    to_dict = first(draft, "config.to_dict")
    return json.loads(json.dumps(to_dict(), default=repr)) if callable(to_dict) else None


def root() -> str:
    """Where SGLang was imported from."""
    return str(importlib.import_module("sglang").__file__)


def first(owner: Any, *paths: str) -> Any:
    """The value at the first path of attributes that exists; MISSING where none does."""
    for path in paths:
        found = owner
        for name in path.split("."):
            found = getattr(found, name, MISSING)
            if found is MISSING:
                break
        else:
            return found
    return MISSING


def none_if_missing(value: Any) -> Any:
    """None for what is not there."""
    return None if value is MISSING else value
