"""Expected tensors of a drafter: DFlash and DFlash 2, EAGLE-3 and P-EAGLE, an MTP head, a plain draft model.

H drafter hidden, H_t target hidden, n taps, L layers, V vocabulary, D draft vocabulary.
Source: z-lab dflash modeling file; SafeAILab/EAGLE cnets.py; vLLM 0.33 qwen3_dflash.py, llama_eagle3.py,
qwen3_5_mtp.py; speculators eagle3 and dflash models.
"""

from dataclasses import replace

from draftproof.checkpoint.expected.layer import AttentionStyle, add_attention, add_dense_mlp
from draftproof.checkpoint.expected.table import Dim, ExpectedTable, ExpectedTensor, Part, times
from draftproof.config.drafter import DrafterConfig, Method

__all__ = ["drafter_table"]

_PREFIXES = ("", "model.")
_NO_TABLE = "no table of tensors for {method}: its names and shapes are not published"


def drafter_table(config: DrafterConfig) -> ExpectedTable:
    """Every tensor an engine reads from this drafter's checkpoint; ``unknown`` says why there is no table."""
    method = config.method.value
    if method is None:
        return _unknown("drafter", "the drafting method is not known")
    layers = config.geometry.num_hidden_layers.value
    if layers is None:
        return _unknown(method.value, "the number of drafter layers is not known")
    part = Part(_PREFIXES)
    if method in {Method.DFLASH, Method.DFLASH2}:
        _add_dflash(part, config, layers)
    elif method in {Method.EAGLE3, Method.PEAGLE}:
        _add_eagle3(part, config, layers)
    elif method is Method.DRAFT_MODEL:
        _add_draft_model(part, config, layers)
    else:
        return _unknown(method.value, _NO_TABLE.format(method=method.value))
    return ExpectedTable(method.value, tuple(part.entries), (), None, None, is_drafter=True)


def _add_dflash(part: Part, config: DrafterConfig, layers: int) -> None:
    h = config.geometry.hidden_size.value
    part.add(
        "fc", "fc.weight", (h, _tapped(config)), "mixes the tapped states", aliases=("encoder.fc.weight",)
    )
    part.add("fc", "hidden_norm.weight", (h,), "norm after fc", aliases=("encoder.output_norm_enc.weight",))
    bias = config.geometry.attention_bias.value
    style = AttentionStyle(has_qk_norm=True, bias=bias, output_bias=bias)
    for i in range(layers):
        layer = f"layers.{i}"
        _add_norms(part, layer, h)
        add_attention(part, layer, config.geometry, style)
        add_dense_mlp(part, layer, h, config.geometry.intermediate_size.value)
        part.add(
            layer, f"{layer}.self_attn.g_proj.weight", None, "output gate of Laguna drafters", required=False
        )
        part.add(
            "fc", f"aux_hidden_norms.{i}.weight", None, "norm per tap of Laguna drafters", required=False
        )
        if config.method.value is Method.DFLASH2:
            _add_convolutions(part, layer, config)
    if config.method.value is Method.DFLASH2:
        _add_selector(part, config)
    part.add("norm", "norm.weight", (h,), "final norm")
    _add_vocabulary(part, config)


