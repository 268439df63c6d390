"""The drafter's config.json as one engine at one version must find it, written beside and never over."""

import copy
import json

from draftproof.config.convert import convert
from draftproof.config.dialects.attention import SLIDING
from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.parse import parse_config
from draftproof.config.raw import JsonValue
from draftproof.deploy.serving.intent import DrafterFile, differences, reread
from draftproof.deploy.serving.reason import Loss, Said
from draftproof.deploy.serving.rendering import ConfigFile
from draftproof.findings.engines import LITERAL_TAPS, Engine, Verdict

__all__ = ["rendered_config"]

_BLOCK = frozenset({Method.DFLASH, Method.DFLASH2})
_EAGLE = frozenset({Method.EAGLE3, Method.PEAGLE})
_FLATTENED_SINCE = (0, 26)

Changes = list[tuple[str, Said]]


def rendered_config(
    file: DrafterFile, engine: Engine, place: str
) -> tuple[DrafterFile, ConfigFile | None, list[Loss]]:
    """The config for ``engine``: as a drafter again, as a file where bytes must differ, and what it loses."""
    content, changes, losses = _in_dialect(file, engine)
    method = file.config.method.value
    config = reread(content, file.raw.origin)
    if method in _BLOCK:
        _windows(content, config, changes)
        _taps(content, config, engine, changes)
        _mask(content, config, changes)
        if engine.name == "sglang":
            _for_sglang(content, config, changes)
    if method in _EAGLE and config.dialect != "speculators":
        _eagle_taps(content, config, engine, changes)
    if not changes:
        return file, None, losses
    written = ConfigFile("drafter/config.json", f"{place}/config.json", content, tuple(changes))
    again = DrafterFile(file.raw, reread(content, f"{file.raw.origin} for {engine}"))
    lost = [
        Loss(name, before, f"the engine's format says {json.dumps(after)} instead")
        for name, before, after in differences(file.config, again.config)
    ]
    return again, written, losses + lost


def _in_dialect(file: DrafterFile, engine: Engine) -> tuple[dict[str, JsonValue], Changes, list[Loss]]:
    """The file as it is, or in the native format where the engine cannot take the speculators one rightly."""
    why = _why_native(file, engine)
    if not why:
        return copy.deepcopy(file.raw.value), [], []
    made = convert(file.raw, parse_config(file.raw), "native")
    losses = [Loss(loss.pointer, loss.value, loss.why) for loss in made.losses]
    return copy.deepcopy(made.config), [("", Said("native format", why[0], why[1]))], losses


def _why_native(file: DrafterFile, engine: Engine) -> tuple[str, str] | None:
    if file.config.dialect != "speculators" or file.config.method.value not in _BLOCK | _EAGLE:
        return None
    if engine.name == "sglang":
        return (
            "SGLang knows no field of the speculators format",
            "SGLang 0.5.11 and 0.5.23 speculative/dflash_utils.py",
        )
    sliding = [layer for layer in file.config.layers if layer.kind.value == SLIDING]
    is_flattened = engine.name == "vllm" and engine.version >= _FLATTENED_SINCE
    if is_flattened and file.is_mixed and sliding[0].causal.value:
        return (
            "sliding_window_non_causal false makes vLLM's full layers causal, too",
            "vllm-project/vllm#56692; vLLM 0.26 to 0.33 configs/speculators/algos.py",
        )
    return None


def _set(content: dict[str, JsonValue], path: tuple[str, ...], said: Said, changes: Changes) -> None:
    """Write a value where it is not that one already."""
    here: dict[str, JsonValue] = content
    for step in path[:-1]:
        inner = here.setdefault(step, {})
        if not isinstance(inner, dict):
            return  # a mistyped table is a finding of its own
        here = inner
    last = path[-1]
    if last not in here or here[last] != said.value or type(here[last]) is not type(said.value):
        here[last] = said.value
        changes.append((f"/{'/'.join(path)}", said))


