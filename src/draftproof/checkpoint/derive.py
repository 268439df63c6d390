"""What the shapes of a checkpoint say about its geometry, each fact with the tensor that tells it.

Source of the shapes: z-lab dflash modeling file, SafeAILab/EAGLE cnets.py, transformers modeling files.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from draftproof.checkpoint.files.shard import TensorEntry
from draftproof.checkpoint.ledger import Checkpoint

__all__ = ["Fact", "derive_facts"]

_PREFIXES = ("language_model.model.", "model.language_model.", "model.", "draft_model.", "drafter.")
_LAYER = re.compile(r"layers\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class Fact:
    """One number or truth that a shape tells."""

    field: str
    """The canonical field: ``hidden_size``, ``num_hidden_layers``, ``method``, ..."""

    value: int | bool | str
    tensor: str
    rule: str
    """How it is read off, in words."""


def derive_facts(checkpoint: Checkpoint) -> tuple[Fact, ...]:
    """Every fact that the names and shapes tell, in a fixed order; a field is told once."""
    tensors = {_bare(name): tensor for name, tensor in checkpoint.tensors.items()}
    facts: dict[str, Fact] = {}
    # What is absent, and the last layer, are known only where every shard was read.
    whole = () if checkpoint.unread else (_layers, _flags)
    for source in (_method, _widths, _attention, _vocabulary, _dflash2, *whole):
        for fact in source(tensors):
            facts.setdefault(fact.field, fact)
    return tuple(facts.values())


_Tensors = Mapping[str, TensorEntry]


def _bare(name: str) -> str:
    """The name without the prefixes that exports put before it; ``midlayer`` in its other spelling."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    return name.replace("midlayer.", "layers.0.", 1) if name.startswith("midlayer.") else name


def _read(
    tensors: _Tensors, field: str, name: str, rule: str, value: Callable[[TensorEntry], int | bool | str]
) -> Iterator[Fact]:
    if name in tensors and tensors[name].shape:
        yield Fact(field, value(tensors[name]), tensors[name].name, rule)


def _method(tensors: _Tensors) -> Iterator[Fact]:
    """The drafting algorithm by the tensors that only it has; nothing for a plain language model."""
    for name, method in (
        ("candidate_selector.hidden_projection.weight", "dflash2"),
        ("mask_hidden", "peagle"),
    ):
        if name in tensors:
            yield Fact("method", method, tensors[name].name, f"only {method} has {name}")
            return
    fc, first = tensors.get("fc.weight"), tensors.get("layers.0.self_attn.q_proj.weight")
    if fc is None or first is None or len(fc.shape) != 2 or len(first.shape) != 2:  # noqa: PLR2004 - a matrix
        return
    if first.shape[1] == 2 * fc.shape[0]:
        rule = "the first layer's q_proj is twice as wide as fc's output: embedding and state side by side"
        yield Fact("method", "eagle3", first.name, rule)
    elif first.shape[1] == fc.shape[0] and "hidden_norm.weight" in tensors:
        rule = "q_proj is as wide as fc's output and hidden_norm stands after fc"
        yield Fact("method", "dflash", tensors["hidden_norm.weight"].name, rule)


def _widths(tensors: _Tensors) -> Iterator[Fact]:
    yield from _read(tensors, "hidden_size", "norm.weight", "length of the final norm", lambda t: t.shape[0])
    yield from _read(tensors, "hidden_size", "fc.weight", "rows of fc", lambda t: t.shape[0])
    yield from _read(
        tensors, "fc_columns", "fc.weight", "columns of fc: taps x target width", lambda t: t.shape[-1]
    )
    yield from _read(
        tensors,
        "intermediate_size",
        "layers.0.mlp.gate_proj.weight",
        "rows of gate_proj",
        lambda t: t.shape[0],
    )


def _layers(tensors: _Tensors) -> Iterator[Fact]:
    last: tuple[int, TensorEntry] | None = None
    for name, tensor in tensors.items():
        match = _LAYER.match(name)
        # A DeepSeek-style head is an extra layer that the count of layers leaves out.
        if match and not _is_head(tensors, match[0]) and (last is None or int(match[1]) > last[0]):
            last = int(match[1]), tensor
    if last is not None:
        yield Fact(
            "num_hidden_layers", last[0] + 1, last[1].name, "highest layer number, counted from 0, plus 1"
        )


