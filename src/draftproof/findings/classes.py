"""Classes of drafters that engines and trainers register under ``architectures``: data.

Source: vLLM 0.33 model registry (speculative decoding models), SGLang 0.5.23 models/, SpecForge,
speculators 0.9.0, z-lab dflash 0.1.0.
"""

__all__ = ["CLASSES"]

CLASSES: tuple[str, ...] = (
    "DFlash2DraftModel",
    "DFlashDraftModel",
    "DFlashLagunaForCausalLM",
    "DFlashLinearDraftModel",
    "DFlashQwen3ForCausalLM",
    "DFlashSpeculator",
    "DSparkDraftModel",
    "DominoDraftModel",
    "Eagle3DeepseekV2ForCausalLM",
    "Eagle3DraftModel",
    "Eagle3LlamaForCausalLM",
    "Eagle3MiniCPMForCausalLM",
    "Eagle3Qwen2_5vlForCausalLM",
    "Eagle3Qwen3vlForCausalLM",
    "Eagle3Speculator",
    "LlamaForCausalLMEagle3",
    "PEagleDraftModel",
    "PEagleLlamaForCausalLM",
)
