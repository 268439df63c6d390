"""Taps: the hidden states a drafter reads must exist, in order, and be named one way.

Source: z-lab dflash 0.1.0 (ids name layers whose output is read); vLLM 0.33 and SGLang 0.5.23 capture in
layer order; vLLM interfaces.EagleModelMixin drops repeats.
"""

from collections.abc import Sequence
from itertools import pairwise

from draftproof.config.dialects.taps import spread_layer_ids
from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.raw import JsonValue, RawConfig
from draftproof.config.source import Sourced, Written
from draftproof.findings.catalogue import found
from draftproof.findings.engines import LAST_TAP_LIMITS, LITERAL_TAPS, Verdict
from draftproof.findings.evidence import Evidence, NotApplicable
from draftproof.findings.fields import first_written, says, value_at
from draftproof.findings.finding import Finding, Severity
from draftproof.findings.place import Place, at_pointer, at_source
from draftproof.findings.rule import Answers, Rule
from draftproof.names import Layer

__all__ = ["RULES"]

_FEWEST, _DEEPEST = 3, 4096
_TAPPED = frozenset({Method.DFLASH, Method.DFLASH2, Method.DSPARK, Method.DOMINO})


def _written(drafter: DrafterConfig) -> Sourced[tuple[int | None, ...]] | None:
    """The taps in the numbering of the file that wrote them; None where no file did."""
    for taps in (drafter.taps.layer_ids, drafter.taps.hidden_indexes):
        if isinstance(taps.source, Written) and taps.value is not None:
            return Sourced(tuple(taps.value), taps.source)
    return None


def _ask_order(evidence: Evidence) -> Answers:
    raw, drafter = evidence.raw, evidence.drafter
    taps = _written(drafter)
    if taps is None or taps.value is None:
        return
    said = [-1 if tap is None else tap for tap in taps.value]
    if any(b <= a for a, b in pairwise(said)):
        repeats = len(set(said)) < len(said)
        yield found(
            "taps-not-increasing",
            _key(taps),
            expected=sorted(set(said)),
            found=said,
            at=at_source(raw, taps, ""),
            detail="a layer is named twice" if repeats else "",
        )


def _ask_range(evidence: Evidence) -> Answers:
    raw, drafter = evidence.raw, evidence.drafter
    taps, indexes = _written(drafter), drafter.taps.hidden_indexes.value
    if taps is None or indexes is None:
        return
    place = at_source(raw, taps, "")
    # An auxiliary id of 0 is the embedding; a native id names a layer's output, so its index begins at 1.
    low = [index for index in indexes if index < (0 if _is_aux(taps) else 1)]
    depth = _depth(evidence, drafter)
    if depth is None:
        if low:
            yield _outside(taps, low, place, "0 or more")
        return
    outside = low + [index for index in indexes if index > depth]
    if outside:
        yield _outside(taps, outside, place, _range(taps, depth), _depth_source(evidence, drafter))
    if depth in indexes:
        yield _last(evidence, taps, depth, place)


def _outside(
    taps: Sourced[tuple[int | None, ...]], outside: Sequence[int], place: Place, wanted: str, detail: str = ""
) -> Finding:
    shift = 0 if _is_aux(taps) else 1
    return found(
        "taps-out-of-range",
        _key(taps),
        expected=wanted,
        found=[index - shift for index in outside],
        at=place,
        detail=detail,
    )


def _range(taps: Sourced[tuple[int | None, ...]], depth: int) -> str:
    if _is_aux(taps):
        return f"0 to {depth} (hidden states of a target of {depth} layers)"
    return f"0 to {depth - 1} (layers of a target of {depth})"


def _last(evidence: Evidence, taps: Sourced[tuple[int | None, ...]], depth: int, place: Place) -> Finding:
    broken = ""
    for versions, reason in LAST_TAP_LIMITS:
        if evidence.engine and versions.verdict(evidence.engine) is Verdict.HOLDS:
            broken = f"{evidence.engine}: {reason}"
    return found(
        "taps-last-layer",
        _key(taps),
        expected=f"taps below the last layer, as the published rule gives (at most layer {depth - 3})",
        found=depth if _is_aux(taps) else depth - 1,
        at=place,
        detail=broken,
        severity=Severity.ERROR if broken else Severity.NOTE,
        layer=Layer.EFFECTIVE if broken else Layer.BYTES,
    )


