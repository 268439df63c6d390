"""Published effect sizes: what a fault has been measured to cost, and who measured it.

A finding cites one of these or says nothing about size. Units: acceptance length (AL) counts the bonus token.
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["EFFECTS", "Effect"]


@dataclass(frozen=True, slots=True)
class Effect:
    """A measured cost of a fault."""

    text: str
    source: str
    """Where the number was published."""

    def sentence(self) -> str:
        """The effect as one sentence for a finding's ``means``."""
        return f"published effect: {self.text} ({self.source})"


EFFECTS: Mapping[str, Effect] = {
    "tap-off-by-one": Effect("AL 3 to 5 % lower (MT-Bench 4.13 -> 3.97)", "vllm-project/vllm#40727"),
    "window-dropped": Effect(
        "none below the window; AL 3.27 instead of 4.57 at 6K tokens, 4.49 instead of 7.76 at 16K; up to "
        "17.4 points of acceptance past the window",
        "Luce-Org/lucebox#129, ikawrakow/ik_llama.cpp#2021",
    ),
    "draft-window-ignored": Effect(
        "AL 2.295 at 2K tokens falls to 1.09 at 16K without the window", "vllm-project/speculators#684"
    ),
    "head-missing": Effect("AL exactly 1.00, nothing accepted", "sgl-project/sglang#27829"),
    "mtp-missing": Effect(
        "0.0 % of drafts accepted while the server runs normally", "vllm-project/vllm#35548"
    ),
    "own-head-overwritten": Effect("acceptance 25 % -> 1.7 %", "vllm-project/vllm-ascend#11374"),
    "fc-not-loaded": Effect("AL 3.7 -> 1.0", "sgl-project/sglang#39087"),
    "layer-partly-loaded": Effect(
        "acceptance 60 % -> 26 %", "Blackwellboy/model-serving-minefield, note U22"
    ),
    "aux-norm-skipped": Effect("acceptance 0.277 until the norm was applied", "charlie12345/ROCmFPX#44"),
    "norms-mixed": Effect("0 of 148 drafts accepted", "jundot/omlx#1507"),
    "fp16-overflow": Effect("0.06 of 15 drafts accepted instead of 4.19 in bf16", "InternLM/lmdeploy#4789"),
    "rope-layout": Effect("0.30 % accepted, AL 1.012", "NVIDIA/TensorRT-LLM#19036"),
    "rope-mismatch": Effect("AL 1.2 to 2.3 with partial rotary unread", "vllm-project/speculators#613"),
    "positions-short": Effect(
        "extremely low AL until 2048 was raised to the target's 40960; a device assert when compiled, while "
        "eager mode reads past the table unnoticed",
        "sgl-project/SpecForge#249, vllm-project/vllm#48894",
    ),
    "block-trained-wider": Effect(
        "trained 16 run 8: AL 5.09 against 5.21; trained 8 run 16: 5.02", "arXiv:2602.06036 table 8"
    ),
    "mask-fallback": Effect(
        "r_1 low and nothing accepted after it when the mask row is another token's",
        "NVIDIA-NeMo/Automodel#2461, sgl-project/SpecForge#455",
    ),
    "anchor-layout": Effect("acceptance below 2 %", "vllm-project/vllm#49614"),
    "vocab-mismatch": Effect("100 % of drafts rejected, NaN probabilities", "ggml-org/llama.cpp#3812"),
    "draft-map-missing": Effect(
        "acceptance collapses in the engine, fine in the trainer's own launcher",
        "NVIDIA-NeMo/Automodel#2447",
    ),
    "byte-ids-missing": Effect(
        "90 of 376 low ids missing: drafts bad in Spanish, output unchanged",
        "MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark#43",
    ),
    "causality-flattened": Effect(
        "full layers masked causally; later slots decay faster", "vllm-project/vllm#56692"
    ),
    "norm-flag-unread": Effect("acceptance lower than trained, no error", "vllm-project/vllm#38111"),
    "shard-missing": Effect("server boots, its tensors stay uninitialised", "sgl-project/sglang#32279"),
    "cache-without-draft-context": Effect(
        "AL 2.98 -> 1.25 with the cached length, about 1.0 when nearly all is cached",
        "vllm-project/vllm#47930",
    ),
    "thinking-mismatch": Effect(
        "acceptance 60 % -> 25 % with thinking on for one drafter, AL 9.49 -> 2.71 with it off for another",
        "z-lab/dflash#133, z-lab/dflash#60",
    ),
    "last-layer-tap": Effect("IndexError at load on Qwen3.5-class targets", "sgl-project/sglang#32204"),
}
