"""Expected tensors of a target, its MTP head included.

H hidden, V vocabulary, L layers. Source: transformers 5.24.0 modeling files of the named families; vLLM 0.33
qwen3_5_mtp.py, qwen3_next_mtp.py, deepseek_mtp.py. A vision or audio tower has no table here.
"""

from dataclasses import replace

from draftproof.checkpoint.expected.layer import (
    AttentionStyle,
    add_attention,
    add_dense_mlp,
    add_experts,
    add_linear_attention,
)
from draftproof.checkpoint.expected.table import Dim, ExpectedTable, Part, times
from draftproof.config.target import MtpHead, TargetConfig

__all__ = ["target_table"]

_TRUNK = ("model.", "model.language_model.", "language_model.model.", "")
_ROOT = ("", "language_model.", "model.", "model.language_model.")
_DENSE = {"qwen2", "qwen3", "llama", "qwen3_5"}
_SPARSE = {"qwen3_moe", "qwen3_next", "qwen3_5_moe"}
_SHARED_EXPERT = {"qwen3_next", "qwen3_5_moe"}
_TOWERS = tuple(
    (prefix, "a vision, audio or projection part: the language model does not read it")
    for prefix in (
        *(
            "model.visual.",
            "visual.",
            "vision_tower.",
            "model.vision_tower.",
            "vision_model.",
            "audio_tower.",
        ),
        *("multi_modal_projector.", "model.multi_modal_projector.", "mm_projector."),
    )
)
_IRREGULAR = ("mlp_only_layers", "first_k_dense_replace", "decoder_sparse_step")
_MXFP4_GROUP = 32  # numbers that share a scale. Source: OCP microscaling formats 1.0


def target_table(config: TargetConfig) -> ExpectedTable:
    """Every tensor an engine reads of this target; ``unknown`` says why there is no table."""
    if not config.layers or any(layer.kind.value is None for layer in config.layers):
        return _head_alone(config, "the kind of each layer is not known")
    if config.family not in {*_DENSE, *_SPARSE, "gpt_oss"}:
        return _head_alone(config, f"no table of tensors for the family {config.family}")
    if config.family in _SPARSE and (odd := _irregular(config)):
        return _head_alone(config, f"{odd} mixes dense and sparse layers")
    trunk = Part(_TRUNK)
    h, v = config.geometry.hidden_size.value, config.vocab_size.value
    trunk.add("embed_tokens", "embed_tokens.weight", (v, h), "embedding")
    for i, layer in enumerate(config.layers):
        _add_layer(trunk, config, f"layers.{i}", layer.kind.value)
    trunk.add("norm", "norm.weight", (h,), "final norm")
    root = Part(_ROOT)
    tied = config.tie_word_embeddings.value
    text = "head" if tied is False else "head; the embedding is used if it is absent"
    root.add("lm_head", "lm_head.weight", (v, h), text, required=tied is False)
    if config.mtp is not None:
        _add_head(root, trunk, config, config.mtp)
    entries = (*trunk.entries, *root.entries)
    return ExpectedTable(config.family, entries, _TOWERS, None, None, is_drafter=False)


def _head_alone(config: TargetConfig, reason: str) -> ExpectedTable:
    """The MTP head where the trunk has no table: enough to say that a promised head is not there."""
    root, trunk = Part(_ROOT), Part(_TRUNK)
    if config.mtp is not None:
        _add_head(root, trunk, config, config.mtp)
    entries = (*trunk.entries, *root.entries)
    if not entries:
        return ExpectedTable(config.family, (), (), reason, None, is_drafter=False)
    return ExpectedTable(config.family, entries, _TOWERS, None, reason, is_drafter=False)


def _add_layer(part: Part, config: TargetConfig, layer: str, kind: str | None) -> None:
    h = config.geometry.hidden_size.value
    for name in ("input_layernorm", "post_attention_layernorm"):
        part.add(layer, f"{layer}.{name}.weight", (h,), "layer norm")
    if kind == "linear_attention":
        add_linear_attention(part, layer, h, config.linear_attention, is_fused=config.family == "qwen3_next")
    else:
        add_attention(part, layer, config.geometry, _style(config))
    _add_mlp(part, config, layer)


