"""Expected tensors of one decoder layer: attention, linear attention, dense MLP, experts.

H hidden, I intermediate, nh/nkv/hd heads, key/value heads, head dimension, E experts, Im their width.
Source: transformers 5.x modeling files of qwen3, llama, qwen3_next, qwen3_5, qwen3_5_moe, gpt_oss.
"""

from dataclasses import dataclass

from draftproof.checkpoint.expected.table import Dim, Part, times
from draftproof.config.drafter import Geometry
from draftproof.config.target import Experts, LinearAttention

__all__ = ["AttentionStyle", "add_attention", "add_dense_mlp", "add_experts", "add_linear_attention"]


@dataclass(frozen=True, slots=True)
class AttentionStyle:
    """What distinguishes one family's full attention from another's."""

    has_qk_norm: bool | None
    """None: either is read."""

    bias: bool | None
    """Biases on q, k, v; None: not known, either is read."""

    output_bias: bool | None
    width: int = 1
    """Input width in multiples of H: 2 in the first EAGLE-3 layer."""

    q_factor: int = 1
    """2 where ``q_proj`` also puts out a gate per head."""

    has_sinks: bool = False


def add_attention(part: Part, layer: str, geometry: Geometry, style: AttentionStyle) -> None:
    """Projections, their biases, head norms and sinks of ``{layer}.self_attn``."""
    attn = f"{layer}.self_attn"
    h = geometry.hidden_size.value
    q = times(geometry.num_attention_heads, geometry.head_dim)
    kv = times(geometry.num_key_value_heads, geometry.head_dim)
    rows: dict[str, Dim] = {"q_proj": times(q, style.q_factor), "k_proj": kv, "v_proj": kv}
    for name, out in rows.items():
        part.add(layer, f"{attn}.{name}.weight", (out, times(h, style.width)), "attention projection")
        _bias(part, layer, f"{attn}.{name}.bias", (out,), style.bias)
    part.add(layer, f"{attn}.o_proj.weight", (h, q), "attention output")
    _bias(part, layer, f"{attn}.o_proj.bias", (h,), style.output_bias)
    fused = tuple(f"{attn}.{name}.weight" for name in rows)
    part.add(
        layer,
        f"{attn}.qkv_proj.weight",
        (None, times(h, style.width)),
        "q, k and v in one",
        required=False,
        stands_for=fused,
    )
    if style.has_qk_norm is not False:
        needed = style.has_qk_norm is True
        for name in ("q_norm", "k_norm"):
            part.add(
                layer, f"{attn}.{name}.weight", (geometry.head_dim.value,), "norm per head", required=needed
            )
    if style.has_sinks:
        part.add(layer, f"{attn}.sinks", (geometry.num_attention_heads.value,), "attention sink per head")


def _bias(part: Part, layer: str, name: str, shape: tuple[Dim, ...], wanted: bool | None) -> None:  # noqa: FBT001 - three-valued fact, not a switch
    if wanted is not False:
        part.add(layer, name, shape, "attention_bias says so", required=wanted is True)


def add_dense_mlp(part: Part, layer: str, hidden: Dim, intermediate: Dim, *, name: str = "mlp") -> None:
    """``gate_proj``, ``up_proj`` and ``down_proj``, or gate and up in one."""
    mlp = f"{layer}.{name}"
    for projection in ("gate_proj", "up_proj"):
        part.add(layer, f"{mlp}.{projection}.weight", (intermediate, hidden), "SwiGLU input")
    part.add(layer, f"{mlp}.down_proj.weight", (hidden, intermediate), "SwiGLU output")
    fused = (f"{mlp}.gate_proj.weight", f"{mlp}.up_proj.weight")
    part.add(
        layer,
        f"{mlp}.gate_up_proj.weight",
        (times(intermediate, 2), hidden),
        "gate and up in one",
        required=False,
        stands_for=fused,
    )


def add_experts(part: Part, layer: str, hidden: Dim, experts: Experts, *, has_shared: bool) -> None:
    """Router, experts (one by one or fused), and the shared expert with its gate."""
    count, width = experts.num_experts.value, experts.moe_intermediate_size.value
    mlp = f"{layer}.mlp"
    part.add(layer, f"{mlp}.gate.weight", (count, hidden), "router")
    single = []
    for i in range(count or 0):
        for projection, shape in (
            ("gate_proj", (width, hidden)),
            ("up_proj", (width, hidden)),
            ("down_proj", (hidden, width)),
        ):
            name = f"{mlp}.experts.{i}.{projection}.weight"
            single.append(name)
            part.add(layer, name, shape, "expert")
    fused = tuple(n for n in single if "down_proj" not in n)
    part.add(
        layer,
        f"{mlp}.experts.gate_up_proj",
        (count, None, None),
        "experts in one",
        required=False,
        stands_for=fused,
    )
    fused = tuple(n for n in single if "down_proj" in n)
    part.add(
        layer,
        f"{mlp}.experts.down_proj",
        (count, None, None),
        "experts in one",
        required=False,
        stands_for=fused,
    )
    if has_shared:
        add_dense_mlp(
            part, layer, hidden, experts.shared_expert_intermediate_size.value, name="mlp.shared_expert"
        )
        part.add(layer, f"{mlp}.shared_expert_gate.weight", (1, hidden), "gate of the shared expert")


def add_linear_attention(
    part: Part, layer: str, hidden: Dim, shapes: LinearAttention, *, is_fused: bool
) -> None:
    """Gated DeltaNet: ``in_proj_qkvz``/``in_proj_ba`` (Qwen3-Next) or four projections (Qwen3.5)."""
    attn = f"{layer}.linear_attn"
    heads = shapes.num_value_heads.value
    keys = times(shapes.num_key_heads, shapes.key_head_dim)
    values = times(heads, shapes.value_head_dim)
    channels = None if keys is None or values is None else 2 * keys + values
    if is_fused:
        rows: dict[str, Dim] = {
            "in_proj_qkvz": None if channels is None or values is None else channels + values,
            "in_proj_ba": times(heads, 2),
        }
    else:
        rows = {"in_proj_qkv": channels, "in_proj_z": values, "in_proj_b": heads, "in_proj_a": heads}
    for name, out in rows.items():
        part.add(layer, f"{attn}.{name}.weight", (out, hidden), "linear attention input")
    part.add(layer, f"{attn}.conv1d.weight", (channels, 1, shapes.conv_kernel_dim.value), "short convolution")
    part.add(layer, f"{attn}.A_log", (heads,), "decay per head")
    part.add(layer, f"{attn}.dt_bias", (heads,), "time step bias per head")
    part.add(
        layer, f"{attn}.norm.weight", (shapes.value_head_dim.value,), "gated norm (weight applied as it is)"
    )
    part.add(layer, f"{attn}.out_proj.weight", (hidden, values), "linear attention output")