def _windows(content: dict[str, JsonValue], config: DrafterConfig, changes: Changes) -> None:
    """Explicit layer types, and the gate without which transformers nulls the window."""
    if config.dialect == "speculators":
        return  # its layer config is taken over raw
    kinds = [layer.kind.value for layer in config.layers]
    if SLIDING not in kinds or None in kinds:
        return
    window = next(layer.window.value for layer in config.layers if layer.kind.value == SLIDING)
    source = "transformers Qwen3Config"
    listed: list[JsonValue] = [*kinds]
    _set(content, ("layer_types",), Said(listed, "explicit types are never rewritten", source), changes)
    gate = Said(True, "without it transformers makes sliding_window null", source)
    _set(content, ("use_sliding_window",), gate, changes)
    if window is not None:
        _set(content, ("sliding_window",), Said(window, "the window of the sliding layers", source), changes)


def _taps(content: dict[str, JsonValue], config: DrafterConfig, engine: Engine, changes: Changes) -> None:
    """Layer ids written out; hidden indexes beside them where the engine takes ids as they stand."""
    ids, indexes = config.taps.layer_ids.value, config.taps.hidden_indexes.value
    if ids is None or indexes is None or None in ids or config.dialect == "speculators":
        return
    listed: list[JsonValue] = [*ids]
    why = Said(listed, "an engine's own default taps other layers", "vLLM 0.20.1 to 0.33 and SGLang defaults")
    _set(content, ("dflash_config", "target_layer_ids"), why, changes)
    for versions, reason in LITERAL_TAPS:
        if versions.verdict(engine) is Verdict.HOLDS:
            counted: list[JsonValue] = [*indexes]
            said = Said(
                counted, f"{engine} reads hidden indexes here, as they stand; {reason}", str(versions)
            )
            _set(content, ("eagle_aux_hidden_state_layer_ids",), said, changes)


def _mask(content: dict[str, JsonValue], config: DrafterConfig, changes: Changes) -> None:
    """Where every version looks; some look nowhere else, and SGLang 0.5.11 then adds a token of its own."""
    mask = config.mask_token_id.value
    if mask is not None and config.dialect != "speculators":
        source = "vLLM 0.20.1 llm_base_proposer; SGLang 0.5.11 speculative/dflash_utils.py"
        said = Said(mask, "some versions read it inside dflash_config only", source)
        _set(content, ("dflash_config", "mask_token_id"), said, changes)


def _for_sglang(content: dict[str, JsonValue], config: DrafterConfig, changes: Changes) -> None:
    """What SGLang reads in one place only."""
    source = "SGLang 0.5.11 and 0.5.23 speculative/dflash_utils.py and models/dflash.py"
    depth = config.num_target_layers.value
    if depth is not None and "num_target_layers" not in content:
        said = Said(depth, "without it the drafter's own depth is taken for the target's", source)
        _set(content, ("num_target_layers",), said, changes)
    causal = {layer.causal.value for layer in config.layers}
    by_kind = all(layer.causal.value is (layer.kind.value == SLIDING) for layer in config.layers)
    if not by_kind and len(causal) == 1 and None not in causal:
        said = Said(causal.pop(), "dflash_config.causal is not read; is_causal is", source)
        _set(content, ("is_causal",), said, changes)


def _eagle_taps(
    content: dict[str, JsonValue], config: DrafterConfig, engine: Engine, changes: Changes
) -> None:
    """One name, two numberings: vLLM reads hidden indexes at the top, SGLang layer ids inside."""
    ids, indexes = config.taps.layer_ids.value, config.taps.hidden_indexes.value
    if ids is None or indexes is None or None in ids or not config.taps.hidden_indexes.is_known:
        return
    key = "eagle_aux_hidden_state_layer_ids"
    if engine.name == "vllm":
        counted: list[JsonValue] = [*indexes]
        _set(content, (key,), Said(counted, "taken as it stands", "vLLM 0.33 eagle3_utils.py"), changes)
    if engine.name == "sglang":
        listed: list[JsonValue] = [*ids]
        said = Said(
            listed, "read inside eagle_config only, and one is added", "SGLang 0.5.23 models/llama.py"
        )
        _set(content, ("eagle_config", key), said, changes)
