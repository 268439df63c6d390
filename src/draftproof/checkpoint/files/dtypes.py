"""Every safetensors dtype with its width in bits.

Source: safetensors 0.8.0 ``Dtype`` (the only names its reader accepts).
"""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["BITS", "FLOATS", "WHOLE", "num_bytes"]

BITS: Mapping[str, int] = MappingProxyType(
    {
        "BOOL": 8,
        "F4": 4,
        "F6_E2M3": 6,
        "F6_E3M2": 6,
        "U8": 8,
        "I8": 8,
        "F8_E5M2": 8,
        "F8_E4M3": 8,
        "F8_E8M0": 8,
        "F8_E4M3FNUZ": 8,
        "F8_E5M2FNUZ": 8,
        "I16": 16,
        "U16": 16,
        "F16": 16,
        "BF16": 16,
        "I32": 32,
        "U32": 32,
        "F32": 32,
        "C64": 64,
        "F64": 64,
        "I64": 64,
        "U64": 64,
    }
)
"""Bits of one element, by the name a header writes."""

FLOATS = frozenset({"F16", "BF16", "F32", "F64"})
"""Dtypes of tensors that hold unquantised weights."""

WHOLE = frozenset({"BOOL", "I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64"})
"""Dtypes without a fraction: ids, masks, and what quantisers pack weights into beside their scales."""

_LIMIT = 1 << 64  # the format's sizes are unsigned 64-bit; a product past that is a fault, not a size


def num_bytes(dtype: str, shape: tuple[int, ...]) -> int | None:
    """Bytes that ``shape`` takes in ``dtype``; None where no whole 64-bit number of bytes holds it.

    Raises:
        KeyError: the dtype is not one of BITS.
    """
    elements = 1
    for dimension in shape:
        elements *= dimension
        if elements >= _LIMIT:
            return None
    bits = elements * BITS[dtype]
    return None if bits % 8 or bits >= _LIMIT else bits // 8
