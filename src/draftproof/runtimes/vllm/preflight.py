"""The program that runs inside vLLM's own Python and lets its configuration code resolve a drafter.

It is sent as text, after ``runtimes.frame``, and never imported here. No GPU is asked for, no weight is read;
only names of tensors are taken from the headers beside the config. It holds for vLLM 0.20 to 0.33, whose
functions move between files: each is imported by its name, and where its module cannot be imported (kernels
that do not load) the function alone is lifted out of the module's source and run.

Request: ``{"pairs": [{"drafter", "target", "method", "num_draft_tokens", "more", "engine_args"}]}``; ``more``
are further keys of ``--speculative-config``; drafter and target are paths, or configs sent along. The import
takes most of the time: many may be asked at once.
Source: vLLM 0.20.1, 0.32.0 and 0.33.0, the functions named below.
"""

from __future__ import annotations

import importlib
import json
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from draftproof.runtimes.frame import Json, attempt, placed, said, serve
from draftproof.runtimes.lifting import engine_function, lifted

NEEDED = ("vllm.config", "vllm.engine.arg_utils")
GONE = "No module named 'vllm"
"""A part of the engine itself that is not there: it is half-installed, and refuses nothing."""

MAX_HEADER_BYTES = 100 * 1024 * 1024
V1_RUNNER = "vllm/v1/worker/gpu_model_runner.py"
AUX_V1 = (V1_RUNNER, "GPUModelRunner._get_eagle3_aux_layers_from_config")
AUX_V2 = (
    "vllm/v1/worker/gpu/spec_decode/eagle/eagle3_utils.py",
    "get_eagle3_aux_layers_from_config",
)
SET_AUX = ("vllm/model_executor/models/interfaces.py", "EagleModelMixin._set_aux_hidden_state_layers")
DEFAULT_AUX = (SET_AUX[0], "SupportsEagle3.get_eagle3_default_aux_hidden_state_layers")
TAPPED = ("eagle3", "dflash")
MASK = ("vllm/v1/worker/gpu/spec_decode/utils.py", "get_parallel_drafting_token_id")
LAYER = ("vllm/model_executor/models/qwen3_dflash.py", "_resolve_layer_attention")
DROP = ("needs_eagle_block_drop", "use_eagle_block_drop", "use_eagle")
HF_KEYS_LEFT_OUT = ("model", "_name_or_path", "_commit_hash")


def look(request: Json) -> Json:
    """Everything vLLM says about each pair, or that there is no vLLM here."""
    vllm, error = attempt(importlib.import_module, "vllm")
    if error or not hasattr(vllm, "__version__"):
        return {"engine": None, "reason": said(error) if error else "a module vllm without a version"}
    for name in NEEDED:
        _, error = attempt(importlib.import_module, name)
        if error:
            return {"engine": None, "reason": f"vllm {vllm.__version__}, but no {name}: {said(error)}"}
    engine = {"name": "vllm", "version": str(vllm.__version__), "path": str(vllm.__file__)}
    records = [record(pair) for pair in placed(request["pairs"])]
    gone = next((one["refusal"] for one in records if GONE in (one["refusal"] or "")), None)
    return {"engine": engine, "records": records} if gone is None else {"engine": None, "reason": gone}


def record(request: Json) -> Json:
    """Everything vLLM says about one pair."""
    answer: Json = {"facts": {}, "layers": None, "config": None, "refusal": None, "tensors": None}
    whole, refusal = attempt(whole_config, request)
    answer["refusal"] = said(refusal) if refusal else None
    spec = whole.speculative_config if whole is not None else None
    if spec is None:
        spec, error = attempt(only_speculation, request)
        if error:
            return {**answer, "refusal": answer["refusal"] or said(error)}
    return {**answer, **Looking(request, whole, spec).run()}


def speculative(request: Json) -> Json:
    """The value of ``--speculative-config``."""
    asked = {"method": request["method"], "num_speculative_tokens": request["num_draft_tokens"]}
    if request["drafter"]:
        asked["model"] = request["drafter"]
    return {**{key: value for key, value in asked.items() if value is not None}, **request["more"]}


