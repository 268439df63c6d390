"""What a vLLM worker really holds of its drafter: a worker extension, one file, standard library only.

Put the directory of this file on PYTHONPATH of the server and start it with
``--worker-extension-cls draftproof_vllm.DraftproofExtension``; with ``VLLM_SERVER_DEV_MODE=1`` on loopback
``POST /collective_rpc {"method": "draftproof_effective"}`` then answers with one record per rank. Nothing is
changed in the worker: attributes are read, two methods without arguments are called.

It holds for vLLM 0.20 to 0.33, whose V1 runner keeps a drafter and whose V2 runner keeps a speculator.
Source: the attributes named below, in vLLM 0.20.1, 0.32.0 and 0.33.0.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["DraftproofExtension"]

Json = dict[str, Any]
MISSING = object()
ERRORS = (AttributeError, TypeError, ValueError, RuntimeError, KeyError, IndexError, AssertionError)
"""What reading an attribute of a running engine may raise."""


class DraftproofExtension:
    """Mixed into the worker by vLLM; its one method is called on every rank."""

    def draftproof_effective(self) -> Json:
        """The record of this rank, as JSON values."""
        return Reading(self).run()


class Reading:
    """One look at one worker."""

    def __init__(self, worker: Any) -> None:
        self.worker = worker
        self.runner = getattr(worker, "model_runner", None)
        drafter = getattr(self.runner, "drafter", None)
        speculator = getattr(self.runner, "speculator", None)
        self.is_v2 = speculator is not None
        self.drafter: Any = speculator if self.is_v2 else drafter
        self.home = "model_runner.speculator" if self.is_v2 else "model_runner.drafter"
        self.spec = first(worker, "vllm_config.speculative_config", "speculative_config")
        self.draft = getattr(self.drafter, "model", None)
        self.target = first(self.runner, "model")
        self.facts: Json = {}

    def run(self) -> Json:
        """The record: facts, layers and the config that the drafter's module holds."""
        vllm = sys.modules["vllm"]
        engine = {"name": "vllm", "version": str(vllm.__version__), "path": str(vllm.__file__)}
        self.tell("runner", "v2" if self.is_v2 else "v1", type(self.runner).__module__)
        self.speculation()
        if self.drafter is not None:
            self.of_drafter()
        if self.draft is not None:
            self.of_module()
        record = {
            "rank": first(self.worker, "rank"),
            "facts": self.facts,
            "layers": self.layers(),
            "config": self.config(),
            "refusal": None,
            "tensors": None,
        }
        return {"engine": engine, "records": [record]}

    def tell(self, name: str, value: Any, source: str) -> None:
        """Keep a value with where it was read."""
        if value is MISSING:
            self.facts[name] = {"unknown": f"no {source} in this version"}
        else:
            self.facts[name] = {"value": plain(value), "source": source}

    def speculation(self) -> None:
        """What the worker's own copy of the speculative config says."""
        for name in ("method", "rejection_sample_method", "draft_sample_method"):
            if hasattr(self.spec, name):
                self.tell(name, getattr(self.spec, name), f"speculative_config.{name}")
        drops = ("needs_eagle_block_drop", "use_eagle_block_drop", "use_eagle")
        drop = next((name for name in drops if hasattr(self.spec, name)), None)
        if drop:
            self.tell("block_drop", called(self.spec, drop), f"speculative_config.{drop}()")

    def of_drafter(self) -> None:
        """Numbers that the object which proposes holds."""
        kind = type(self.drafter)
        self.tell("drafter_cls", kind.__name__, self.home)
        for name in ("num_speculative_tokens", "num_speculative_steps", "k"):
            if hasattr(self.drafter, name):
                self.tell("k", getattr(self.drafter, name), f"{self.home}.{name}")
                break
        drafts_blocks = first(self.spec, "parallel_drafting") is True
        if drafts_blocks and hasattr(self.drafter, "parallel_drafting_token_id"):
            source = f"{self.home}.parallel_drafting_token_id"
            self.tell("mask_id", self.drafter.parallel_drafting_token_id, source)

    def of_module(self) -> None:
        """What the drafter's module and the target's share and exchange."""
        self.tell("draft_model_cls", type(self.draft).__name__, f"{self.home}.model")
        language = called(self.target, "get_language_model")
        target = self.target if language is MISSING else language
        taps = first(target, "model.aux_hidden_state_layers", "aux_hidden_state_layers")
        if taps is not MISSING and taps:
            self.tell("aux_layers", sorted(set(taps)), "target.model.aux_hidden_state_layers")
        depth = first(target, "config.num_hidden_layers", "config.text_config.num_hidden_layers")
        self.tell("num_target_layers", depth, "target.config.num_hidden_layers")
        self.features()
        self.sharing(target)

    def features(self) -> None:
        """How many hidden states of the target ``fc`` takes; an MTP head's takes the embedding too."""
        if first(self.spec, "method") == "mtp":
            return
        width = first(self.draft, "model.fc.input_size", "model.fc.in_features")
        own = first(self.draft, "config.target_hidden_size")
        hidden = own if isinstance(own, int) else first(self.draft, "config.hidden_size")
        if width is not MISSING and isinstance(hidden, int) and hidden:
            self.tell("fc_features", width // hidden, "draft.model.fc.input_size over the target's width")

    def sharing(self, target: Any) -> None:
        """Whether embedding and head are the very objects of the target."""
        for name, paths in (
            ("shared_embed", ("model.embed_tokens", "model.embedding")),
            ("shared_head", ("lm_head",)),
        ):
            ours, theirs = first(self.draft, *paths), first(target, *paths)
            if ours is not MISSING and theirs is not MISSING:
                self.tell(name, ours is theirs, f"draft.{paths[0]} is target.{paths[0]}")

    def layers(self) -> list[Json] | None:
        """Window and causality of every attention layer of the drafter, in order."""
        modules = called(self.draft, "named_modules")
        if self.draft is None or modules is MISSING:
            return None
        found = [(name, one) for name, one in modules if is_attention(one)]
        causal = called(self.draft, "get_draft_attn_causal")
        return [self.layer(index, name, one, causal) for index, (name, one) in enumerate(found)]

    def layer(self, index: int, name: str, attention: Any, causal: Any) -> Json:
        """One layer: the window as the attention object keeps it, the query counted."""
        window = getattr(attention, "sliding_window", MISSING)
        held = first(attention, "impl.sliding_window")
        seen: Json = {"unknown": f"{name} has no sliding_window"}
        if window is not MISSING:
            seen = {"value": window or None, "source": f"{name}.sliding_window; impl holds {plain(held)}"}
        source = "draft.get_draft_attn_causal()"
        if isinstance(causal, (list, tuple)) and index < len(causal):
            way: Json = {"value": bool(causal[index]), "source": source}
        elif first(self.spec, "method") in ("dflash", "dspark"):
            way = {"unknown": f"no {source} in this version"}
        else:
            way = {"value": True, "source": f"{self.home} drafts one token after the other"}
        return {"window": seen, "causal": way}

    def config(self) -> Json | None:
        """The config of the drafter's module."""
        found = called(first(self.draft, "config"), "to_dict")
        if not isinstance(found, dict):
            return None
        return {str(name): plain(value) for name, value in found.items() if name != "model"}


def is_attention(module: Any) -> bool:
    """Whether a module is one of vLLM's attention layers with a cache."""
    return hasattr(module, "impl") and hasattr(module, "kv_cache_dtype")


def first(root: Any, *paths: str) -> Any:
    """The value at the first path of attributes that exists; MISSING where none does."""
    for path in paths:
        found = root
        for name in path.split("."):
            found = getattr(found, name, MISSING)
            if found is MISSING:
                break
        else:
            return found
    return MISSING


def called(root: Any, name: str) -> Any:
    """What a method without arguments answers; MISSING where there is none or it raises."""
    method = getattr(root, name, None)
    if not callable(method):
        return MISSING
    try:
        return method()
    except ERRORS:
        return MISSING


def plain(value: Any) -> Any:
    """Any value as one that JSON carries."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return "missing" if value is MISSING else repr(value)[:400]
