"""Multi-token-prediction heads that a target carries: norms of one convention, quantised as announced.

Source: checkpoint.norms (means published with the reports it names); sgl-project/sglang#36158.
"""

from draftproof.checkpoint.expected.quantised import base_parameter
from draftproof.checkpoint.files.dtypes import FLOATS
from draftproof.checkpoint.ledger import Checkpoint
from draftproof.checkpoint.values.norms import judge_norms
from draftproof.config.json.value import JsonValue
from draftproof.config.raw import RawConfig
from draftproof.findings.catalogue import found
from draftproof.findings.evidence import Evidence, Lacking, Model, NotApplicable
from draftproof.findings.fields import says
from draftproof.findings.finding import NotLooked
from draftproof.findings.place import Place, at_pointer
from draftproof.findings.rule import Answers, Rule

__all__ = ["RULES"]

_EXCLUDED = (
    "ignore",
    "ignored_layers",
    "modules_to_not_convert",
    "exclude_modules",
    "exclude",
    "exclude_layers",
)
"""Where quantisers list what they leave plain: compressed-tensors, FP8, AWQ, ModelOpt, quark."""

_MATRIX = 2


def _targets(evidence: Evidence) -> list[Model]:
    models = [evidence.subject] + ([evidence.target_model] if evidence.target_model else [])
    targets = [model for model in models if model.target is not None]
    if not targets:
        raise NotApplicable
    return targets


def _ask_norms(evidence: Evidence) -> Answers:
    for model in _targets(evidence):
        if not isinstance(model.values, Checkpoint):
            raise Lacking(model.values.reason)
        defects, reasons = judge_norms(model.values, model.target.family if model.target else "")
        for defect in defects:
            yield found(
                defect.id,
                defect.subject,
                expected=defect.expected,
                found=defect.found,
                at=Place(defect.where),
            )
        for reason in reasons:
            yield NotLooked("norm convention", reason)


def _ask_quantised(evidence: Evidence) -> Answers:
    """A quantised target whose head is plain must say so in its exclude list."""
    for model in _targets(evidence):
        raw, weights = model.raw, model.weights
        has_head = model.target is not None and model.target.mtp is not None
        if not has_head or not isinstance(raw, RawConfig) or not says(raw, "/quantization_config"):
            continue
        if not isinstance(weights, Checkpoint):
            raise Lacking(weights.reason)
        plain = _plain_head(weights)
        listed = _excluded(raw.at("/quantization_config"))
        if plain and not any("mtp" in entry for entry in listed):
            yield found(
                "mtp-unquantised",
                "quantization_config",
                expected="mtp listed as excluded",
                found=f"{len(listed)} entries, none of mtp; {plain[0]} is {weights.tensors[plain[0]].dtype}",
                at=at_pointer(raw, "/quantization_config"),
                detail=f"{len(plain)} matrices of the head are plain",
            )


def _plain_head(weights: Checkpoint) -> list[str]:
    """The head's matrices, where all of them are plain floats and the trunk is quantised; else none."""
    head = [t for name, t in weights.tensors.items() if "mtp." in name and len(t.shape) == _MATRIX]
    trunk_is_quantised = any(
        base_parameter(name) is not None for name in weights.tensors if "mtp." not in name
    )
    is_plain = all(t.dtype in FLOATS and base_parameter(t.name) is None for t in head)
    return [t.name for t in head] if trunk_is_quantised and is_plain else []


def _excluded(value: JsonValue) -> list[str]:
    if not isinstance(value, dict):
        return []
    lists = [value[name] for name in _EXCLUDED if name in value]
    return [
        entry for entries in lists if isinstance(entries, list) for entry in entries if isinstance(entry, str)
    ]


RULES = (
    Rule("norm convention", (), _ask_norms),
    Rule("quantisation of the head", ("mtp-unquantised",), _ask_quantised),
)
