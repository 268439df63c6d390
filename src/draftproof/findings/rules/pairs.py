"""Pairs: a drafter beside its target. What must agree, what may differ and is said to.

Source: dflash 0.1.0 (shared embedding and head), SGLang 0.5.23 dflash_utils (depth), the reports named in the
kinds' texts.
"""

from draftproof.config.defaults import layer_class
from draftproof.config.drafter import DrafterConfig, Method
from draftproof.config.source import ClassDefault, Sourced
from draftproof.findings.catalogue import found
from draftproof.findings.evidence import Evidence, NotApplicable
from draftproof.findings.families import family_of
from draftproof.findings.fields import integer_at, layer_base, says, texts_at
from draftproof.findings.finding import Finding, Severity
from draftproof.findings.place import Place, at_pointer, at_source
from draftproof.findings.rule import Answers, Rule

__all__ = ["RULES"]

_PADDING = 1024
"""Embeddings are padded to multiples of 64 to 512: tables further apart belong to other tokenizers."""

_ALIGNED = 64

_BLOCK = frozenset({Method.DFLASH, Method.DFLASH2, Method.DSPARK, Method.DOMINO})
"""Methods whose published drafters rotate as their targets do; Llama-style heads are trained with 10000."""


def _ask_width(evidence: Evidence) -> Answers:
    raw, drafter, target = evidence.raw, evidence.drafter, evidence.target
    said, wanted = drafter.target_hidden_size, target.geometry.hidden_size.value
    if said.value is None:
        said = drafter.geometry.hidden_size
    if said.value is not None and wanted is not None and said.value != wanted:
        place = (
            at_source(raw, said, "/hidden_size")
            if said.is_written
            else at_source(raw, drafter.geometry.hidden_size, "/hidden_size")
        )
        yield found(
            "hidden-size-mismatch",
            "target_hidden_size" if drafter.target_hidden_size.is_written else "hidden_size",
            expected=wanted,
            found=said.value,
            at=place,
            detail=f"the target {evidence.target_raw.origin} has {wanted}",
        )


def _ask_depth(evidence: Evidence) -> Answers:
    raw, drafter, target = evidence.raw, evidence.drafter, evidence.target
    said, wanted = drafter.num_target_layers, target.geometry.num_hidden_layers.value
    if said.value is not None and wanted is not None and said.value != wanted:
        yield found(
            "target-depth-mismatch",
            "num_target_layers",
            expected=wanted,
            found=said.value,
            at=at_source(raw, said, "/num_target_layers"),
        )


def _ask_vocabulary(evidence: Evidence) -> Answers:
    drafter, target = _vocabulary_of(evidence), evidence.target
    wanted = target.vocab_size.value
    if drafter.value is None or wanted is None or drafter.value == wanted:
        if drafter.value is None and not drafter.is_written and wanted is not None:
            yield _hole(evidence, wanted, _filled(evidence.drafter.model_type.value))
        return
    place = at_source(evidence.raw, drafter, "/vocab_size")
    if isinstance(drafter.source, ClassDefault):
        yield _hole(evidence, wanted, f"{drafter.value} by {drafter.source.library}")
        return
    is_padding = (
        abs(drafter.value - wanted) < _PADDING and drafter.value % _ALIGNED == 0 and wanted % _ALIGNED == 0
    )
    yield found(
        "vocabulary-padding" if is_padding else "vocabulary-mismatch",
        "vocab_size",
        expected=wanted,
        found=drafter.value,
        at=place,
    )


def _vocabulary_of(evidence: Evidence) -> Sourced[int]:
    """The subject's vocabulary: an ordinary causal model can be a draft model too."""
    target = evidence.subject.target
    if target is not None:
        return target.vocab_size
    return evidence.drafter.vocab_size


def _filled(model_type: str | None) -> str:
    """What a reader puts in the place of an absent vocabulary size, in words."""
    known = layer_class(model_type)
    if known is None or "vocab_size" not in known.values:
        return "readers fill in their class default"
    return f"{known.values['vocab_size']} by {known.library}"


def _home(evidence: Evidence) -> str:
    drafter = evidence.subject.drafter
    return f"{layer_base(drafter)}/vocab_size" if drafter else "/vocab_size"


def _hole(evidence: Evidence, wanted: int, filled: str) -> Finding:
    return found(
        "vocabulary-default",
        "vocab_size",
        expected=wanted,
        found=f"absent: {filled}",
        at=at_pointer(evidence.raw, _home(evidence)),
    )


def _ask_positions(evidence: Evidence) -> Answers:
    raw, drafter, target = evidence.raw, evidence.drafter, evidence.target
    said, wanted = drafter.geometry.max_position_embeddings, target.geometry.max_position_embeddings.value
    if said.value is not None and wanted is not None and said.value < wanted:
        filled = f"by {said.source.library}" if isinstance(said.source, ClassDefault) else ""
        yield found(
            "positions-short",
            "max_position_embeddings",
            expected=wanted,
            found=said.value,
            at=at_source(raw, said, "/max_position_embeddings"),
            detail=f"{filled}; the target reaches {wanted}".strip("; "),
        )


