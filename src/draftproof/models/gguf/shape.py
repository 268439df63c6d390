"""A GGUF file's metadata to a DecoderShape; a key of the architecture that is not known here is an error.

Source: the GGUF specification, ``[llm].*`` keys; llama.cpp src/llama-model.cpp for what is assumed when a
key is absent.
"""

from draftproof.config.source import Derived
from draftproof.models.gguf.file import GgufFile
from draftproof.models.target.shape import AttentionShape, DecoderShape, LayerShape, RopeShape

__all__ = ["GGUF_ARCHITECTURES", "heads_are_paired", "read_gguf_shape"]

GGUF_ARCHITECTURES = ("llama", "qwen2", "qwen3")
"""``general.architecture`` of files that can be run."""

_READ = (
    *("block_count", "context_length", "embedding_length", "feed_forward_length", "vocab_size"),
    *("attention.head_count", "attention.head_count_kv", "attention.layer_norm_rms_epsilon"),
    *("attention.key_length", "attention.value_length"),
    *("rope.freq_base", "rope.dimension_count", "rope.scaling.type", "rope.scaling.factor"),
    "rope.scaling.original_context_length",
)


def heads_are_paired(file: GgufFile) -> bool:
    """Whether query and key rows already have rotating partners side by side: true of Llama alone."""
    return file.architecture == "llama"


def read_gguf_shape(file: GgufFile) -> DecoderShape:
    """The decoder in the file.

    Raises:
        RefusedInput: an architecture not built here, or a key that is missing, unknown or cannot be run.
    """
    if file.architecture not in GGUF_ARCHITECTURES:
        raise file.refused("general.architecture", " or ".join(GGUF_ARCHITECTURES), file.architecture)
    _refuse_unread(file)
    keys = _Keys(file)
    num_heads = keys.integer("attention.head_count")
    hidden = keys.integer("embedding_length")
    head_dim = keys.integer("attention.key_length", hidden // num_heads)
    if keys.integer("attention.value_length", head_dim) != head_dim:
        raise file.refused("attention.value_length", f"{head_dim}, as the keys", "another")
    shapes = file.shapes()
    if "model.embed_tokens.weight" not in shapes:
        raise file.refused("token_embd.weight", "an embedding", "none")
    return DecoderShape(
        family=file.architecture,
        hidden_size=hidden,
        intermediate_size=keys.integer("feed_forward_length"),
        vocab_size=shapes["model.embed_tokens.weight"][0],
        max_length=keys.integer("context_length"),
        norm_eps=keys.number("attention.layer_norm_rms_epsilon"),
        norm_is_zero_centred=False,  # llama.cpp's converter adds the 1 where a model has such norms
        has_mlp_bias="model.layers.0.mlp.gate_proj.bias" in shapes,
        is_tied="lm_head.weight" not in shapes,
        attention=AttentionShape(
            num_heads=num_heads,
            num_kv_heads=keys.integer("attention.head_count_kv", num_heads),
            head_dim=head_dim,
            has_qkv_bias="model.layers.0.self_attn.q_proj.bias" in shapes,
            has_output_bias="model.layers.0.self_attn.o_proj.bias" in shapes,
            has_qk_norm="model.layers.0.self_attn.q_norm.weight" in shapes,
            has_gate=False,
        ),
        delta=None,
        layers=tuple(LayerShape(is_recurrent=False, window=None) for _ in range(keys.integer("block_count"))),
        rope=_rope(file, keys, head_dim),
        sources=(("every field", Derived(f"metadata and tensor names of {file.where}")),),
    )


class _Keys:
    """Numbers under the architecture's own prefix."""

    def __init__(self, file: GgufFile) -> None:
        self._file = file

    def integer(self, key: str, absent: int | None = None) -> int:
        """An integer; ``absent`` is what llama.cpp assumes without it, None where it refuses too."""
        full = f"{self._file.architecture}.{key}"
        if absent is not None and not self._file.has(full):
            return absent
        found = self._file.value(full)
        if not isinstance(found, int) or isinstance(found, bool) or found < 1:
            raise self._file.refused(full, "an integer of 1 or more", repr(found))
        return found

    def number(self, key: str, absent: float | None = None) -> float:
        """A number; ``absent`` as above."""
        full = f"{self._file.architecture}.{key}"
        if absent is not None and not self._file.has(full):
            return absent
        found = self._file.value(full)
        if not isinstance(found, int | float) or isinstance(found, bool):
            raise self._file.refused(full, "a number", repr(found))
        return float(found)


def _rope(file: GgufFile, keys: _Keys, head_dim: int) -> RopeShape:
    scaling: tuple[tuple[str, float | bool], ...] = ()
    type_key = f"{file.architecture}.rope.scaling.type"
    kind = str(file.value(type_key)) if file.has(type_key) else "none"
    if kind == "linear":
        scaling = (("factor", keys.number("rope.scaling.factor")),)
    elif kind != "none":
        raise file.refused(type_key, "none or linear", kind)
    return RopeShape(
        theta=keys.number("rope.freq_base", 10000.0),
        kind="default" if kind == "none" else kind,
        rotary_dim=keys.integer("rope.dimension_count", head_dim),
        scaling=scaling,
        divisors=file.rope_divisors(),
    )


def _refuse_unread(file: GgufFile) -> None:
    prefix = f"{file.architecture}."
    known = {prefix + key for key in _READ}
    unread = [key for key in file.metadata_keys() if key.startswith(prefix) and key not in known]
    if unread:
        raise file.refused(
            "metadata", f"only keys that are known of {file.architecture} here", ", ".join(unread)
        )
