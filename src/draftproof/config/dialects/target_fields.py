"""Fields of targets that change a forward pass and have no canonical field of their own: data.

Source: the config classes of transformers 5.24.0 for the families named in families.py.
"""

__all__ = ["EXTRA_KEYS", "TARGET_KEYS"]

EXTRA_KEYS = (
    "attn_logit_softcapping",
    "attention_chunk_size",
    "attention_k_eq_v",
    "attention_multiplier",
    "decoder_sparse_step",
    "embedding_multiplier",
    "final_logit_softcapping",
    "first_k_dense_replace",
    "full_attention_interval",
    "global_head_dim",
    "hidden_size_per_layer_input",
    "kv_lora_rank",
    "layer_types_pattern",
    "logits_scaling",
    "max_window_layers",
    "mlp_bias",
    "mlp_only_layers",
    "moe_layer_freq",
    "mtp_use_dedicated_embeddings",
    "n_group",
    "n_shared_experts",
    "no_rope_layers",
    "norm_topk_prob",
    "num_global_key_value_heads",
    "num_kv_shared_layers",
    "output_gate_type",
    "q_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "query_pre_attn_scalar",
    "residual_multiplier",
    "rope_local_base_freq",
    "routed_scaling_factor",
    "scoring_func",
    "sliding_window",
    "sliding_window_pattern",
    "_sliding_window_pattern",
    "swiglu_limit",
    "topk_group",
    "topk_method",
    "use_bidirectional_attention",
    "use_double_wide_mlp",
    "use_qk_norm",
    "use_sliding_window",
    "v_head_dim",
    "vocab_size_per_layer_input",
)
"""Kept as extras of a target."""

TARGET_KEYS = (
    *EXTRA_KEYS,
    "attn_output_gate",
    "layer_types",
    "linear_conv_kernel_dim",
    "linear_key_head_dim",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_value_head_dim",
    "mamba_ssm_dtype",
    "moe_intermediate_size",
    "mtp_num_hidden_layers",
    "num_experts",
    "num_experts_per_tok",
    "shared_expert_intermediate_size",
)
"""Kept as extras of a head whose file repeats its target's fields."""