def _add_mlp(part: Part, config: TargetConfig, layer: str) -> None:
    h = config.geometry.hidden_size.value
    if config.family in _SPARSE:
        add_experts(part, layer, h, config.experts, has_shared=config.family in _SHARED_EXPERT)
    elif config.family == "gpt_oss":
        _add_gpt_oss_experts(part, config, layer, h)
    else:
        add_dense_mlp(part, layer, h, config.geometry.intermediate_size.value)


def _style(config: TargetConfig) -> AttentionStyle:
    return AttentionStyle(
        has_qk_norm=config.qk_norm.value,
        bias=config.qkv_bias.value,
        output_bias=config.output_bias.value,
        q_factor=2 if config.attn_output_gate.value else 1,
        has_sinks=config.family == "gpt_oss",
    )


def _add_gpt_oss_experts(part: Part, config: TargetConfig, layer: str, h: Dim) -> None:
    """Experts of gpt-oss: plain, or as MXFP4 blocks and scales. Source: transformers modeling_gpt_oss.py."""
    count, width = config.experts.num_experts.value, config.geometry.intermediate_size.value
    mlp = f"{layer}.mlp"
    part.add(layer, f"{mlp}.router.weight", (count, h), "router")
    part.add(layer, f"{mlp}.router.bias", (count,), "router bias")
    for name, rows, columns in (("gate_up_proj", times(width, 2), h), ("down_proj", h, width)):
        base = f"{mlp}.experts.{name}"
        part.add(layer, base, (count, columns, rows), "all experts, input dimension first")
        part.add(layer, f"{base}_bias", (count, rows), "bias of all experts")
        groups = None if columns is None else columns // _MXFP4_GROUP
        for suffix, shape in (("blocks", (count, rows, groups, 16)), ("scales", (count, rows, groups))):
            text = f"MXFP4 {suffix} of all experts"
            part.add(layer, f"{base}_{suffix}", shape, text, required=False, stands_for=(base,))


def _add_head(root: Part, trunk: Part, config: TargetConfig, head: MtpHead) -> None:
    count = head.num_layers.value or 0
    if head.style == "qwen":
        _add_qwen_head(root, config, head, count)
    else:
        for i in range(count):
            _add_deepseek_head(trunk, config, (config.geometry.num_hidden_layers.value or 0) + i)


def _add_qwen_head(part: Part, config: TargetConfig, head: MtpHead, count: int) -> None:
    h = config.geometry.hidden_size.value
    start = len(part.entries)
    part.add("mtp", "mtp.fc.weight", (h, times(h, 2)), "mixes embedding (first half) and state")
    for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
        part.add("mtp", f"mtp.{name}.weight", (h,), "norm of the MTP head, zero-centred")
    for i in range(count):
        layer = f"mtp.layers.{i}"
        _add_layer(part, config, layer, "full_attention")
    own = head.dedicated_embeddings.value is True
    shape = (config.vocab_size.value, h)
    part.add("mtp", "mtp.embed_tokens.weight", shape, "own embedding of the head", required=own)
    for i in range(start, len(part.entries)):
        part.entries[i] = replace(part.entries[i], part="mtp")


def _add_deepseek_head(part: Part, config: TargetConfig, index: int) -> None:
    """The extra layer after the trunk; of its decoder block only the norms, present in every variant."""
    h, layer = config.geometry.hidden_size.value, f"layers.{index}"
    for name in ("enorm", "hnorm", "shared_head.norm", "input_layernorm", "post_attention_layernorm"):
        part.add("mtp", f"{layer}.{name}.weight", (h,), "norm of the MTP layer")
    part.add("mtp", f"{layer}.eh_proj.weight", (h, times(h, 2)), "mixes embedding (first half) and state")
    vocabulary = (config.vocab_size.value, h)
    text = "the target's is used if it is absent"
    part.add("mtp", f"{layer}.shared_head.head.weight", vocabulary, f"own head; {text}", required=False)
    part.add("mtp", f"{layer}.embed_tokens.weight", vocabulary, f"own embedding; {text}", required=False)


def _irregular(config: TargetConfig) -> str | None:
    """The field that makes some layers of a sparse model dense, if one does."""
    for name in _IRREGULAR:
        if name in config.extras and config.extras[name].value not in (None, [], 0, 1):
            return name
    return None
