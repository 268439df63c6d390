"""A checkpoint's tensors into a model's homes: every tensor used once, every home filled, or an error.

Tensors are read one at a time out of memory-mapped files and copied row by row to where they belong, so the
peak is the model plus one tensor. Names that belong to another part of the checkpoint (the MTP head, the
vision tower) are set aside by name; any other name is an error.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from draftproof.errors import RefusedInput
from draftproof.models.target.parameters import Bill, Place

__all__ = ["Accounting", "TensorSource", "account", "allocate", "fill"]

_RECOMPUTED = ".rotary_emb.inv_freq"
"""Frequencies that old Llama checkpoints carry; they follow from the config and are computed from it."""

_SHOWN = 12


class TensorSource(Protocol):
    """Named tensors of one checkpoint."""

    @property
    def where(self) -> str:
        """The checkpoint, as shown to people."""

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Every tensor's shape by name, without reading any."""

    def read(self, name: str) -> Tensor:
        """One tensor, on the CPU."""


@dataclass(frozen=True, slots=True)
class Accounting:
    """Every name of a checkpoint held against a bill."""

    used: tuple[str, ...]
    missing: tuple[str, ...]
    """Asked for by the model, not in the checkpoint."""

    unexpected: tuple[str, ...]
    """In the checkpoint, asked for by nothing."""

    left: Mapping[str, str]
    """Name -> the part of the model that reads it instead."""


def account(bill: Bill, names: Iterable[str]) -> Accounting:
    """Sort names into used, missing, unexpected and left to others."""
    listed = list(names)
    others = {n: reason for n in listed if n not in bill.pieces and (reason := _other(bill, n))}
    return Accounting(
        used=tuple(name for name in listed if name in bill.pieces),
        missing=tuple(sorted(set(bill.pieces) - set(listed))),
        unexpected=tuple(name for name in listed if name not in bill.pieces and name not in others),
        left=others,
    )


def _other(bill: Bill, name: str) -> str | None:
    if name.endswith(_RECOMPUTED):
        return "computed from the config instead"
    for copy, piece in bill.copies:
        if name == copy:
            return f"a copy of {piece}"
    return next((reason for prefix, reason in bill.others if name.startswith(prefix)), None)


def allocate(bill: Bill, *, dtype: torch.dtype, device: torch.device) -> dict[str, Tensor]:
    """Empty homes; on the meta device they cost nothing."""
    exact = torch.float64 if dtype == torch.float64 else torch.float32
    return {
        name: torch.empty(home.shape, dtype=exact if home.is_exact else dtype, device=device)
        for name, home in bill.homes.items()
    }


def fill(bill: Bill, source: TensorSource, homes: Mapping[str, Tensor]) -> Accounting:
    """Copy every piece of the bill from ``source`` to its places.

    Raises:
        RefusedInput: names are missing or left over, a shape differs, or a weight is NaN or infinite. Shapes
            and names are checked before anything is copied.
    """
    shapes = source.shapes()
    found = account(bill, shapes)
    if found.missing or found.unexpected:
        raise _not_accounted(found, source.where)
    wrong = [
        f"{name} {list(shapes[name])}, not {list(piece.shape)}"
        for name, piece in bill.pieces.items()
        if shapes[name] != piece.shape
    ]
    if wrong:
        raise _refused("tensor shapes", "the shapes the config gives", _some(wrong), source.where)
    _check_copies(bill, source, shapes)
    with torch.no_grad():
        for piece in bill.pieces.values():
            tensor = source.read(piece.name)
            _check_finite(piece.name, tensor, source.where)
            for place in piece.places:
                _put(homes[place.home], place, tensor)
    return found


def _check_copies(bill: Bill, source: TensorSource, shapes: Mapping[str, tuple[int, ...]]) -> None:
    for copy, original in bill.copies:
        if copy in shapes and not torch.equal(source.read(copy), source.read(original)):
            raise _refused(
                copy,
                f"the same numbers as {original}, for the config ties the two",
                "other numbers",
                source.where,
                "it cannot be said which of them the model was trained with",
            )


def _put(home: Tensor, place: Place, tensor: Tensor) -> None:
    target = home.narrow(0, place.row, len(place.rows))
    whole = isinstance(place.rows, range) and len(place.rows) == len(tensor)
    target.copy_(tensor if whole else tensor[torch.tensor(list(place.rows))])


def _check_finite(name: str, tensor: Tensor, where: str) -> None:
    # One sum settles it for nearly every tensor: NaN and infinity survive any addition.
    if math.isfinite(
        float(tensor.sum(dtype=torch.float64 if tensor.dtype == torch.float64 else torch.float32))
    ):
        return
    bad = int((~torch.isfinite(tensor)).sum())
    if bad:
        raise _refused(
            name,
            "finite weights",
            f"{bad} of {tensor.numel()} NaN or infinite",
            where,
            "every token would be noise",
        )


def _not_accounted(found: Accounting, where: str) -> RefusedInput:
    return _refused(
        "tensor names",
        "every parameter filled and every tensor used",
        f"{len(found.missing)} missing: {_some(found.missing)}; {len(found.unexpected)} unexpected: "
        f"{_some(found.unexpected)}",
        where,
    )


def _refused(subject: str, expected: str, found: str, where: str, means: str = "") -> RefusedInput:
    return RefusedInput(
        subject,
        expected=expected,
        found=found,
        where=where,
        means=means or "the weights are not those of the model the config describes; nothing was loaded",
        next_step=f"draftproof check {where}",
    )


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    rest = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return (", ".join(listed[:_SHOWN]) or "none") + rest
