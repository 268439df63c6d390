"""A GGUF file as a target: its metadata as a DecoderShape, its tensors by their Hugging Face names.

Quantised tensors are expanded to the 32-bit floats their blocks stand for: the model that runs is the file's
own, not the one it was made from.

Source: the GGUF specification; llama.cpp's tensor names and conversion of Llama checkpoints, which puts the
rotating partners of query and key rows side by side.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from gguf import GGUFReader, GGUFValueType, ReaderField, ReaderTensor
from gguf.quants import dequantize
from torch import Tensor

from draftproof.errors import CouldNotLook, RefusedInput

__all__ = ["GgufFile", "is_gguf"]

_PREFIX = "model."
_WHOLE = {
    "token_embd.weight": f"{_PREFIX}embed_tokens.weight",
    "output_norm.weight": f"{_PREFIX}norm.weight",
    "output.weight": "lm_head.weight",
}
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""llama.cpp's name of a layer's tensor -> the name in the checkpoint it was converted from."""

ROPE_DIVISORS = "rope_freqs.weight"
"""[r / 2] what each frequency is divided by: the llama3 scaling, worked out by the converter."""

_FLOATS = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def is_gguf(path: Path) -> bool:
    """Whether ``path`` is a file that begins as GGUF does, or is named as one."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"GGUF" or path.suffix == ".gguf"


class GgufFile:
    """One GGUF file, memory-mapped.

    Attributes:
        where: the file, as shown to people.
        architecture: ``general.architecture``.
    """

    def __init__(self, path: Path) -> None:
        """Read the header.

        Raises:
            CouldNotLook: the file cannot be opened.
            RefusedInput: it is no whole GGUF file, or does not name its architecture.
        """
        self.where = str(path)
        try:
            reader = GGUFReader(path)
        except OSError as error:
            raise CouldNotLook(
                str(path),
                expected="a readable GGUF file",
                found=str(error),
                where=str(path),
                means="there are no weights to run",
                next_step=f"ls -l {path}",
            ) from error
        except (ValueError, IndexError, KeyError, OverflowError) as error:
            raise self.refused("file", "a whole GGUF file", f"{type(error).__name__}: {error}") from error
        self._fields: Mapping[str, ReaderField] = reader.fields
        self._tensors = {_renamed(tensor.name): tensor for tensor in reader.tensors}
        self.architecture = str(self.value("general.architecture"))

    def refused(self, subject: str, expected: str, found: str) -> RefusedInput:
        """An error about this file."""
        return RefusedInput(
            subject,
            expected=expected,
            found=found,
            where=self.where,
            means="the model in the file cannot be run as it was meant; nothing was loaded",
            next_step="take a file written by llama.cpp's converter, or the original checkpoint",
        )

    def has(self, key: str) -> bool:
        """Whether the metadata says anything at ``key``."""
        return key in self._fields

    def metadata_keys(self) -> tuple[str, ...]:
        """Every metadata key, in file order."""
        return tuple(self._fields)

    def value(self, key: str) -> str | int | float | bool:
        """One scalar of the metadata.

        Raises:
            RefusedInput: there is none at ``key``, or it is a list.
        """
        if key not in self._fields:
            raise self.refused(key, "a value in the metadata", "none")
        if self._fields[key].types[:1] == [GGUFValueType.ARRAY]:
            raise self.refused(key, "one value", "a list")
        found = self._fields[key].contents()
        if not isinstance(found, str | int | float | bool):
            raise self.refused(key, "a string or a number", repr(found))
        return found

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Every tensor's shape by its Hugging Face name; the file counts dimensions from the last."""
        return {
            name: tuple(int(d) for d in reversed(tensor.shape))
            for name, tensor in self._tensors.items()
            if name != ROPE_DIVISORS
        }

    def dtype(self, name: str) -> torch.dtype:
        """The dtype a tensor is stored in, or that a quantised one's blocks stand for: float32."""
        kind = self._tensors[name].tensor_type.name
        if kind in _FLOATS:
            return _FLOATS[kind]
        return torch.float32  # what the blocks stand for

    def rope_divisors(self) -> tuple[float, ...]:
        """What the file divides its rope frequencies by; empty where it does not."""
        if ROPE_DIVISORS not in self._tensors:
            return ()
        return tuple(self.read(ROPE_DIVISORS).tolist())

    def read(self, name: str) -> Tensor:
        """One tensor in full, in float32 if it was quantised.

        Raises:
            RefusedInput: it is quantised in a way that the gguf package cannot expand.
        """
        tensor = self._tensors[name]
        try:
            return _expanded(tensor)
        except NotImplementedError as error:
            kind = tensor.tensor_type.name
            raise self.refused(name, "a kind of blocks the gguf package can expand", kind) from error


def _expanded(tensor: ReaderTensor) -> Tensor:
    kind = tensor.tensor_type.name
    if kind in {"F32", "F16"}:
        return torch.from_numpy(np.array(tensor.data))  # a copy: the file is mapped read-only
    values = dequantize(tensor.data, tensor.tensor_type)
    expanded = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))
    return expanded.bfloat16() if kind == "BF16" else expanded


def _renamed(name: str) -> str:
    """The Hugging Face name; an unknown one stays as it is and will be reported as unexpected."""
    if name in _WHOLE:
        return _WHOLE[name]
    parts = name.split(".")
    if len(parts) == 4 and parts[0] == "blk" and parts[1].isdigit() and parts[2] in _IN_LAYER:  # noqa: PLR2004 - blk.N.name.weight
        return f"{_PREFIX}layers.{parts[1]}.{_IN_LAYER[parts[2]]}.{parts[3]}"
    return name
