"""Weights: the tensors of a directory, the files they stand in, and the cache those files came through.

The defects are named below this floor (checkpoint); here they become findings, with what the config adds.
"""

from collections.abc import Iterable

from draftproof.checkpoint.catalogue import ARTEFACTS
from draftproof.checkpoint.files.shard import ArtefactDefect
from draftproof.checkpoint.hub.cache import read_hub
from draftproof.checkpoint.ledger import Checkpoint
from draftproof.checkpoint.values.pages import scan_pages
from draftproof.errors import CouldNotLook
from draftproof.findings.catalogue import found
from draftproof.findings.evidence import Evidence, Lacking, Model, NotApplicable
from draftproof.findings.fields import first_written, says, text_at
from draftproof.findings.finding import Finding, NotLooked, Severity
from draftproof.findings.place import Place, at_pointer, at_tensor
from draftproof.findings.rule import Answers, Rule

__all__ = ["RULES"]

_PLAIN_TYPES = ("llama", "qwen2", "qwen3", "qwen3_moe", "gpt_oss", "gemma3_text", "mistral")
"""``model_type`` of classes that AutoModelForCausalLM resolves without looking at ``architectures``."""

_DRAFTER_ONLY = ("fc.weight", "hidden_norm.weight", "model.fc.weight", "model.hidden_norm.weight")
_FLOATS = {"F16": "float16", "BF16": "bfloat16", "F32": "float32"}
_PUBLISHED = "content against the name it was published under"
_BIAS_FIELDS = ("/eagle_fc_bias", "/eagle_config/eagle_fc_bias", "/fc_bias", "/eagle_config/fc_bias")


def _told(defects: Iterable[ArtefactDefect]) -> list[Finding]:
    return [
        found(
            defect.id,
            defect.subject,
            expected=defect.expected,
            found=defect.found,
            at=Place(defect.where),
        )
        for defect in defects
    ]


def _sides(evidence: Evidence) -> list[Model]:
    return [evidence.subject] + ([evidence.target_model] if evidence.target_model else [])


def _require(evidence: Evidence) -> None:
    """Say why the subject has no weights to look at, where it has none."""
    if not isinstance(evidence.subject.weights, Checkpoint):
        raise Lacking(evidence.subject.weights.reason)


def _ask_files(evidence: Evidence) -> Answers:
    """Every defect of the shards and of the index, of the subject and of the target."""
    for model in _sides(evidence):
        if isinstance(model.weights, Checkpoint):
            yield from _told(model.weights.defects)
    _require(evidence)


def _ask_pages(evidence: Evidence) -> Answers:
    """Holes, zeros and infinities, by a sample of pages."""
    for model in _sides(evidence):
        if isinstance(model.values, Checkpoint):
            scan = scan_pages(model.values)
            yield from _told(scan.defects)
    evidence.values  # noqa: B018 - raises Lacking where the subject has none


def _ask_hub(evidence: Evidence) -> Answers:
    """What a hub cache, or a download's records, prove without a network."""
    for model in _sides(evidence):
        if model.directory is not None:
            try:
                report = read_hub(model.directory, with_weights=evidence.with_digests)
            except CouldNotLook as error:
                yield NotLooked(_PUBLISHED, f"{error.subject}: {error.found}", is_required=True)
                continue
            yield from _told(report.defects)
            for reason in report.not_proven:
                yield NotLooked(_PUBLISHED, reason)
    if evidence.subject.directory is None:
        evidence.values  # noqa: B018 - raises Lacking, with the reason


def _ask_ownership(evidence: Evidence) -> Answers:
    """A head or an embedding of its own: what an engine that shares unconditionally would overwrite."""
    drafter, weights = evidence.drafter, evidence.weights
    names = [
        n for n in weights.tensors if n.removeprefix("model.") in ("lm_head.weight", "embed_tokens.weight")
    ]
    if names and drafter.dialect != "target":
        first = weights.tensors[names[0]]
        yield found(
            "owns-head",
            ", ".join(names),
            expected="an engine that keeps them",
            found=[f"{name} {list(weights.tensors[name].shape)}" for name in names],
            at=at_tensor(weights.root / first.shard, first.name),
        )


def _ask_plain(evidence: Evidence) -> Answers:
    """A drafter that names an ordinary model's type, and no class of its own, loads as that model."""
    evidence.drafter  # noqa: B018 - raises NotApplicable where there is no drafter
    raw, weights = evidence.raw, evidence.weights
    kind = text_at(raw, "/model_type")
    own = [name for name in _DRAFTER_ONLY if name in weights.tensors]
    has_embedding = any(name.endswith("embed_tokens.weight") for name in weights.tensors)
    if kind in _PLAIN_TYPES and own and not has_embedding and not says(raw, "/auto_map/AutoModelForCausalLM"):
        yield found(
            "loads-as-plain-model",
            "model_type",
            expected="the drafter's own class",
            found=kind,
            at=at_pointer(raw, "/model_type"),
            detail=f"{', '.join(own)} would be dropped, embed_tokens and lm_head invented",
        )


def _ask_bias(evidence: Evidence) -> Answers:
    raw, weights = evidence.raw, evidence.weights
    if evidence.drafter.dialect == "target":
        raise NotApplicable
    name = next((n for n in weights.tensors if n.removeprefix("model.") == "fc.bias"), None)
    if name is not None and not any(says(raw, pointer) for pointer in _BIAS_FIELDS):
        yield found(
            "fc-bias-unannounced",
            name,
            expected=f"one of {', '.join(_BIAS_FIELDS)}",
            found=first_written(raw, _BIAS_FIELDS) or "no such field",
            at=at_tensor(weights.root / weights.tensors[name].shard, name),
        )


def _ask_dtype(evidence: Evidence) -> Answers:
    """Matrices of one float type, and a config that names another: cast at load, after what was lost."""
    raw, weights = evidence.raw, evidence.weights
    if evidence.drafter.dialect == "target":
        raise NotApplicable
    pointer = first_written(raw, ("/dtype", "/torch_dtype", "/transformer_layer_config/dtype"))
    said = text_at(raw, pointer) if pointer is not None else None
    stored = {t.dtype for t in weights.tensors.values() if len(t.shape) > 1}
    # Several float types, or packed ones, belong to quantised weights and are judged there.
    floats = {_FLOATS[dtype] for dtype in stored if dtype in _FLOATS}
    name = said.removeprefix("torch.") if said is not None else None
    if pointer is None or len(stored) != 1 or not floats or name not in _FLOATS.values() or name in floats:
        return
    (held,) = floats
    yield found(
        "dtype-differs",
        pointer.rpartition("/")[2],
        expected=held,
        found=name,
        at=at_pointer(raw, pointer),
        detail=f"every matrix is stored as {held}",
        severity=Severity.WARNING if held == "float16" else None,
    )


RULES = (
    Rule("float type of the weights", ("dtype-differs",), _ask_dtype),
    Rule("weight files", tuple(ARTEFACTS), _ask_files),
    Rule("pages of the weights", tuple(ARTEFACTS), _ask_pages),
    Rule(_PUBLISHED, tuple(ARTEFACTS), _ask_hub),
    Rule("head and embedding of its own", ("owns-head",), _ask_ownership),
    Rule("a class that keeps every tensor", ("loads-as-plain-model",), _ask_plain),
    Rule("bias of fc", ("fc-bias-unannounced",), _ask_bias),
)
