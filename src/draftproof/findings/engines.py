"""What published versions of engines read of a drafter's config: data, each row with its source.

A field that changes the model and stands on disk must have a reader. These rows say which of those fields
an engine does not take over, and in which versions that has been read in source.
"""

from dataclasses import dataclass

from draftproof.config.drafter import Method
from draftproof.findings.semantics.table import SEMANTICS
from draftproof.findings.versions import (
    Engine,
    Verdict,
    Version,
    Versions,
    parse_engine,
    trimmed,
    version_text,
)

__all__ = [
    "BLIND_SPOTS",
    "LAST_TAP_LIMITS",
    "LITERAL_TAPS",
    "BlindSpot",
    "Engine",
    "Verdict",
    "Versions",
    "parse_engine",
    "trimmed",
    "version_text",
    "versions_read",
]


@dataclass(frozen=True, slots=True)
class BlindSpot:
    """Fields that an engine does not read."""

    versions: Versions
    methods: frozenset[Method]
    dialects: frozenset[str]
    fields: tuple[str, ...]
    """Pointers from the top of the file."""

    tensors: tuple[str, ...]
    """Tensors that only those fields give a parameter to; ``*`` stands for a number."""

    where: str
    """The code that does not read them."""

    source: str
    effect: str
    """Published cost, a key of ``findings.effects``."""


_EAGLE = frozenset({Method.EAGLE3, Method.PEAGLE})
_DFLASH = frozenset({Method.DFLASH})
_SPECULATORS = frozenset({"speculators"})
_NATIVE = frozenset({"native", "modelopt"})
_WINDOW = ("/layer_types", "/sliding_window", "/use_sliding_window", "/max_window_layers")
_IN_LAYER_CONFIG = tuple(f"/transformer_layer_config{field}" for field in _WINDOW)
_NO_WINDOW_CODE = "qwen3_dflash, which has no window code: every layer runs full and non-causal"
_VLLM_SOURCE = (
    "vLLM 0.20.1, 0.24.0 and 0.25.0 models/qwen3_dflash.py; vllm-project/vllm#46104, "
    "vllm-project/vllm#47914, vllm-project/vllm#48113"
)

BLIND_SPOTS: tuple[BlindSpot, ...] = (
    BlindSpot(
        Versions("vllm", None, None),
        _EAGLE,
        _SPECULATORS,
        ("/norm_before_fc",),
        ("input_norm.weight",),
        (
            "update_eagle3, which copies draft_vocab_size, target_hidden_size, norm_before_residual, "
            "architectures and eagle_aux_hidden_state_layer_ids and nothing else"
        ),
        "vLLM configs/speculators/algos.py at cfb173ab; mended by vllm-project/vllm#38111",
        "norm-flag-unread",
    ),
    BlindSpot(
        Versions("vllm", None, None),
        _EAGLE,
        frozenset({"eagle", "native", "modelopt"}),
        ("/eagle_config/norm_before_fc",),
        ("input_norm.weight",),
        "the EAGLE-3 model, which reads norm_before_fc at the top level only",
        "mended by vllm-project/vllm#42143",
        "norm-flag-unread",
    ),
    BlindSpot(
        Versions("vllm", None, None),
        _EAGLE,
        _SPECULATORS,
        ("/norm_output", "/fc_norm"),
        ("fc_norm.*.weight",),
        "update_eagle3, whose list of copied fields has neither",
        "vLLM configs/speculators/algos.py at cfb173ab; mended by vllm-project/vllm#46488",
        "norm-flag-unread",
    ),
    BlindSpot(
        Versions("vllm", None, None),
        _EAGLE,
        _SPECULATORS,
        _IN_LAYER_CONFIG,
        (),
        "the drafter's attention, which takes its window from the verifier's cache config",
        "vllm-project/speculators#684",
        "draft-window-ignored",
    ),
    BlindSpot(
        Versions("vllm", (0, 20, 1), (0, 25)),
        _DFLASH,
        _NATIVE,
        (*_WINDOW, "/is_causal", "/dflash_config/use_swa", "/dflash_config/swa_window_size"),
        (),
        _NO_WINDOW_CODE,
        _VLLM_SOURCE,
        "window-dropped",
    ),
    BlindSpot(
        Versions("vllm", (0, 20, 1), (0, 25)),
        _DFLASH,
        _SPECULATORS,
        _IN_LAYER_CONFIG,
        (),
        _NO_WINDOW_CODE,
        _VLLM_SOURCE,
        "window-dropped",
    ),
    BlindSpot(
        Versions("vllm", (0, 20, 1), (0, 26)),
        _DFLASH,
        _SPECULATORS,
        ("/sliding_window_non_causal",),
        (),
        "update_dflash, which does not copy it",
        "vLLM 0.20.1 and 0.26.0 configs/speculators/algos.py; vllm-project/vllm#47745",
        "causality-flattened",
    ),
    BlindSpot(
        Versions("sglang", (0, 5, 11), (0, 5, 14)),
        _DFLASH,
        _NATIVE,
        _WINDOW,
        (),
        "models/dflash.py, which runs every layer ENCODER_ONLY",
        "SGLang 0.5.11 models/dflash.py; windows by sgl-project/sglang#27469",
        "window-dropped",
    ),
    BlindSpot(
        Versions("sglang", (0, 5, 11), (0, 5, 17)),
        _DFLASH,
        _NATIVE,
        ("/is_causal",),
        (),
        "models/dflash.py, which fixes causality per layer kind",
        "SGLang 0.5.11 to 0.5.17 models/dflash.py",
        "causality-flattened",
    ),
    BlindSpot(
        Versions("sglang", (0, 5, 11), (0, 5, 12)),
        _DFLASH,
        _NATIVE,
        ("/mask_token_id",),
        (),
        "speculative/dflash_utils.py, which reads it from dflash_config only and adds a token of its own",
        "SGLang 0.5.11 speculative/dflash_utils.py",
        "mask-fallback",
    ),
)

LAST_TAP_LIMITS: tuple[tuple[Versions, str], ...] = tuple(
    (row.versions, row.told) for row in SEMANTICS if row.id == "last-tap-out-of-reach"
)
"""Engines that cannot capture the output of a Qwen3.5-class target's last layer, with the reason."""

LITERAL_TAPS: tuple[tuple[Versions, str], ...] = tuple(
    (row.versions, row.told) for row in SEMANTICS if row.id == "taps-literal"
)
"""Engines that read a native DFlash file's taps one layer early, with the reason."""


def versions_read(name: str) -> tuple[Version, Version]:
    """The first version of an engine that was read in source for a row, and the first beyond all of them."""
    rows = [spot.versions for spot in BLIND_SPOTS] + [row.versions for row in SEMANTICS]
    own = [row for row in rows if row.engine == name]
    first = [row.since for row in own if row.since is not None]
    last = [row.until for row in own if row.until is not None]
    return min(first), max(last)
