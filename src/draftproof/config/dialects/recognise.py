"""What a file is, by its fields and never by its name: which method, in which dialect.

Source: the class names that vLLM 0.33, SGLang 0.5.23, SpecForge, speculators 0.9.0 and dflash 0.1.0 register.
"""

from dataclasses import dataclass

from draftproof.config.drafter import Method
from draftproof.config.problem import ProblemKind
from draftproof.config.reader import Reader, derived, unknown
from draftproof.config.source import Sourced

__all__ = ["Recognised", "recognise_drafter"]


@dataclass(frozen=True, slots=True)
class Recognised:
    """A drafter's method and the dialect to read it with."""

    method: Sourced[Method]
    dialect: str
    """``speculators``, ``native`` or ``eagle``, ``mtp``"""


_SPECULATORS_TYPES = {
    "dflash": Method.DFLASH,
    "dflash2": Method.DFLASH2,
    "eagle3": Method.EAGLE3,
    "peagle": Method.PEAGLE,
    "mtp": Method.MTP,
    "dspark": Method.DSPARK,
    "domino": Method.DOMINO,
}
_BLOCK_METHODS = (Method.DFLASH, Method.DFLASH2, Method.DSPARK, Method.DOMINO)
_DFLASH2_KEYS = ("selector_rank", "selector_top_k", "conv_kernel_size", "conv_group_size")
_DOMINO_KEYS = ("gru_hidden_dim", "pure_draft_prefix_len", "shift_label")
_DSPARK_KEYS = ("markov_rank", "markov_head_type", "enable_confidence_head", "confidence_head_with_markov")


def recognise_drafter(read: Reader) -> Recognised | None:
    """The drafter a file describes, or None if nothing in it says drafter."""
    if (
        read.has("speculators_model_type")
        or read.is_object("speculators_config")
        or read.is_object("transformer_layer_config")
    ):
        return Recognised(_speculators_method(read), "speculators")
    named = _by_architecture(read)
    block = read.is_object("dflash_config") or read.is_object("dspark_config") or _has(read, _DSPARK_KEYS)
    if block or read.has("projector_type") or (named is not None and named.value in _BLOCK_METHODS):
        return Recognised(_block_method(read, named), "native")
    if named is not None and named.value is Method.MTP:
        return Recognised(named, "mtp")
    if named is not None:
        return Recognised(named, "eagle")
    if any(map(read.says, ("eagle_config", "eagle_aux_hidden_state_layer_ids", "draft_vocab_size"))):
        found = "eagle_config, layer ids or a draft vocabulary under another architecture"
        read.complain(ProblemKind.ODD, "architectures", "an EAGLE-3 architecture", found)
        return Recognised(derived(Method.EAGLE3, f"{found}: only EAGLE-3 files have these"), "eagle")
    return None


def _by_architecture(read: Reader) -> Sourced[Method] | None:
    """The method that a name under ``architectures`` (or a ``*_mtp`` model type) stands for."""
    names = read.strings("architectures")
    for i, name in enumerate(names.value or ()):
        method = _method_of_name(name)
        if method is not None:
            return Sourced(method, read.item("architectures", i))
        if name.lower().endswith(("forcausallmeagle", "eagleforcausallm")):
            return unknown(f"{name}: EAGLE-1 and EAGLE-2 heads are not read here")
    model_type = read.string("model_type")
    if model_type.value is not None and model_type.value.endswith("_mtp"):
        return Sourced(Method.MTP, model_type.source)
    return None


def _method_of_name(name: str) -> Method | None:
    lowered = name.lower()
    for part, method in (
        ("dspark", Method.DSPARK),
        ("domino", Method.DOMINO),
        ("dflash2", Method.DFLASH2),
        ("dflash", Method.DFLASH),
        ("peagle", Method.PEAGLE),
        ("eagle3", Method.EAGLE3),
    ):
        if part in lowered:
            return method
    return Method.MTP if name.endswith(("MTP", "MTPModel", "NextN", "MTPDraftModel")) else None


def _block_method(read: Reader, named: Sourced[Method] | None) -> Sourced[Method]:
    """Fields before names: a file that carries Domino's or DSpark's own fields is not plain DFlash."""
    told = _by_fields(read)
    if told is None and named is not None and named.value in _BLOCK_METHODS:
        return named
    if told is None:
        read.complain(ProblemKind.ODD, "architectures", "a DFlash architecture", "dflash_config without one")
        return derived(Method.DFLASH, "dflash_config without the fields of a sibling method")
    if named is None or named.value is None:
        read.complain(ProblemKind.ODD, "architectures", "an architecture that names the method", "none")
    elif told.value is not None and named.value is not told.value:
        read.complain(ProblemKind.CONFLICT, "architectures", f"an architecture of {told.value}", named.value)
    return told


def _by_fields(read: Reader) -> Sourced[Method] | None:
    projector = read.string("dflash_config/projector_type", "projector_type")
    known = {"dflash": Method.DFLASH, "domino": Method.DOMINO, "dspark": Method.DSPARK}
    if projector.value is not None and projector.value != "dflash":
        if projector.value in known:
            return Sourced(known[projector.value], projector.source)
        return unknown(f"projector_type {projector.value!r} names no drafter known here")
    if read.is_object("dspark_config") or _has(read, _DSPARK_KEYS):
        return derived(Method.DSPARK, "the file carries DSpark's own fields")
    if _has(read, _DOMINO_KEYS):
        return derived(Method.DOMINO, "the file carries Domino's own fields")
    if _has(read, _DFLASH2_KEYS):
        return derived(Method.DFLASH2, "the file carries DFlash 2's own fields")
    return None


def _has(read: Reader, keys: tuple[str, ...]) -> bool:
    return any(read.says(f"dflash_config/{key}", key) for key in keys)


def _speculators_method(read: Reader) -> Sourced[Method]:
    said = read.string("speculators_model_type", "speculators_config/algorithm")
    projector = read.string("projector_type")
    if projector.value == "domino":
        return Sourced(Method.DOMINO, projector.source)
    if said.value in _SPECULATORS_TYPES:
        return Sourced(_SPECULATORS_TYPES[said.value], said.source)
    if said.value is not None:
        return unknown(f"speculators_model_type {said.value!r} is not known here")
    named = _by_architecture(read)
    if named is not None:
        read.complain(ProblemKind.ODD, "", "speculators_model_type", "an architecture only")
        return named
    return unknown("no speculators_model_type, no algorithm and no architecture that names a method")
