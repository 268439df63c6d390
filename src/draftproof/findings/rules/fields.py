"""Fields: what the parser stumbled over, keys without a reader, files that claim to be something else."""

import difflib
import re
from collections.abc import Iterator, Sequence

from draftproof.config.drafter import Method
from draftproof.config.json.pointer import pointer_of, split_pointer
from draftproof.config.json.shown import mask_secrets
from draftproof.config.json.value import one_line
from draftproof.config.parse import UnrecognisedConfig
from draftproof.config.problem import Problem, ProblemKind
from draftproof.config.raw import JsonValue, RawConfig
from draftproof.findings.catalogue import found
from draftproof.findings.evidence import Evidence
from draftproof.findings.fields import layer_base, says
from draftproof.findings.finding import Finding, Severity
from draftproof.findings.known_keys import KNOWN_KEYS
from draftproof.findings.place import at_pointer, at_source
from draftproof.findings.rule import Answers, Rule

__all__ = ["RULES"]

_CONFLICTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("look-alike", ("architectures",)),
    ("taps-conflict", ("layer_ids",)),
    ("mask-conflict", ("mask_token_id", "noise_token_id", "pard_token", "ptd_token_id")),
    ("block-size-conflict", ("block_size", "speculative_tokens")),
    ("window-conflict", ("sliding_window", "swa_window_size")),
    ("causality-conflict", ("causal",)),
    ("rope-styles-conflict", ("rope_theta", "rope_type", "partial_rotary_factor", "factor")),
)
"""Which kind a disagreement of two fields is, by the end of the key."""

_SIMILAR = (
    0.84  # of difflib: sliding_windows, mask_token_ids and layer_type pass, num_experts for num_heads not
)
_SHORTEST = 6  # shorter keys are similar to each other by chance

_MOST_KEYS = 64
_WIDEST = 200
"""Of a key that is told: files of a million keys, or keys of megabytes, are told by their beginning."""

_MOST_LAYERS = 4096
"""No model is deeper: a larger number is a fault of the file."""

