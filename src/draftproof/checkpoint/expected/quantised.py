"""Names that quantisers put in place of a parameter, or beside it.

Source: compressed-tensors (weight_packed, weight_scale, weight_shape, ...), GPTQ and AWQ (qweight, qzeros,
scales, g_idx), fine-grained FP8 (weight_scale_inv), ModelOpt (input_scale, weight_scale_2), MLX (scales,
biases).
"""

__all__ = ["base_parameter", "is_payload"]

_PAYLOADS = ("weight_packed", "qweight", "weight_quantized", "weight_blocks")
_COMPANIONS = (
    *(
        "weight_scale_inv",
        "weight_scale_2",
        "weight_scale",
        "weight_shape",
        "weight_zero_point",
        "weight_g_idx",
    ),
    *("weight_global_scale", "input_global_scale", "input_scale", "output_scale", "weight_scales"),
    *("qzeros", "scales", "biases", "g_idx", "k_scale", "v_scale", "weight_offset"),
)


def base_parameter(name: str) -> str | None:
    """The parameter that a quantiser's tensor stands for: ``fc.weight`` for ``fc.weight_packed``."""
    stem, dot, last = name.rpartition(".")
    return f"{stem}.weight" if dot and last in (*_PAYLOADS, *_COMPANIONS) else None


def is_payload(name: str) -> bool:
    """Whether the tensor holds the numbers themselves, in place of the parameter."""
    return name.rpartition(".")[2] in _PAYLOADS