def _add_convolutions(part: Part, layer: str, config: DrafterConfig) -> None:
    h = config.geometry.hidden_size.value
    taps, group = _extra(config, "conv_kernel_size"), _extra(config, "conv_group_size")
    rows = times(2, taps, h // group) if h is not None and group else None
    for name in ("attention_conv", "mlp_conv"):
        base = f"{layer}.{name}"
        part.add(layer, f"{base}.base_kernel", (2, taps, h), "kernel before and after the sublayer")
        part.add(layer, f"{base}.kernel_projection.weight", (rows, h), "kernel that depends on the input")


def _add_selector(part: Part, config: DrafterConfig) -> None:
    rank, vocabulary = _extra(config, "selector_rank"), config.vocab_size.value
    base = "candidate_selector"
    for name in ("predecessor_codebook", "successor_codebook"):
        part.add(
            base, f"{base}.{name}", (vocabulary, rank), "pair scores", aliases=(f"{base}.{name}.weight",)
        )
    shape = (rank, config.geometry.hidden_size.value)
    part.add(base, f"{base}.hidden_projection.weight", shape, "pair scores of the state")


def _add_eagle3(part: Part, config: DrafterConfig, layers: int) -> None:
    h, wide = config.geometry.hidden_size.value, _tapped(config)
    part.add("fc", "fc.weight", (h, wide), "mixes the tapped states")
    bias = config.geometry.attention_bias.value
    for i in range(layers):
        first = i == 0
        layer = f"layers.{i}"
        start = len(part.entries)
        _add_norms(part, layer, h)
        if first:
            part.add(layer, f"{layer}.hidden_norm.weight", (h,), "norm of the mixed states")
        style = AttentionStyle(has_qk_norm=None, bias=bias, output_bias=bias, width=2 if first else 1)
        add_attention(part, layer, config.geometry, style)
        add_dense_mlp(part, layer, h, config.geometry.intermediate_size.value)
        if first and config.dialect == "eagle":
            _spell_midlayer(part, start)
    part.add("norm", "norm.weight", (h,), "final norm")
    _add_flagged_norms(part, config, wide)
    if config.method.value is Method.PEAGLE:
        part.add("fc", "mask_hidden", (1, wide), "state of the slots that have none yet")
    _add_vocabulary(part, config)


def _spell_midlayer(part: Part, start: int) -> None:
    """The official spelling of the first layer; engines read either. Source: vLLM 0.33 llama_eagle3.py."""
    part.entries[start:] = [_midlayer(entry) for entry in part.entries[start:]]


def _midlayer(entry: ExpectedTensor) -> ExpectedTensor:
    spelt = entry.name.replace("layers.0.", "midlayer.", 1)
    model = (f"model.{spelt}", entry.name, *entry.alternatives)
    return replace(entry, name=spelt, alternatives=model)


def _add_flagged_norms(part: Part, config: DrafterConfig, wide: Dim) -> None:
    before, each = config.norms.before_fc, config.norms.fc_norm
    if before.value is not False:
        text = "norm over all taps before fc (norm_before_fc)"
        part.add("fc", "input_norm.weight", (wide,), text, required=before.value is True)
    taps = config.taps.hidden_indexes.value
    if each.value is not False:
        for i in range(len(taps) if taps is not None else 0):
            width = config.target_hidden_size.value
            part.add(
                "fc", f"fc_norm.{i}.weight", (width,), "norm per tap (fc_norm)", required=each.value is True
            )


def _add_draft_model(part: Part, config: DrafterConfig, layers: int) -> None:
    h, v = config.geometry.hidden_size.value, config.vocab_size.value
    bias = config.geometry.attention_bias.value
    part.add("embed_tokens", "embed_tokens.weight", (v, h), "embedding")
    for i in range(layers):
        _add_norms(part, f"layers.{i}", h)
        style = AttentionStyle(has_qk_norm=None, bias=bias, output_bias=None)
        add_attention(part, f"layers.{i}", config.geometry, style)
        add_dense_mlp(part, f"layers.{i}", h, config.geometry.intermediate_size.value)
    part.add("norm", "norm.weight", (h,), "final norm")
    part.add("lm_head", "lm_head.weight", (v, h), "head; tied to the embedding if absent", required=False)


def _add_norms(part: Part, layer: str, h: Dim) -> None:
    for name in ("input_layernorm", "post_attention_layernorm"):
        part.add(layer, f"{layer}.{name}.weight", (h,), "layer norm")


def _add_vocabulary(part: Part, config: DrafterConfig) -> None:
    """Embedding, head and the map of a reduced vocabulary; the target's are used where they may be absent."""
    h, v, d = config.geometry.hidden_size.value, config.vocab_size.value, config.draft_vocab_size.value
    is_reduced = d is not None and v is not None and d < v
    narrow = h is not None and config.target_hidden_size.value not in {None, h}
    own = "its own: the target's has another width" if narrow else "the target's is used if it is absent"
    part.add("embed_tokens", "embed_tokens.weight", (v, h), f"embedding; {own}", required=narrow)
    text = "head of the reduced vocabulary" if is_reduced else f"head; {own}"
    part.add("lm_head", "lm_head.weight", (v if d is None else d, h), text, required=is_reduced or narrow)
    part.add(
        "d2t", "d2t", (v if d is None else d,), "draft id -> offset to the target id", required=is_reduced
    )
    part.add("t2d", "t2d", (v,), "which target ids are drafted; engines read d2t alone", required=False)
    for name, shape in (("verifier_lm_head.weight", (None, None)), ("verifier_norm.weight", (None,))):
        part.add(
            "verifier",
            name,
            shape,
            "copy of the target's for training; not read while drafting",
            required=False,
        )


def _tapped(config: DrafterConfig) -> Dim:
    taps = config.taps.hidden_indexes.value
    return None if taps is None else times(len(taps), config.target_hidden_size)


def _extra(config: DrafterConfig, name: str) -> Dim:
    if name not in config.extras:
        return None
    value = config.extras[name].value
    return value if type(value) is int else None


def _unknown(family: str, reason: str) -> ExpectedTable:
    return ExpectedTable(family, (), (), reason, None, is_drafter=True)