def _ask_rope(evidence: Evidence) -> Answers:
    raw, mine, theirs = evidence.raw, evidence.drafter.rope, evidence.target.rope
    if mine.theta.is_written and theirs.theta.is_written and mine.theta.value != theirs.theta.value:
        filled = _class_default(evidence.drafter)
        is_filled = filled is not None and mine.theta.value == filled[0]
        yield found(
            "rope-theta-differs",
            "rope_theta",
            expected=theirs.theta.value,
            found=mine.theta.value,
            at=at_source(raw, mine.theta, "/rope_theta"),
            detail=f"it is what {filled[1]} fills in where nothing is said" if filled and is_filled else "",
            severity=Severity.WARNING if is_filled else None,
        )
    if theirs.type.value not in (None, "default") and mine.type.value in (None, "default"):
        yield found(
            "rope-scaling-lost",
            "rope_scaling",
            expected=theirs.type.value,
            found=mine.type.value or "absent",
            at=at_source(raw, mine.type, "/rope_scaling"),
        )


def _class_default(drafter: DrafterConfig) -> tuple[float, str] | None:
    """The rope base that the config class fills in, and that class; None for heads trained with it."""
    known = layer_class(drafter.model_type.value)
    if drafter.method.value not in _BLOCK or known is None:
        return None
    base = known.values["rope_theta"]
    return float(base), known.library


def _ask_dtype(evidence: Evidence) -> Answers:
    """Qwen hidden states exceed float16: a float16 drafter, or a float16 target, overflows when fused."""
    raw, drafter = evidence.raw, evidence.drafter
    rows = drafter.vocab_size.value
    family = family_of(rows) if rows is not None else None
    target = evidence.target_model.target if evidence.target_model else None
    is_qwen = bool(family and family.name.startswith("Qwen")) or bool(
        target and target.family.startswith("qwen")
    )
    if not is_qwen:
        raise NotApplicable
    pointers = ("/torch_dtype", "/dtype", "/text_config/torch_dtype", "/text_config/dtype")
    sides = [("drafter", raw)]
    if target is not None:
        sides.append(("target", evidence.target_raw))
    for role, file in sides:
        for pointer in pointers:
            if says(file, pointer) and file.at(pointer) == "float16":
                yield found(
                    "dtype-overflow",
                    f"dtype of the {role}",
                    expected="bfloat16",
                    found="float16",
                    at=at_pointer(file, pointer),
                )


def _ask_origin(evidence: Evidence) -> Answers:
    """A bos token that the target's text_config carries and published drafters leave null: a copied file."""
    raw, drafter, target = evidence.raw, evidence.drafter, evidence.target
    said = integer_at(raw, "/bos_token_id")
    theirs = integer_at(evidence.target_raw, f"{target.text_pointer}/bos_token_id")
    if said is not None and said == theirs and drafter.method.value in (Method.DFLASH, Method.DFLASH2):
        yield found(
            "bos-from-target",
            "bos_token_id",
            expected="whatever the trained drafter's file says",
            found=said,
            at=at_pointer(raw, "/bos_token_id"),
            detail=f"{evidence.target_raw.origin}#{target.text_pointer}/bos_token_id says {theirs} too",
        )


def _ask_verifier(evidence: Evidence) -> Answers:
    raw, drafter, target = evidence.raw, evidence.drafter, evidence.target
    pointer = "/speculators_config/verifier/architectures"
    named, real = texts_at(raw, pointer), target.architecture.value
    if drafter.dialect == "speculators" and named and real and real not in named:
        yield found(
            "verifier-mismatch", "verifier", expected=real, found=[*named], at=at_pointer(raw, pointer)
        )


def _ask_quantisation(evidence: Evidence) -> Answers:
    raw = evidence.raw
    if evidence.subject.drafter is None:
        raise NotApplicable
    theirs = evidence.target_raw
    if says(theirs, "/quantization_config"):
        copied = says(raw, "/quantization_config") and raw.at("/quantization_config") == theirs.at(
            "/quantization_config"
        )
        place: Place = (
            at_pointer(raw, "/quantization_config") if copied else at_pointer(theirs, "/quantization_config")
        )
        yield found(
            "target-quantised",
            "quantization_config",
            expected="a drafter loaded with its own settings",
            found="the drafter carries the target's" if copied else "the target is quantised",
            at=place,
            severity=Severity.WARNING if copied else Severity.NOTE,
        )


RULES = (
    Rule("width of the target's hidden states", ("hidden-size-mismatch",), _ask_width),
    Rule("depth of the target", ("target-depth-mismatch",), _ask_depth),
    Rule(
        "one vocabulary",
        ("vocabulary-mismatch", "vocabulary-padding", "vocabulary-default"),
        _ask_vocabulary,
    ),
    Rule("position table beside the target's", ("positions-short",), _ask_positions),
    Rule("rope beside the target's", ("rope-theta-differs", "rope-scaling-lost"), _ask_rope),
    Rule("float16 hidden states", ("dtype-overflow",), _ask_dtype),
    Rule("where the file came from", ("bos-from-target",), _ask_origin),
    Rule("the verifier named", ("verifier-mismatch",), _ask_verifier),
    Rule("quantisation of the target", ("target-quantised",), _ask_quantisation),
)
