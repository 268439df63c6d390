"""NaN and infinity counted in a page of any float dtype, a page at a time instead of a number at a time.

A float is not finite where all bits of its exponent are set (Source: IEEE 754; OCP 8-bit floating point,
whose E4M3 has a single NaN: exponent and mantissa all ones). One big integer tests a whole page of them.
"""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["NONFINITE", "count_nonfinite"]

NONFINITE: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "BF16": (2, 0x7F80),
        "F16": (2, 0x7C00),
        "F32": (4, 0x7F80_0000),
        "F64": (8, 0x7FF0_0000_0000_0000),
        "F8_E5M2": (1, 0x7C),
        "F8_E4M3": (1, 0x7F),
        "F8_E8M0": (1, 0xFF),
    }
)
"""Dtype -> bytes of one number, and the bits that are all set where it is not finite."""


def count_nonfinite(page: bytes, dtype: str) -> int:
    """How many numbers of the page are NaN or infinite; a last number cut by the page is left out."""
    width, mask = NONFINITE[dtype]
    count = len(page) // width
    if not count:
        return 0
    ones = int.from_bytes((1).to_bytes(width, "little") * count, "little")
    exponents = ones * mask
    # Lanes that are 0 here have the whole exponent set.
    short = ~int.from_bytes(page[: count * width], "little") & exponents
    # Fold every lane's bits into its lowest one, then count the lanes where that stayed 0.
    shift = 1
    while shift < 8 * width:
        short |= (short >> shift) & ~(ones * (((1 << shift) - 1) << (8 * width - shift)))
        shift *= 2
    return count - (short & ones).bit_count()
