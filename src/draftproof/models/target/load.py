"""A directory or a GGUF file to a Decoder that runs."""

from pathlib import Path

import torch

from draftproof.config.parse import Parsed, find_config, parse_config
from draftproof.config.raw import read_raw
from draftproof.config.target import TargetConfig
from draftproof.errors import RefusedInput, UsageError
from draftproof.models.decoder import Decoder
from draftproof.models.gguf.file import GgufFile, is_gguf
from draftproof.models.gguf.shape import heads_are_paired, read_gguf_shape
from draftproof.models.target.build import build_decoder
from draftproof.models.target.parameters import Bill, bill_of
from draftproof.models.target.reading import read_shape
from draftproof.models.target.shape import DecoderShape
from draftproof.models.target.shards import ShardSource
from draftproof.models.target.weights import TensorSource, allocate, fill

__all__ = ["load_decoder", "prefix_of"]

_PREFIXES = ("model.language_model.", "model.", "language_model.model.")
"""Where the language model stands: inside a vision-language model, by itself, in an older export."""


def load_decoder(
    path: Path, *, dtype: torch.dtype | None = None, device: torch.device | None = None
) -> Decoder:
    """The target at ``path``.

    Args:
        path: a directory with ``config.json`` and safetensors, or one GGUF file.
        dtype: precision to run in; None for that of the checkpoint's embedding (float32 where quantised).
        device: None for the CPU.

    Raises:
        CouldNotLook: there is nothing to read.
        RefusedInput: config or weights are not what they must be; nothing is half-loaded.
        UsageError: the device is not there, or the dtype is none to run in.
    """
    device = _checked_device(device or torch.device("cpu"))
    if is_gguf(path):
        return _load_gguf(path, dtype, device)
    config = find_config(path)
    parsed = parse_config(read_raw(config))
    shape = read_shape(parsed, str(config))
    source = ShardSource(path)
    prefix = prefix_of(source)
    dtype = _checked_dtype(dtype or source.dtype(f"{prefix}embed_tokens.weight"))
    bill = bill_of(shape, prefix, num_mtp_layers=_num_mtp_layers(parsed))
    return _load(shape, bill, source, dtype, device)


def _num_mtp_layers(parsed: Parsed) -> int:
    head = parsed.config.mtp if isinstance(parsed.config, TargetConfig) else None
    return 0 if head is None else len(head.drafter.layers)  # none where the count cannot be true


def _load_gguf(path: Path, dtype: torch.dtype | None, device: torch.device) -> Decoder:
    file = GgufFile(path)
    shape = read_gguf_shape(file)
    bill = bill_of(shape, prefix_of(file), heads_are_paired=heads_are_paired(file))
    dtype = _checked_dtype(dtype or file.dtype(f"{prefix_of(file)}embed_tokens.weight"))
    return _load(shape, bill, file, dtype, device)


def _load(
    shape: DecoderShape, bill: Bill, source: TensorSource, dtype: torch.dtype, device: torch.device
) -> Decoder:
    homes = allocate(bill, dtype=dtype, device=device)
    fill(bill, source, homes)
    return build_decoder(shape, homes, dtype=dtype, device=device)


def prefix_of(source: TensorSource) -> str:
    """What the language model's tensor names begin with.

    Raises:
        RefusedInput: no known prefix has an embedding behind it.
    """
    names = source.shapes()
    for prefix in _PREFIXES:
        if f"{prefix}embed_tokens.weight" in names:
            return prefix
    raise RefusedInput(
        "embed_tokens.weight",
        expected=f"behind one of {', '.join(_PREFIXES)}",
        found=f"none among {len(names)} tensors",
        where=source.where,
        means="the checkpoint holds no language model that is known here",
        next_step=f"draftproof check {source.where}",
    )


def _checked_device(device: torch.device) -> torch.device:
    if device.type == "cuda" and not torch.cuda.is_available():
        raise _usage("device", "cpu, or cuda where torch sees a GPU", str(device))
    return device


def _checked_dtype(dtype: torch.dtype) -> torch.dtype:
    known = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
    if dtype not in known:
        raise _usage("dtype", ", ".join(map(str, known)), str(dtype))
    return dtype


def _usage(subject: str, expected: str, found: str) -> UsageError:
    return UsageError(
        subject,
        expected=expected,
        found=found,
        where="loading a model",
        means="it cannot run like that",
        next_step="choose another",
    )
