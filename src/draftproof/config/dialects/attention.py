"""Which layers slide, how far they see, and whether a block is causal inside: with the reason for each.

Source: dflash 0.1.0 model.py and SpecForge (sliding layers are causal inside the block, full ones not);
vLLM 0.33 qwen3_dflash (is_causal before dflash_config.causal, swa_window_size before sliding_window,
use_swa makes every layer slide where none does); transformers Qwen3Config (explicit layer_types win,
otherwise layers from max_window_layers on slide if use_sliding_window is true).
"""

from dataclasses import dataclass

from draftproof.config.defaults import ClassDefaults
from draftproof.config.drafter import DrafterLayer
from draftproof.config.reader import Reader, default, derived, unknown
from draftproof.config.source import Source, Sourced, Unknown

__all__ = [
    "FULL",
    "LINEAR",
    "SLIDING",
    "Kinds",
    "block_layers",
    "causal_layers",
    "gated_window",
    "layer_kinds",
    "layer_window",
]

FULL = "full_attention"
SLIDING = "sliding_attention"
LINEAR = "linear_attention"

_SILENT_FULL = "no layer_types: every layer is full attention"


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kind of every layer, and where the list comes from."""

    each: tuple[Sourced[str], ...]
    is_listed: bool
    """The file has layer_types, readable or not."""

    source: Source
    """Of the list as a whole; why it is empty where it is."""


def layer_kinds(read: Reader, count: Sourced[int], known: ClassDefaults | None) -> Kinds:
    """Kind of every layer: as listed, else as the reading class makes them up."""
    types = read.strings("layer_types")
    if types.value is not None:
        each = tuple(Sourced(kind, read.item("layer_types", i)) for i, kind in enumerate(types.value))
        return Kinds(each, is_listed=True, source=types.source)
    if read.says("layer_types"):
        mistyped: tuple[Sourced[str], ...] = (Sourced(None, types.source),) * _reasonable(count)
        return Kinds(mistyped, is_listed=True, source=types.source)
    if not _reasonable(count):
        why = (
            count.source.reason if isinstance(count.source, Unknown) else f"{count.value} layers are no stack"
        )
        return Kinds((), is_listed=False, source=Unknown(f"no layer_types, and the number of layers: {why}"))
    if known is None or not known.has_window_gate:
        each = tuple(derived(FULL, _SILENT_FULL) for _ in range(_reasonable(count)))
    else:
        each = tuple(_synthesised(read, known, i) for i in range(_reasonable(count)))
    return Kinds(each, is_listed=False, source=each[0].source)


def gated_window(read: Reader, known: ClassDefaults | None) -> Sourced[int]:
    """The window the file means for its sliding layers: ``sliding_window``, or what its class fills in.

    ``use_sliding_window`` false does not unmake a window that is written: that a library then drops it
    is a matter of the PARSED layer.
    """
    gate = read.boolean("use_sliding_window")
    said = read.integer("sliding_window")
    if read.has("sliding_window"):
        return said
    if known is not None and known.has_window_gate and gate.value:
        filler = known.values["sliding_window"]
        return default(filler, known.library) if isinstance(filler, int) else said
    return said


def block_layers(
    kinds: tuple[Sourced[str], ...],
    window: Sourced[int],
    *,
    causal_everywhere: Sourced[bool] | None,
    causal_if_sliding: Sourced[bool],
) -> tuple[DrafterLayer, ...]:
    """The layers of a block drafter (DFlash and its kin)."""
    return tuple(
        DrafterLayer(
            kind=kind,
            window=layer_window(kind, window),
            causal=causal_everywhere or _causal(kind, causal_if_sliding),
        )
        for kind in kinds
    )


def causal_layers(
    kinds: tuple[Sourced[str], ...], window: Sourced[int], rule: str
) -> tuple[DrafterLayer, ...]:
    """The layers of a drafter that drafts from left to right."""
    return tuple(
        DrafterLayer(kind=kind, window=layer_window(kind, window), causal=derived(True, rule))
        for kind in kinds
    )


def layer_window(kind: Sourced[str], window: Sourced[int]) -> Sourced[int]:
    """How far a layer of this kind sees: ``window`` if it slides, none if it is of a kind without."""
    if kind.value == SLIDING:
        return window
    if kind.value in (FULL, LINEAR):
        return derived(None, f"a {kind.value} layer has no window")
    return unknown(_no_kind(kind))


def _causal(kind: Sourced[str], causal_if_sliding: Sourced[bool]) -> Sourced[bool]:
    if kind.value == SLIDING:
        return causal_if_sliding
    if kind.value == FULL:
        return derived(False, "full layers see the whole block (dflash 0.1.0, SpecForge, vLLM 0.33)")
    return unknown(_no_kind(kind))


def _no_kind(kind: Sourced[str]) -> str:
    if kind.value is None:
        return "the kind of this layer is not known"
    return f"layers of kind {kind.value!r} are not known here"


def _synthesised(read: Reader, known: ClassDefaults, index: int) -> Sourced[str]:
    gate = read.boolean("use_sliding_window", absent=default(False, known.library))
    window = read.integer("sliding_window", absent=default(4096, known.library))
    start = read.integer("max_window_layers", absent=default(28, known.library))
    for said, name in ((gate, "use_sliding_window"), (start, "max_window_layers")):
        if isinstance(said.source, Unknown):
            return unknown(f"no layer_types, and {name} cannot be read: {said.source.reason}")
    if not gate.value:
        return derived(FULL, f"no layer_types and use_sliding_window is not true ({known.library})")
    if window.value is None or start.value is None:
        return derived(FULL, f"no layer_types and no window is set ({known.library})")
    kind = SLIDING if index >= start.value else FULL
    return derived(kind, f"no layer_types: layers from max_window_layers={start.value} on slide")


def _reasonable(count: Sourced[int]) -> int:
    """A layer count from a file may be any integer; lists are made only for one that can be true."""
    return count.value if count.value is not None and 0 < count.value <= _MAX_LAYERS else 0


_MAX_LAYERS = 4096
