"""The canonical description as plain JSON: every field with where it comes from, every null with its reason.

Schema ``draftproof.facts/1``.
"""

from collections.abc import Iterable, Iterator

from draftproof.config.drafter import DrafterConfig, Geometry, Rope, Taps
from draftproof.config.fact import Fact, Shape, assemble, fact, group, source_json
from draftproof.config.parse import Parsed, UnrecognisedConfig
from draftproof.config.raw import JsonValue
from draftproof.config.reader import derived, unknown
from draftproof.config.source import Source, Sourced, Unknown
from draftproof.config.target import MtpHead, TargetConfig

__all__ = ["SCHEMA", "as_facts", "facts"]

SCHEMA = "draftproof.facts/1"
_IS_TARGET = "does not apply: the file describes a target"
_IS_DRAFTER = "does not apply: the file describes a drafter"
_FIELDS = (
    "role",
    "method",
    "format",
    "taps",
    "block_size",
    "num_draft_tokens",
    "mask_token_id",
    "layers",
    "rope",
    "vocab_size",
    "draft_vocab_size",
    "hidden_size",
    "target_hidden_size",
    "norms",
    "mtp",
)


def facts(parsed: Parsed) -> dict[str, JsonValue]:
    """The JSON of ``draftproof facts --json``."""
    known = as_facts(parsed)
    document: dict[str, JsonValue] = {"schema": SCHEMA}
    document |= assemble(known)
    document["sources"] = {each.name: source_json(each.source) for each in known}
    document["unparsed"] = list(parsed.unparsed)
    document["superseded"] = list(parsed.superseded)
    document["problems"] = [
        {
            "kind": problem.kind.value,
            "pointer": problem.pointer,
            "line": problem.line,
            "expected": problem.expected,
            "found": problem.found,
        }
        for problem in parsed.problems
    ]
    return document


def as_facts(parsed: Parsed) -> tuple[Fact, ...]:
    """Every field of the canonical description, in the order they are shown; groups before their parts."""
    match parsed.config:
        case DrafterConfig():
            return tuple(_drafter(parsed.config))
        case TargetConfig():
            return tuple(_target(parsed.config))
        case UnrecognisedConfig():
            reason = f"neither a drafter nor a target; looked for {parsed.config.looked_for}"
            return tuple(Fact((name,), None, Unknown(reason)) for name in _FIELDS)


def _drafter(config: DrafterConfig) -> Iterator[Fact]:
    yield fact("role", derived("drafter", "the fields of a drafter stand in the file"))
    yield fact("method", config.method)
    yield fact("format", derived(config.dialect, "the dialect that these fields are written in"))
    yield fact("generation", config.generation)
    yield fact("architecture", config.architecture)
    yield fact("model_type", config.model_type)
    yield from _taps(config.taps)
    yield fact("block_size", config.block_size)
    yield fact("num_draft_tokens", config.num_draft_tokens)
    yield fact("sample_from_anchor", config.sample_from_anchor)
    yield fact("mask_token_id", config.mask_token_id)
    rows = [(layer.kind, layer.window, layer.causal) for layer in config.layers]
    yield from _layers(rows, config.layers_source)
    yield from _rope(config.rope)
    yield fact("vocab_size", config.vocab_size)
    yield fact("draft_vocab_size", config.draft_vocab_size)
    yield fact("hidden_size", config.geometry.hidden_size)
    yield fact("target_hidden_size", config.target_hidden_size)
    yield fact("num_target_layers", config.num_target_layers)
    norms, sharing = config.norms, config.sharing
    yield from group(
        "norms",
        (
            fact("norm_before_residual", norms.before_residual),
            fact("norm_before_fc", norms.before_fc),
            fact("norm_output", norms.output),
            fact("fc_norm", norms.fc_norm),
        ),
    )
    yield from group("sharing", (fact("embeddings", sharing.embeddings), fact("lm_head", sharing.lm_head)))
    yield fact("mtp", unknown(_IS_DRAFTER))
    yield from _geometry(config.geometry)
    yield fact("verifier", config.verifier)
    yield from group("extras", (fact(key, said) for key, said in config.extras.items()))
    yield from group("advisory", (fact(key, said) for key, said in config.advisory.items()))