def _ask_absent(evidence: Evidence) -> Answers:
    raw, drafter = evidence.raw, evidence.drafter
    taps = _written(drafter)
    if drafter.method.value in _TAPPED and (taps is None or not taps.value):
        home = _home(raw, drafter)
        yield found(
            "taps-absent",
            home.rpartition("/")[2],
            expected="a list of layers",
            found=_said(raw, home) if taps is None else [],
            at=at_pointer(raw, home) if taps is None else at_source(raw, taps, home),
        )


def _ask_reading(evidence: Evidence) -> Answers:
    """A named engine that reads native taps literally captures the layer before each."""
    drafter, raw, engine = evidence.drafter, evidence.raw, evidence.engine
    ids = drafter.taps.layer_ids
    is_native = drafter.method.value is Method.DFLASH and drafter.dialect != "speculators"
    if engine is None or not is_native or not ids.is_written or ids.value is None:
        raise NotApplicable
    if says(raw, "/eagle_aux_hidden_state_layer_ids"):
        raise NotApplicable  # read first, as it stands; that the two agree is a question of its own
    for versions, reason in LITERAL_TAPS:
        if versions.verdict(engine) is Verdict.HOLDS:
            yield found(
                "taps-read-literally",
                "target_layer_ids",
                expected=[tap + 1 for tap in ids.value if tap is not None],
                found=[tap for tap in ids.value if tap is not None],
                at=at_source(raw, ids, ""),
                detail=f"{engine}: {reason}",
            )


def _home(raw: RawConfig, drafter: DrafterConfig) -> str:
    """Where the list would stand, or where something else stands in its place."""
    if drafter.dialect == "speculators":
        return "/aux_hidden_state_layer_ids"
    written = first_written(raw, ("/dflash_config/target_layer_ids", "/target_layer_ids"))
    return written or "/dflash_config/target_layer_ids"


def _said(raw: RawConfig, pointer: str) -> JsonValue:
    return value_at(raw, pointer) if says(raw, pointer) else "absent"


def _is_aux(taps: Sourced[tuple[int | None, ...]]) -> bool:
    """Whether the list names hidden states: inside eagle_config the same key names layers (SGLang)."""
    if not isinstance(taps.source, Written) or "aux_hidden_state" not in taps.source.pointer:
        return False
    return not taps.source.pointer.startswith("/eagle_config/eagle_aux")


def _key(taps: Sourced[tuple[int | None, ...]]) -> str:
    """The list's own key."""
    return taps.source.pointer.rpartition("/")[2] if isinstance(taps.source, Written) else "target_layer_ids"


def _depth(evidence: Evidence, drafter: DrafterConfig) -> int | None:
    model = evidence.target_model.target if evidence.target_model else None
    if model is not None and model.geometry.num_hidden_layers.value is not None:
        return model.geometry.num_hidden_layers.value
    return drafter.num_target_layers.value


def _depth_source(evidence: Evidence, drafter: DrafterConfig) -> str:
    """Which field gave the depth: it, too, may be the one that is wrong."""
    source = drafter.num_target_layers.source
    if evidence.target_model is None and isinstance(source, Written):
        return f"the depth is that of {source.pointer} line {source.line}"
    return ""


def _ask_shift(evidence: Evidence) -> Answers:
    """Every id one away from the published default rule: hidden indexes written as layer ids, or back."""
    raw, drafter = evidence.raw, evidence.drafter
    ids, depth = drafter.taps.layer_ids, _depth(evidence, drafter)
    is_native = drafter.method.value is Method.DFLASH and drafter.dialect in ("native", "modelopt")
    if not is_native or not isinstance(ids.source, Written) or "aux_hidden" in ids.source.pointer:
        raise NotApplicable
    said = [tap for tap in ids.value or () if tap is not None]
    if depth is None or not _FEWEST <= len(said) <= depth <= _DEEPEST:
        raise NotApplicable  # one or two ids lie beside the rule's by chance
    rule = [*spread_layer_ids(depth, len(said))]
    for shift, looks in ((1, "hidden-state indexes, which count from 1"), (-1, "ids with one taken off")):
        if said == [tap + shift for tap in rule]:
            yield found(
                "taps-shifted",
                "target_layer_ids",
                expected=rule,
                found=said,
                at=at_source(raw, ids, ""),
                detail=f"they look like {looks}; the rule is dflash 0.1.0's for a target of {depth} layers",
            )


RULES = (
    Rule("taps beside the published rule", ("taps-shifted",), _ask_shift),
    Rule("order of the tapped layers", ("taps-not-increasing",), _ask_order),
    Rule("tapped layers inside the target", ("taps-out-of-range", "taps-last-layer"), _ask_range),
    Rule("tapped layers written", ("taps-absent",), _ask_absent),
    Rule("taps as the engine reads them", ("taps-read-literally",), _ask_reading),
)
