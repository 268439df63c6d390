"""Target families: how a file names its own, and what the family's forward pass does that no field says.

Source: transformers 5.24.0 modeling files of the named families.
"""

from dataclasses import dataclass

from draftproof.config.reader import Reader

__all__ = ["Family", "family_of", "is_causal_lm"]


@dataclass(frozen=True, slots=True)
class Family:
    """What holds for every model of a family."""

    name: str
    qk_norm: bool | None
    """None where the family does not decide it."""

    zero_centred_norm: bool | None
    gated_attention: bool | None
    layer_pattern: str
    """Without layer_types: ``window_gate``, ``interval``, ``alternate``, ``one_full_in``, ``window``,
    ``full`` or ``unknown``."""

    qkv_bias: bool | None = None
    """Fixed by the family; None where ``attention_bias`` decides."""

    output_bias: bool | None = None
    half_split_rope: bool | None = True
    mtp_style: str = "deepseek"


_QWEN2 = Family(
    "qwen2",
    qk_norm=False,
    zero_centred_norm=False,
    gated_attention=False,
    layer_pattern="window_gate",
    qkv_bias=True,
    output_bias=False,
    mtp_style="qwen",
)
_QWEN3 = Family("qwen3", True, False, False, "window_gate", mtp_style="qwen")
_QWEN3_MOE = Family("qwen3_moe", True, False, False, "window_gate", mtp_style="qwen")
_QWEN3_NEXT = Family("qwen3_next", True, True, True, "interval", mtp_style="qwen")
_QWEN3_5 = Family("qwen3_5", True, True, None, "interval", mtp_style="qwen")
_QWEN3_5_MOE = Family("qwen3_5_moe", True, True, None, "interval", mtp_style="qwen")
_LLAMA = Family("llama", False, False, False, "full")
_GEMMA2 = Family("gemma", False, True, False, "alternate")
_GEMMA3 = Family("gemma", True, True, False, "one_full_in")
_GEMMA4 = Family("gemma", True, False, False, "one_full_in")
_GPT_OSS = Family("gpt_oss", False, False, False, "alternate")
_DEEPSEEK = Family("deepseek", False, False, False, "full", half_split_rope=False)
_MISTRAL = Family("other", False, False, False, "window", qkv_bias=False, output_bias=False)
_OTHER = Family("other", None, None, None, "unknown", half_split_rope=None)

_BY_MODEL_TYPE = {
    "qwen2": _QWEN2,
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN3_MOE,
    "qwen3_vl": _QWEN3,
    "qwen3_vl_text": _QWEN3,
    "qwen3_vl_moe": _QWEN3_MOE,
    "qwen3_vl_moe_text": _QWEN3_MOE,
    "qwen3_next": _QWEN3_NEXT,
    "qwen3_5": _QWEN3_5,
    "qwen3_5_text": _QWEN3_5,
    "qwen3_5_moe": _QWEN3_5_MOE,
    "qwen3_5_moe_text": _QWEN3_5_MOE,
    "llama": _LLAMA,
    "mistral": _MISTRAL,
    "gemma2": _GEMMA2,
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    "gemma4": _GEMMA4,
    "gemma4_text": _GEMMA4,
    "gpt_oss": _GPT_OSS,
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v32": _DEEPSEEK,
}
_BY_ARCHITECTURE = {
    "qwen2forcausallm": _QWEN2,
    "qwen3forcausallm": _QWEN3,
    "qwen3moeforcausallm": _QWEN3_MOE,
    "qwen3nextforcausallm": _QWEN3_NEXT,
    "qwen3_5forcausallm": _QWEN3_5,
    "qwen3_5forconditionalgeneration": _QWEN3_5,
    "qwen3_5moeforcausallm": _QWEN3_5_MOE,
    "qwen3_5moeforconditionalgeneration": _QWEN3_5_MOE,
    "llamaforcausallm": _LLAMA,
    "mistralforcausallm": _MISTRAL,
    "gemma2forcausallm": _GEMMA2,
    "gemma3forcausallm": _GEMMA3,
    "gemma3forconditionalgeneration": _GEMMA3,
    "gemma4forcausallm": _GEMMA4,
    "gemma4forconditionalgeneration": _GEMMA4,
    "gptossforcausallm": _GPT_OSS,
    "deepseekv2forcausallm": _DEEPSEEK,
    "deepseekv3forcausallm": _DEEPSEEK,
}
_CAUSAL_ENDINGS = ("forcausallm", "forconditionalgeneration", "lmheadmodel")


def family_of(root: Reader, text: Reader) -> Family:
    """The family, by the text model's type, then the outer type, then the architecture."""
    for said in (text.string("model_type"), root.string("model_type")):
        if said.value in _BY_MODEL_TYPE:
            return _BY_MODEL_TYPE[said.value]
    for name in root.strings("architectures").value or ():
        if name.lower() in _BY_ARCHITECTURE:
            return _BY_ARCHITECTURE[name.lower()]
    return _OTHER


def is_causal_lm(root: Reader, text: Reader) -> bool:
    """Whether the file describes a language model that generates: by type, by architecture, or by shapes."""
    if family_of(root, text) is not _OTHER:
        return True
    names = root.strings("architectures").value
    if names:
        return any(name.lower().endswith(_CAUSAL_ENDINGS) for name in names)
    return all(map(text.says, ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")))