def _target(config: TargetConfig) -> Iterator[Fact]:
    yield fact("role", derived("target", "the fields of a causal language model and none of a drafter"))
    yield fact("method", unknown(_IS_TARGET))
    yield fact("format", derived("hf", "a Hugging Face model config"))
    yield fact("family", derived(config.family, "model_type, else the architecture"))
    yield fact("architecture", config.architecture)
    yield fact("model_type", config.model_type)
    for name in (
        "generation",
        "taps",
        "block_size",
        "num_draft_tokens",
        "sample_from_anchor",
        "mask_token_id",
    ):
        yield Fact((name,), None, Unknown(_IS_TARGET))
    causal: Sourced[bool] = derived(True, "a target attends causally")
    yield from _layers([(layer.kind, layer.window, causal) for layer in config.layers], config.layers_source)
    yield from _rope(config.rope)
    yield fact("vocab_size", config.vocab_size)
    yield fact("draft_vocab_size", unknown(_IS_TARGET))
    yield fact("hidden_size", config.geometry.hidden_size)
    yield fact("target_hidden_size", config.geometry.hidden_size)
    yield fact("num_target_layers", config.geometry.num_hidden_layers)
    for name in ("norms", "sharing", "verifier"):
        yield Fact((name,), None, Unknown(_IS_TARGET))
    yield from _mtp(config.mtp, config.mtp_layers)
    yield from _geometry(config.geometry)
    yield from _forward_pass(config)
    yield from group("extras", (fact(key, said) for key, said in config.extras.items()))
    yield from group("advisory", (fact(key, said) for key, said in config.advisory.items()))


def _forward_pass(config: TargetConfig) -> Iterator[Fact]:
    yield fact("tie_word_embeddings", config.tie_word_embeddings)
    yield fact("attn_output_gate", config.attn_output_gate)
    yield fact("qkv_bias", config.qkv_bias)
    yield fact("output_bias", config.output_bias)
    yield fact("qk_norm", config.qk_norm)
    yield fact("norm_is_zero_centred", config.norm_is_zero_centred)
    linear, experts = config.linear_attention, config.experts
    yield from group(
        "linear_attention",
        (
            fact("num_key_heads", linear.num_key_heads),
            fact("num_value_heads", linear.num_value_heads),
            fact("key_head_dim", linear.key_head_dim),
            fact("value_head_dim", linear.value_head_dim),
            fact("conv_kernel_dim", linear.conv_kernel_dim),
            fact("state_dtype", linear.state_dtype),
        ),
    )
    yield from group(
        "experts",
        (
            fact("num_experts", experts.num_experts),
            fact("num_experts_per_tok", experts.num_experts_per_tok),
            fact("moe_intermediate_size", experts.moe_intermediate_size),
            fact("shared_expert_intermediate_size", experts.shared_expert_intermediate_size),
        ),
    )


def _taps(taps: Taps) -> Iterator[Fact]:
    """The group takes its source from the numbering that the file uses."""
    said = taps.hidden_indexes if taps.hidden_indexes.is_written else taps.layer_ids
    parts = (fact("layer_ids", taps.layer_ids), fact("hidden_indexes", taps.hidden_indexes))
    return group("taps", parts, source=said.source)


def _layers(
    layers: Iterable[tuple[Sourced[str], Sourced[int], Sourced[bool]]], source: Source
) -> Iterator[Fact]:
    """A list; null, with the reason, where not even the number of layers is known."""
    rows = tuple(layers)
    yield Fact(("layers",), None, source, Shape.LIST if rows else Shape.VALUE)
    for i, (kind, window, causal) in enumerate(rows):
        parts = (fact("kind", kind), fact("window", window), fact("causal", causal))
        for each in group(str(i), parts):
            yield Fact(("layers", *each.path), each.value, each.source, each.shape)


def _rope(rope: Rope) -> Iterator[Fact]:
    return group(
        "rope",
        (
            fact("theta", rope.theta),
            fact("type", rope.type),
            fact("partial_rotary_factor", rope.partial_rotary_factor),
            fact("scaling", rope.scaling),
            fact("is_neox", rope.is_neox),
        ),
    )


def _geometry(geometry: Geometry) -> Iterator[Fact]:
    return group(
        "geometry",
        (
            fact("hidden_size", geometry.hidden_size),
            fact("intermediate_size", geometry.intermediate_size),
            fact("num_hidden_layers", geometry.num_hidden_layers),
            fact("num_attention_heads", geometry.num_attention_heads),
            fact("num_key_value_heads", geometry.num_key_value_heads),
            fact("head_dim", geometry.head_dim),
            fact("attention_bias", geometry.attention_bias),
            fact("hidden_act", geometry.hidden_act),
            fact("rms_norm_eps", geometry.rms_norm_eps),
            fact("max_position_embeddings", geometry.max_position_embeddings),
        ),
    )


def _mtp(head: MtpHead | None, count: Sourced[int]) -> Iterator[Fact]:
    """The head as an object; null with the reason where the target advertises none."""
    if head is None:
        return iter((Fact(("mtp",), None, count.source),))
    parts = (
        fact("style", derived(head.style, "the family decides how the head's tensors are named")),
        fact("num_layers", head.num_layers),
        fact("dedicated_embeddings", head.dedicated_embeddings),
        *_taps(head.drafter.taps),
    )
    return group("mtp", parts, source=count.source)
