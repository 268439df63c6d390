"""What published versions of engines read of a drafter's config: data, each row with its source.

A field that changes the model and stands on disk must have a reader. These rows say which of those fields
an engine does not take over, and in which versions that has been read in source.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from draftproof.config.drafter import Method
from draftproof.errors import UsageError

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

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine at a version, as the user names it: ``vllm@0.20.1``."""

    name: str
    version: Version

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.version))}"


class Verdict(StrEnum):
    """Whether a row holds for a version."""

    HOLDS = "holds"
    HOLDS_NOT = "holds not"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of one engine that a row is known to hold for."""

    engine: str
    since: Version | None
    """First version read in source; None where only a commit or a report is known."""

    until: Version | None
    """First version known to be free of it; None where none is."""

    def verdict(self, engine: Engine) -> Verdict:
        """Whether the row holds for ``engine``; UNKNOWN outside what was read in source."""
        if engine.name != self.engine:
            return Verdict.HOLDS_NOT
        if self.until is not None and engine.version >= self.until:
            return Verdict.HOLDS_NOT
        if self.since is None or engine.version < self.since or self.until is None:
            return Verdict.UNKNOWN
        return Verdict.HOLDS

    def __str__(self) -> str:
        if self.since is None:
            return f"{self.engine}, from which version on is not recorded here"
        start = ".".join(map(str, self.since))
        if self.until is None:
            return f"{self.engine} {start} and possibly later"
        return f"{self.engine} {start} until before {'.'.join(map(str, self.until))}"


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

LAST_TAP_LIMITS: tuple[tuple[Versions, str], ...] = (
    (
        Versions("sglang", (0, 5, 11), (0, 5, 24)),
        (
            "the capture hook stands before each layer, so there is none behind the last one "
            "(sgl-project/sglang#32204)"
        ),
    ),
)
"""Engines that cannot capture the output of a Qwen3.5-class target's last layer, with the reason."""

LITERAL_TAPS: tuple[tuple[Versions, str], ...] = (
    (
        Versions("vllm", (0, 20, 1), (0, 22)),
        (
            "target_layer_ids are taken as capture ids without the one that makes them outputs "
            "(vLLM 0.20.1 gpu_model_runner; mended by vllm-project/vllm#40727)"
        ),
    ),
)
"""Engines that read a native DFlash file's taps one layer early, with the reason."""


def versions_read(name: str) -> tuple[Version, Version]:
    """The first and the last version of an engine that a row above was read in source for."""
    rows = [spot.versions for spot in BLIND_SPOTS] + [v for v, _ in (*LAST_TAP_LIMITS, *LITERAL_TAPS)]
    own = [row for row in rows if row.engine == name]
    first = [row.since for row in own if row.since is not None]
    last = [row.until for row in own if row.until is not None]
    return min(first), max(last)


def trimmed(version: Version) -> Version:
    """The version without trailing zeros: 0.26.0 is 0.26."""
    while version and version[-1] == 0:
        version = version[:-1]
    return version


def version_text(version: Version) -> str:
    """``0.20.1``."""
    return ".".join(map(str, version))


_NAMED = re.compile(r"(?P<name>vllm|sglang)@(?P<version>\d+(?:\.\d+){1,3})")


def parse_engine(text: str) -> Engine:
    """The engine a user names. Raises UsageError where the text is not ``NAME@VERSION``."""
    match = _NAMED.fullmatch(text.strip().lower())
    if match is None:
        raise UsageError(
            "--engine",
            expected="vllm@VERSION or sglang@VERSION, e.g. vllm@0.20.1",
            found=repr(text),
            where="command line",
            means="nothing was read and nothing was done",
            next_step="draftproof check --help",
        )
    return Engine(match["name"], tuple(int(part) for part in match["version"].split(".")))