def whole_config(request: Json) -> Any:
    """The config of the whole engine, as a start would make it."""
    arg_utils = importlib.import_module("vllm.engine.arg_utils")
    args = arg_utils.EngineArgs(
        model=request["target"],
        speculative_config=speculative(request),
        load_format="dummy",
        skip_tokenizer_init=True,
        **request["engine_args"],
    )
    return args.create_engine_config()


def only_speculation(request: Json) -> Any:
    """The config of speculation alone, for a whole that is refused or a machine without the device."""
    arg_utils = importlib.import_module("vllm.engine.arg_utils")
    config = importlib.import_module("vllm.config")
    args = arg_utils.EngineArgs(model=request["target"], skip_tokenizer_init=True)
    return config.SpeculativeConfig(
        **speculative(request),
        target_model_config=args.create_model_config(),
        target_parallel_config=config.ParallelConfig(),
    )


class Looking:
    """One pair, put to one resolver after the other."""

    def __init__(self, request: Json, whole: Any, spec: Any) -> None:
        self.request, self.whole, self.spec = request, whole, spec
        self.draft: Any = getattr(spec, "draft_model_config", None)
        self.hf: Any = getattr(self.draft, "hf_config", None)
        self.facts: Json = {}
        self.has_v2 = False

    def run(self) -> Json:
        """The facts, the layers and the config that the engine holds."""
        self.runner()
        self.ask("method", "SpeculativeConfig.method", lambda: self.spec.method)
        self.ask("k", "SpeculativeConfig.num_speculative_tokens", lambda: self.spec.num_speculative_tokens)
        self.block_drop()
        for name in ("rejection_sample_method", "draft_sample_method"):
            if hasattr(self.spec, name):
                self.ask(name, f"SpeculativeConfig.{name}", partial(getattr, self.spec, name))
        target: Any = getattr(self.spec, "target_model_config", None)
        self.ask("num_target_layers", "target hf_text_config", lambda: depth(target.hf_text_config))
        if self.hf is not None:
            self.ask("architectures", "draft ModelConfig", lambda: list(self.draft.hf_config.architectures))
            self.drafter()
        config, _ = attempt(lambda: plain(self.hf) if self.hf is not None else None)
        return {
            "facts": self.facts,
            "layers": self.layers(),
            "config": config,
            "tensors": tensor_names(self.request["drafter"]),
        }

    def ask(self, name: str, source: str, call: Callable[[], Any]) -> Any:
        """Keep what ``call`` says under ``name``; an error is kept as the reason why it is not known."""
        value, error = attempt(call)
        self.facts[name] = {"unknown": said(error), "source": source} if error else told(value, source)
        return value

    def call(
        self, name: str, place: tuple[str, str], *args: Any, through: Callable[..., Any] | None = None
    ) -> Any:
        """Keep what a function of the engine says, called by ``through`` where that is not plainly done."""
        found, error = attempt(engine_function, *place)
        if error:
            self.facts[name] = {"missing": f"{place[0]} {place[1]}: {said(error)}"}
            return None
        function, how = found
        called = (function, *args) if through is None else (through, function, *args)
        source = f"{place[0]} {place[1]}{how}"
        value, error = attempt(self.under, *called)
        self.facts[name] = {"raised": said(error), "source": source} if error else told(value, source)
        return value

    def under(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a resolver as the engine would: with the whole config as the current one."""
        if self.whole is None:
            return function(*args)
        config = importlib.import_module("vllm.config")
        with config.set_current_vllm_config(self.whole):
            return function(*args)

    def runner(self) -> None:
        """Which model runner would be chosen: a property from 0.24 on, an environment variable before."""
        source = "VllmConfig.use_v2_model_runner"
        if self.whole is None:
            self.facts["runner"] = {"unknown": "the whole config is refused, so none is chosen"}
            return
        if not hasattr(type(self.whole), "use_v2_model_runner"):
            source = "envs.VLLM_USE_V2_MODEL_RUNNER"
            envs = importlib.import_module("vllm.envs")
            value, error = attempt(lambda: bool(envs.VLLM_USE_V2_MODEL_RUNNER))
        else:
            value, error = attempt(lambda: bool(self.whole.use_v2_model_runner))
        self.has_v2 = bool(value)
        runner = "v2" if value else "v1"
        self.facts["runner"] = {"unknown": said(error), "source": source} if error else told(runner, source)

    def block_drop(self) -> None:
        """Whether the last block of a prefix hit is dropped: the newest of three names that there is."""
        name = next((name for name in DROP if hasattr(self.spec, name)), None)
        if name is None:
            self.facts["block_drop"] = {"missing": "SpeculativeConfig has none of " + ", ".join(DROP)}
        else:
            call = getattr(self.spec, name)
            self.ask("block_drop", f"SpeculativeConfig.{name}()", lambda: bool(call()))

    def drafter(self) -> None:
        """Captured hidden states and the mask token."""
        if self.has_v2:
            asked = self.call("aux_requested", AUX_V2, self.spec)
        else:
            asked = self.call("aux_requested", AUX_V1, SimpleNamespace(speculative_config=self.spec))
        if asked:
            self.call("aux_layers", SET_AUX, tuple(asked), through=taps_after)
        elif "value" in self.facts["aux_requested"] and self.spec.method in TAPPED:
            self.call("aux_layers", DEFAULT_AUX, self.facts["num_target_layers"], through=default_taps)
        if getattr(self.spec, "parallel_drafting", False) or self.spec.method in ("dflash", "dspark"):
            self.call("mask_id", MASK, self.hf)

    def layers(self) -> list[Json] | None:
        """Window and causality of every drafter layer, where the engine has a function that says so."""
        if self.spec.method != "dflash" or self.hf is None:
            return None
        found, error = attempt(engine_function, *LAYER)
        if error:
            return None
        function, how = found
        count = int(self.hf.num_hidden_layers)
        source = f"{LAYER[0]} {LAYER[1]}{how}"
        return [self.layer(function, index, source) for index in range(count)]

    def layer(self, function: Callable[..., Any], index: int, source: str) -> Json:
        """One layer."""
        pair, error = attempt(self.under, function, self.hf, index)
        if error and self.whole is None:
            # A refused whole has no runner: ask what the layers would be under the one that takes them.
            names = {"get_current_vllm_config": lambda: SimpleNamespace(use_v2_model_runner=True)}
            pair, error = attempt(lambda: lifted(*LAYER, names)(self.hf, index))
            source = f"{LAYER[0]} {LAYER[1]}, lifted from its source, under the V2 runner"
        if error:
            raised = {"raised": said(error), "source": source}
            return {"window": raised, "causal": raised}
        return {"window": told(pair[0], source), "causal": told(bool(pair[1]), source)}


def told(value: Any, source: str) -> Json:
    """A value with its source."""
    return {"value": list(value) if isinstance(value, (list, tuple)) else value, "source": source}


def depth(text_config: Any) -> int:
    """Decoder layers of the target."""
    return int(text_config.num_hidden_layers)


def taps_after(function: Callable[..., Any], layers: tuple[int, ...]) -> Any:
    """The taps a target model holds after the function that sets them: on an object with nothing loaded.

    Whatever order it keeps, they are captured while the layers run: in the order of the layers, each once.
    """
    holder = SimpleNamespace(_cache_aux_pp_layout=lambda: None)
    function(holder, layers)
    return sorted(set(holder.aux_hidden_state_layers))


def default_taps(function: Callable[..., Any], depth: Json) -> Any:
    """The taps of a target whose drafter names none."""
    return function(SimpleNamespace(model=SimpleNamespace(layers=[None] * int(depth["value"]))))


def plain(hf: Any) -> Json:
    """A config object's own values."""
    return {str(key): value for key, value in hf.to_dict().items() if key not in HF_KEYS_LEFT_OUT}


def tensor_names(folder: str | None) -> Json:
    """Names of the drafter's tensors by the headers of its safetensors files: no weight is read."""
    if not folder or not Path(folder).is_dir():
        return {"unknown": "no directory of the drafter here"}
    names, error = attempt(lambda: sorted({name for path in files_of(folder) for name in header(path)}))
    return {"unknown": said(error)} if error else {"names": names}


def files_of(folder: str) -> list[Path]:
    """The safetensors files of a directory."""
    return sorted(Path(folder).glob("*.safetensors"))


def header(path: Path) -> list[str]:
    """The tensor names of one safetensors file."""
    with path.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > MAX_HEADER_BYTES:
            raise ValueError(f"{path.name}: a header of {length} bytes")
        return [name for name in json.loads(stream.read(length)) if name != "__metadata__"]


def main() -> None:
    """Answer one request."""
    serve(look)
