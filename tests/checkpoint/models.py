"""Names and shapes of real architectures, from their published descriptions and not from our tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "QWEN36_27B",
    "Decoder",
    "Shapes",
    "dflash",
    "dflash2_extra",
    "eagle3",
    "hybrid_target",
    "mtp_head",
]

Shapes = dict[str, tuple[int, ...]]


class Decoder(NamedTuple):
    """The numbers of one decoder layer."""

    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int


@dataclass(frozen=True)
class Hybrid:
    """The numbers of a dense hybrid target."""

    layers: int
    hidden: int
    intermediate: int
    vocabulary: int
    heads: int
    kv_heads: int
    head_dim: int
    key_heads: int
    value_heads: int
    linear_dim: int


QWEN36_27B = Hybrid(64, 5120, 17408, 248320, 24, 4, 256, 16, 48, 128)


def dflash(layers: int, d: Decoder, taps: int, target_h: int, *, bias: bool = False) -> Shapes:
    """A native DFlash drafter: 11 tensors a layer and three more."""
    h, hd = d.hidden, d.head_dim
    shapes: Shapes = {"fc.weight": (h, taps * target_h), "hidden_norm.weight": (h,), "norm.weight": (h,)}
    for n in range(layers):
        base = f"layers.{n}."
        shapes |= _block(base, d, h, bias=bias)
        shapes |= {f"{base}self_attn.q_norm.weight": (hd,), f"{base}self_attn.k_norm.weight": (hd,)}
    return shapes


def dflash2_extra(layers: int, h: int, vocabulary: int, *, kernel: int, group: int, rank: int) -> Shapes:
    """What DFlash 2 adds."""
    shapes: Shapes = {
        "candidate_selector.predecessor_codebook": (vocabulary, rank),
        "candidate_selector.successor_codebook": (vocabulary, rank),
        "candidate_selector.hidden_projection.weight": (rank, h),
    }
    for n in range(layers):
        for conv in ("attention_conv", "mlp_conv"):
            shapes[f"layers.{n}.{conv}.base_kernel"] = (2, kernel, h)
            shapes[f"layers.{n}.{conv}.kernel_projection.weight"] = (2 * kernel * (h // group), h)
    return shapes


def eagle3(d: Decoder, target_h: int, vocabulary: int, draft: int, *, layer: str) -> Shapes:
    """An EAGLE-3 drafter with its reduced vocabulary; ``layer`` is ``midlayer.`` or ``layers.0.``."""
    h = d.hidden
    return {
        "fc.weight": (h, 3 * target_h),
        "norm.weight": (h,),
        "lm_head.weight": (draft, h),
        "d2t": (draft,),
        "t2d": (vocabulary,),
        f"{layer}hidden_norm.weight": (h,),
        **_block(layer, d, 2 * h),
    }


def hybrid_target(m: Hybrid, prefix: str = "model.language_model.") -> Iterator[tuple[str, Shapes]]:
    """A Qwen3.5-type target, layer by layer as (piece, shapes); three linear layers for each full one."""
    yield "embed", {f"{prefix}embed_tokens.weight": (m.vocabulary, m.hidden)}
    keys, values = m.key_heads * m.linear_dim, m.value_heads * m.linear_dim
    for n in range(m.layers):
        base = f"{prefix}layers.{n}."
        if (n + 1) % 4 == 0:
            yield f"layer {n}", _gated(base, m)
            continue
        attn = f"{base}linear_attn."
        yield (
            f"layer {n}",
            {
                **_norms(base, m.hidden),
                **_mlp(base, m.hidden, m.intermediate),
                f"{attn}in_proj_qkv.weight": (2 * keys + values, m.hidden),
                f"{attn}in_proj_z.weight": (values, m.hidden),
                f"{attn}in_proj_b.weight": (m.value_heads, m.hidden),
                f"{attn}in_proj_a.weight": (m.value_heads, m.hidden),
                f"{attn}conv1d.weight": (2 * keys + values, 1, 4),
                f"{attn}A_log": (m.value_heads,),
                f"{attn}dt_bias": (m.value_heads,),
                f"{attn}norm.weight": (m.linear_dim,),
                f"{attn}out_proj.weight": (m.hidden, values),
            },
        )
    yield "head", {f"{prefix}norm.weight": (m.hidden,), "lm_head.weight": (m.vocabulary, m.hidden)}


def mtp_head(m: Hybrid) -> Shapes:
    """The 15 tensors of a dense Qwen3.5-type MTP head."""
    h = m.hidden
    norms = {f"mtp.{n}.weight": (h,) for n in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")}
    return {"mtp.fc.weight": (h, 2 * h), **norms, **_gated("mtp.layers.0.", m)}


def _gated(base: str, m: Hybrid) -> Shapes:
    d = Decoder(m.hidden, m.intermediate, m.heads, m.kv_heads, m.head_dim)
    shapes = _block(base, d, m.hidden)
    shapes[f"{base}self_attn.q_proj.weight"] = (2 * m.heads * m.head_dim, m.hidden)
    return shapes | {f"{base}self_attn.{n}_norm.weight": (m.head_dim,) for n in "qk"}


def _norms(base: str, h: int) -> Shapes:
    return {f"{base}{n}.weight": (h,) for n in ("input_layernorm", "post_attention_layernorm")}


def _mlp(base: str, h: int, i: int) -> Shapes:
    return {
        f"{base}mlp.gate_proj.weight": (i, h),
        f"{base}mlp.up_proj.weight": (i, h),
        f"{base}mlp.down_proj.weight": (h, i),
    }


def _block(base: str, d: Decoder, wide: int, *, bias: bool = False) -> Shapes:
    attn, h, q, kv = f"{base}self_attn.", d.hidden, d.heads * d.head_dim, d.kv_heads * d.head_dim
    shapes: Shapes = {
        **_norms(base, h),
        f"{attn}q_proj.weight": (q, wide),
        f"{attn}k_proj.weight": (kv, wide),
        f"{attn}v_proj.weight": (kv, wide),
        f"{attn}o_proj.weight": (h, q),
        **_mlp(base, h, d.intermediate),
    }
    if bias:
        shapes |= {f"{attn}{n}_proj.bias": (kv,) for n in "kv"}
        shapes |= {f"{attn}q_proj.bias": (q,), f"{attn}o_proj.bias": (h,)}
    return shapes
