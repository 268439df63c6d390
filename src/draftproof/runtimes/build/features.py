"""What builds of engines can do, as questions to their source: data, each row with its versions.

A form is a piece of Python in which a name with a leading underscore stands for any expression. Every row
was held against the wheels named in ``READ``; the table of versions is this, seen from the other side.
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["FEATURES", "READ", "SYMBOLS", "Feature", "Part"]

Version = tuple[int, ...]

READ: Mapping[str, tuple[Version, Version]] = {
    "vllm": ((0, 20, 1), (0, 33)),
    "sglang": ((0, 5, 11), (0, 5, 23)),
}
"""The first and last version whose source the rows were held against; nothing is expected outside."""

SYMBOLS = ("copy_and_expand_dflash_inputs_kernel_impl",)
"""Names looked for in native libraries: the CPU kernel without which DFlash does not draft there."""


@dataclass(frozen=True, slots=True)
class Part:
    """One question about one place of the source."""

    module: str
    symbol: str = ""
    """Function, class or field, dotted; empty for the module as a whole."""

    has: tuple[str, ...] = ()
    """Forms of which one must stand there; none: it is enough that the symbol is there."""

    lacks: tuple[str, ...] = ()
    """Forms that show the opposite; where given, neither of the two means unknown."""


@dataclass(frozen=True, slots=True)
class Feature:
    """Something a build has, has in part, or has not."""

    id: str
    engine: str
    title: str
    parts: tuple[Part, ...]
    since: Version
    """The first version read that has it."""

    last_without: Version | None
    """The last version read that has it not; None where the first one read has it."""

    source: str


_CONFIG = "vllm.config.speculative"
_ALGOS = "vllm.transformers_utils.configs.speculators.algos"
_MODELS = "vllm.model_executor.models"
_V2 = "vllm.v1.worker.gpu.spec_decode"
_PLUS_ONE = (
    "[_i + 1 for _i in _config.get('target_layer_ids') or []]",
    "[_i + 1 for _i in _config.get('target_layer_ids')]",
    "[_i + 1 for _i in _config['target_layer_ids']]",
)

FEATURES: tuple[Feature, ...] = (
    Feature(
        "dflash",
        "vllm",
        "DFlash drafts on the V1 runner",
        (
            Part("vllm.v1.spec_decode.dflash", "DFlashProposer"),
            Part(f"{_MODELS}.qwen3_dflash", "DFlashQwen3ForCausalLM"),
            Part(f"{_MODELS}.registry", "", ("'DFlashDraftModel'",)),
        ),
        (0, 20, 1),
        None,
        "v1/spec_decode/dflash.py, model_executor/models/qwen3_dflash.py, registry.py",
    ),
    Feature(
        "dflash-v2",
        "vllm",
        "DFlash drafts on the V2 runner",
        (Part(f"{_V2}.dflash"),),
        (0, 24),
        (0, 22),
        "v1/worker/gpu/spec_decode/dflash; vllm-project/vllm#44586",
    ),
    Feature(
        "taps-plus-one",
        "vllm",
        "target_layer_ids mean outputs of layers (V1 runner)",
        (
            Part(
                "vllm.v1.worker.gpu_model_runner",
                "GPUModelRunner._get_eagle3_aux_layers_from_config",
                _PLUS_ONE,
                ("_ids = _config.get('target_layer_ids')",),
            ),
        ),
        (0, 22),
        (0, 20, 1),
        "v1/worker/gpu_model_runner.py; vllm-project/vllm#40727",
    ),
    Feature(
        "taps-plus-one-v2",
        "vllm",
        "target_layer_ids mean outputs of layers (V2 runner)",
        (Part(f"{_V2}.eagle.eagle3_utils", "get_eagle3_aux_layers_from_config", _PLUS_ONE),),
        (0, 24),
        (0, 22),
        "v1/worker/gpu/spec_decode/eagle/eagle3_utils.py",
    ),
    Feature(
        "speculators-taps",
        "vllm",
        "aux_hidden_state_layer_ids of a speculators file become target_layer_ids less one",
        (
            Part(
                _ALGOS,
                "update_dflash",
                ("[_i - 1 for _i in _ids]",),
                ("{'mask_token_id': _m, 'target_layer_ids': _ids}",),
            ),
        ),
        (0, 22),
        (0, 20, 1),
        "transformers_utils/configs/speculators/algos.py",
    ),
    Feature(
        "dflash-windows",
        "vllm",
        "DFlash layers slide where layer_types say so",
        (Part(f"{_MODELS}.qwen3_dflash", "", ("getattr(_c, 'layer_types', _d)", "_c.layer_types")),),
        (0, 25),
        (0, 24),
        "model_executor/models/qwen3_dflash.py; vllm-project/vllm#46104, #47914, #48113",
    ),
    Feature(
        "speculators-non-causal",
        "vllm",
        "sliding_window_non_causal of a speculators file is read",
        (
            Part(
                _ALGOS,
                "update_dflash",
                (
                    "_c.get('sliding_window_non_causal', _d)",
                    "_c.get('sliding_window_non_causal')",
                    "_c['sliding_window_non_causal']",
                ),
            ),
        ),
        (0, 26),
        (0, 25),
        "transformers_utils/configs/speculators/algos.py; vllm-project/vllm#47745",
    ),
    Feature(
        "block-drop-switch",
        "vllm",
        "the dropped prefix block can be switched off (disable_eagle_block_drop)",
        (Part(_CONFIG, "SpeculativeConfig.disable_eagle_block_drop"),),
        (0, 30),
        (0, 29),
        "config/speculative.py; vllm-project/vllm#53388",
    ),
    Feature(
        "dflash-keeps-block",
        "vllm",
        "DFlash drops no prefix block",
        (Part(_CONFIG, "SpeculativeConfig.needs_eagle_block_drop"),),
        (0, 33),
        (0, 32),
        "config/speculative.py",
    ),
    Feature(
        "dspark",
        "vllm",
        "DSpark drafts on the V2 runner",
        (Part(f"{_V2}.dspark"), Part(_ALGOS, "update_dspark")),
        (0, 25),
        (0, 24),
        "v1/worker/gpu/spec_decode/dspark, transformers_utils/configs/speculators/algos.py",
    ),
    Feature(
        "dflash2",
        "vllm",
        "DFlash2 drafts: model, registry, layer hook and V2 selector",
        (
            Part(f"{_MODELS}.qwen3_dflash2", "DFlash2Qwen3ForCausalLM"),
            Part(f"{_MODELS}.registry", "", ("'DFlash2DraftModel'",)),
            Part(f"{_MODELS}.qwen3_dflash", "", ("self.decoder_layer_cls", "decoder_layer_cls = _c")),
            Part(f"{_V2}.dflash2"),
        ),
        (0, 29),
        (0, 26),
        "model_executor/models/qwen3_dflash2.py; vllm-project/vllm#52816, #53428",
    ),
    Feature(
        "dflash",
        "sglang",
        "DFlash drafts",
        (Part("sglang.srt.speculative.dflash_utils"), Part("sglang.srt.models.dflash", "DFlashDraftModel")),
        (0, 5, 11),
        None,
        "srt/speculative/dflash_utils.py, srt/models/dflash.py",
    ),
    Feature(
        "taps-plus-one",
        "sglang",
        "target_layer_ids mean outputs of layers",
        (
            Part(
                "sglang.srt.models.qwen3",
                "Qwen3ForCausalLM.set_dflash_layers_to_capture",
                ("[_i + 1 for _i in _ids]",),
                ("self.model.layers_to_capture = layer_ids",),
            ),
        ),
        (0, 5, 11),
        None,
        "srt/models/qwen3.py",
    ),
    Feature(
        "dflash-windows",
        "sglang",
        "DFlash layers slide where layer_types say so",
        (Part("sglang.srt.models.dflash", "", ("get_dflash_layer_types(_c)",)),),
        (0, 5, 14),
        (0, 5, 11),
        "srt/models/dflash.py; sgl-project/sglang#27469",
    ),
    Feature(
        "dflash-is-causal",
        "sglang",
        "is_causal of a DFlash drafter is read",
        (Part("sglang.srt.models.dflash", "", ("getattr(_c, 'is_causal', _d)", "_c.is_causal")),),
        (0, 5, 17),
        (0, 5, 14),
        "srt/models/dflash.py; sgl-project/sglang#34524",
    ),
    Feature(
        "dflash-overlap",
        "sglang",
        "DFlash runs with the overlap scheduler (second worker)",
        (Part("sglang.srt.speculative.dflash_worker_v2"),),
        (0, 5, 14),
        (0, 5, 11),
        "srt/speculative/dflash_worker_v2.py",
    ),
)