_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$\([a-z]")

_DFLASH2_KEYS = ("selector_rank", "selector_top_k", "conv_kernel_size", "conv_group_size")


def _ask_problems(evidence: Evidence) -> Answers:
    raw = evidence.raw
    for problem in evidence.parsed.problems:
        if not _is_rope_twin(evidence, problem):
            yield _stumbled(raw, problem)
    if (
        evidence.target_model
        and evidence.target_model.parsed
        and isinstance(evidence.target_model.raw, RawConfig)
    ):
        for problem in evidence.target_model.parsed.problems:
            yield _stumbled(evidence.target_model.raw, problem)


def _is_rope_twin(evidence: Evidence, problem: Problem) -> bool:
    """Two rope styles in conflict: the rule on them tells it, at the nested field."""
    parts = split_pointer(problem.pointer)
    is_rope = bool(parts) and parts[-1] in ("rope_theta", "rope_type", "partial_rotary_factor", "factor")
    return problem.kind is ProblemKind.CONFLICT and is_rope and evidence.subject.drafter is not None


def _stumbled(raw: RawConfig, problem: Problem) -> Finding:
    pointer = problem.pointer or (f"/{_names(problem)}" if problem.kind is ProblemKind.ODD else "")
    parts = split_pointer(pointer)
    name = parts[-1] if parts else "the file"
    if problem.kind is ProblemKind.MISTYPED:
        kind = "field-mistyped"
    elif problem.kind is ProblemKind.CONFLICT:
        kind = next((k for k, ends in _CONFLICTS if name.endswith(ends)), "field-conflict")
    else:
        kind = "field-odd"
    # A file known by other fields: what stands in the place of the name is what there is to see.
    is_named = kind == "field-odd" and pointer in raw.positions
    # A file that names no class, or another model's, is loaded as something else or not at all.
    misnamed = kind == "field-odd" and name == "architectures"
    return found(
        kind,
        name,
        expected=problem.expected,
        found=mask_secrets(raw.at(pointer), pointer) if is_named else problem.found,
        at=at_pointer(raw, pointer),
        detail="the file is read as what its other fields say it is" if is_named else "",
        severity=Severity.WARNING if misnamed else None,
    )


def _names(problem: Problem) -> str:
    """The field that should have named what the file is."""
    return problem.expected if problem.expected == "speculators_model_type" else "architectures"


def _ask_unread(evidence: Evidence) -> Answers:
    """Keys that no parser took: unknown, a slip of a known one, or a known one in the wrong place."""
    raw, parsed = evidence.raw, evidence.parsed
    is_drafter = evidence.subject.drafter is not None
    unknown: list[str] = []
    for pointer in parsed.unparsed:
        name = split_pointer(pointer)[-1]
        close = (
            difflib.get_close_matches(name, KNOWN_KEYS, n=1, cutoff=_SIMILAR)
            if len(name) >= _SHORTEST
            else []
        )
        if not name:
            yield found("key-empty", '""', expected="a name", found=pointer, at=at_pointer(raw, pointer))
        elif is_drafter and name in KNOWN_KEYS:
            yield found(
                "field-misplaced",
                name,
                expected="where its reader looks",
                found=pointer,
                at=at_pointer(raw, pointer),
            )
        elif is_drafter and close:
            yield found("field-misspelt", name, expected=close[0], found=name, at=at_pointer(raw, pointer))
        else:
            unknown.append(pointer)
    if unknown and is_drafter:
        yield found(
            "field-unknown",
            _some([split_pointer(pointer)[-1] for pointer in unknown], ", "),
            expected="keys that a known reader takes",
            found=[one_line(pointer, _WIDEST) for pointer in unknown[:_MOST_KEYS]] + _rest(unknown),
            at=at_pointer(raw, unknown[0]),
        )


def _some(names: Sequence[str], between: str) -> str:
    """The first names, each cut to one line, and how many more there are."""
    return between.join([*(one_line(name, _WIDEST) for name in names[:_MOST_KEYS]), *_rest(names)])


def _rest(names: Sequence[str]) -> list[str]:
    return [f"and {len(names) - _MOST_KEYS} more"] if len(names) > _MOST_KEYS else []


def _ask_unexpanded(evidence: Evidence) -> Answers:
    """Strings that still hold a shell's ``${NAME}``."""
    raw = evidence.raw
    for keys, value in _texts(raw.value, ()):
        if _VARIABLE.search(value):
            yield found(
                "value-unexpanded",
                keys[-1],
                expected="the value itself",
                found=mask_secrets(value, pointer_of(keys)),
                at=at_pointer(raw, pointer_of(keys)),
            )


def _texts(value: JsonValue, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every string of the file, with the keys that lead to it."""
    if isinstance(value, str):
        yield keys, value
    elif isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            if isinstance(inner, str | dict | list):
                yield from _texts(inner, (*keys, str(key)))


def _ask_identity(evidence: Evidence) -> Answers:
    """A file that claims DFlash 2 must carry its own fields; other siblings are the parser's conflicts."""
    raw, drafter = evidence.raw, evidence.drafter
    is_native = drafter.dialect != "speculators" and says(raw, "/dflash_config")
    if drafter.method.value is Method.DFLASH2 and is_native:
        missing = [
            k for k in _DFLASH2_KEYS if not says(raw, f"/dflash_config/{k}") and not says(raw, f"/{k}")
        ]
        if len(missing) == len(_DFLASH2_KEYS):
            yield found(
                "look-alike",
                "architectures",
                expected="DFlashDraftModel: there is no selector and no convolution",
                found=drafter.architecture.value,
                at=at_pointer(raw, "/architectures"),
            )


def _ask_geometry(evidence: Evidence) -> Answers:
    raw, drafter = evidence.raw, evidence.drafter
    shape = drafter.geometry
    numbers = {
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.intermediate_size,
        "num_hidden_layers": shape.num_hidden_layers,
        "num_attention_heads": shape.num_attention_heads,
        "num_key_value_heads": shape.num_key_value_heads,
        "head_dim": shape.head_dim,
        "vocab_size": drafter.vocab_size,
        "draft_vocab_size": drafter.draft_vocab_size,
    }
    for name, number in numbers.items():
        if number.is_written and number.value is not None and number.value < 1:
            yield found(
                "field-invalid", name, expected="1 or more", found=number.value, at=at_source(raw, number, "")
            )
    depth = shape.num_hidden_layers
    if depth.value is not None and depth.value > _MOST_LAYERS:
        yield found(
            "field-invalid",
            "num_hidden_layers",
            expected=f"{_MOST_LAYERS} at most",
            found=depth.value,
            at=at_source(raw, depth, "/num_hidden_layers"),
        )
    draft, rows = drafter.draft_vocab_size, drafter.vocab_size.value
    if draft.is_written and draft.value is not None and rows is not None and draft.value > rows > 0:
        yield found(
            "field-conflict",
            "draft_vocab_size",
            expected=f"{rows} at most, the vocabulary",
            found=draft.value,
            at=at_source(raw, draft, ""),
        )
    heads, kv_heads = shape.num_attention_heads.value, shape.num_key_value_heads.value
    if heads and kv_heads and heads > 0 and kv_heads > 0 and heads % kv_heads:
        yield found(
            "heads-indivisible",
            "num_key_value_heads",
            expected=f"a divisor of num_attention_heads {heads}",
            found=kv_heads,
            at=at_source(raw, shape.num_key_value_heads, ""),
        )


def _ask_vocabulary(evidence: Evidence) -> Answers:
    """Beside a target the rule on one vocabulary says more."""
    raw, drafter = evidence.raw, evidence.drafter
    size = drafter.vocab_size
    if evidence.target_model is None and (not size.is_written or size.value is None):
        filled = size.value
        yield found(
            "vocabulary-absent",
            "vocab_size",
            expected="the target's vocabulary size",
            found=(None if size.is_written else "absent")
            if filled is None
            else f"absent: {filled} by the class default",
            at=at_pointer(raw, f"{layer_base(drafter)}/vocab_size"),
        )


def _ask_recognised(evidence: Evidence) -> Answers:
    config = evidence.parsed.config
    if isinstance(config, UnrecognisedConfig):
        yield found(
            "drafter-unrecognised",
            "the whole file",
            expected=config.looked_for,
            found=_some(config.keys, ", ") or "an empty object",
            at=at_pointer(evidence.raw, ""),
        )


def _ask_depth(evidence: Evidence) -> Answers:
    raw, drafter = evidence.raw, evidence.drafter
    is_dflash = drafter.dialect == "native" and drafter.method.value is Method.DFLASH
    depth = drafter.num_target_layers
    if is_dflash and depth.value is None:
        yield found(
            "target-depth-absent",
            "num_target_layers",
            expected="the target's number of layers",
            found=None if depth.is_written else "absent",
            at=at_source(raw, depth, "/num_target_layers"),
        )


RULES = (
    Rule(
        "fields as their readers expect them",
        ("field-mistyped", "field-odd", "field-conflict", *(kind for kind, _ in _CONFLICTS)),
        _ask_problems,
    ),
    Rule(
        "keys without a reader",
        ("field-unknown", "field-misspelt", "field-misplaced", "key-empty"),
        _ask_unread,
    ),
    Rule("values without placeholders", ("value-unexpanded",), _ask_unexpanded),
    Rule("a config that is known", ("drafter-unrecognised",), _ask_recognised),
    Rule("the method claimed", ("look-alike",), _ask_identity),
    Rule("shapes that are possible", ("field-invalid", "heads-indivisible", "field-conflict"), _ask_geometry),
    Rule("vocabulary written", ("vocabulary-absent",), _ask_vocabulary),
    Rule("depth of the target written", ("target-depth-absent",), _ask_depth),
)