def _is_head(tensors: _Tensors, layer: str) -> bool:
    return any(f"{layer}{name}.weight" in tensors for name in ("eh_proj", "enorm", "hnorm"))


def _attention(tensors: _Tensors) -> Iterator[Fact]:
    """From the lowest layer that attends fully: heads need the width of one, which only head norms tell."""
    layer = _attending(tensors)
    if layer is None:
        return
    attn = f"{layer}self_attn"
    yield from _read(
        tensors, "head_dim", f"{attn}.q_norm.weight", "length of the head norm", lambda t: t.shape[0]
    )
    yield from _read(tensors, "query_rows", f"{attn}.q_proj.weight", "rows of q_proj", lambda t: t.shape[0])
    yield from _read(tensors, "key_rows", f"{attn}.k_proj.weight", "rows of k_proj", lambda t: t.shape[0])
    yield from _read(
        tensors, "attention_width", f"{attn}.o_proj.weight", "columns of o_proj", lambda t: t.shape[-1]
    )
    dim = tensors.get(f"{attn}.q_norm.weight")
    if dim is None or not dim.shape or not dim.shape[0]:
        return
    width = dim.shape[0]
    for field, name, axis in (
        ("num_attention_heads", "o_proj", -1),
        ("num_key_value_heads", "k_proj", 0),
    ):
        tensor = tensors.get(f"{attn}.{name}.weight")
        if tensor is not None and tensor.shape and tensor.shape[axis] % width == 0:
            side = "columns of o_proj" if axis else "rows of k_proj"
            yield Fact(field, tensor.shape[axis] // width, tensor.name, f"{side} / length of q_norm")


def _attending(tensors: _Tensors) -> str | None:
    found = [int(m[1]) for n in tensors if n.endswith("self_attn.o_proj.weight") and (m := _LAYER.match(n))]
    return f"layers.{min(found)}." if found else None


def _vocabulary(tensors: _Tensors) -> Iterator[Fact]:
    yield from _read(
        tensors, "vocab_size", "embed_tokens.weight", "rows of the embedding", lambda t: t.shape[0]
    )
    yield from _read(tensors, "vocab_size", "t2d", "length of t2d", lambda t: t.shape[0])
    yield from _read(tensors, "draft_vocab_size", "d2t", "length of d2t", lambda t: t.shape[0])
    yield from _read(tensors, "draft_vocab_size", "lm_head.weight", "rows of the head", lambda t: t.shape[0])
    for field, name in (("own_embeddings", "embed_tokens.weight"), ("own_lm_head", "lm_head.weight")):
        yield from _read(tensors, field, name, f"{name} is there", lambda _: True)


def _flags(tensors: _Tensors) -> Iterator[Fact]:
    """Truths that a tensor's presence tells, and its absence where the rest of the layer is there."""
    layer = _attending(tensors)
    if layer is not None:
        bias = f"{layer}self_attn.q_proj.bias"
        told = tensors.get(bias, tensors[f"{layer}self_attn.o_proj.weight"])
        rule = "q_proj has a bias" if bias in tensors else "no q_proj.bias beside this"
        yield Fact("attention_bias", bias in tensors, told.name, rule)
    if "fc.weight" in tensors:
        for field, name in (("norm_before_fc", "input_norm.weight"), ("fc_norm", "fc_norm.0.weight")):
            told = tensors.get(name, tensors["fc.weight"])
            yield Fact(
                field, name in tensors, told.name, f"{name} {'is' if name in tensors else 'is not'} there"
            )


def _dflash2(tensors: _Tensors) -> Iterator[Fact]:
    base = "layers.0.attention_conv.base_kernel"
    yield from _read(tensors, "conv_kernel_size", base, "taps of the base kernel", lambda t: t.shape[1])
    name = "candidate_selector.hidden_projection.weight"
    yield from _read(tensors, "selector_rank", name, "rows of the projection", lambda t: t.shape[0])
