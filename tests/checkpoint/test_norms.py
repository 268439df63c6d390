"""checkpoint.norms: the convention of zero-centred norms, told by means that public reports give."""

import random
import struct
from pathlib import Path
from statistics import fmean

import pytest

from checkpoint.build import Tensors, write_shard
from draftproof.checkpoint.ledger import Checkpoint, read_checkpoint
from draftproof.checkpoint.values.norms import judge_norms, read_norm_groups
from draftproof.checkpoint.values.read import read_values, unpack
from draftproof.config.source import Unknown

H = 256
TRUNK = [
    f"model.language_model.layers.{i}.{n}.weight"
    for i in range(6)
    for n in ("input_layernorm", "post_attention_layernorm")
]
MTP = ["mtp.layers.0.input_layernorm.weight", "mtp.layers.0.post_attention_layernorm.weight"]
PRE_FC = ["mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight"]


def norm(mean: float, seed: int) -> bytes:
    """A bfloat16 norm spread around a mean."""
    chance = random.Random(seed)  # noqa: S311 - a fixed seed, nothing secret
    floats = struct.pack(f"<{H}f", *(chance.gauss(mean, 0.1) for _ in range(H)))
    return b"".join(floats[i + 2 : i + 4] for i in range(0, 4 * H, 4))


def stored(trunk: float, mtp: float | None, pre_fc: tuple[float, float] | None) -> Tensors:
    """A checkpoint with norms of these means; some trunk norms far off, as trained ones are."""
    means = {n: trunk + (0.9 if i % 5 == 4 else 0.0) for i, n in enumerate(TRUNK)}
    means |= dict.fromkeys(MTP, mtp) if mtp is not None else {}
    means |= dict(zip(PRE_FC, pre_fc, strict=True)) if pre_fc is not None else {}
    own = {"model.language_model.layers.0.linear_attn.norm.weight": ("BF16", (H,), norm(0.9, 99))}
    return own | {n: ("BF16", (H,), norm(m, i)) for i, (n, m) in enumerate(means.items())}


def judged(root: Path, tensors: Tensors, family: str = "qwen3_5") -> tuple[list[str], tuple[str, ...]]:
    """Ids of defects, and what was not judged."""
    write_shard(root / "model.safetensors", tensors)
    checkpoint = read_checkpoint(root)
    assert isinstance(checkpoint, Checkpoint)
    defects, not_judged = judge_norms(checkpoint, family)
    return [d.id for d in defects], not_judged


CASES = {
    "as published": (stored(-0.03, 0.02, (-0.44, -0.51)), []),
    "as published, without a head": (stored(-0.03, None, None), []),
    "converted": (stored(0.9666, 0.97, (0.56, 0.49)), ["norm-convention-shifted"]),
    "converted, with the two that misfire": (
        stored(0.97, 0.97, (0.4937, 0.2734)),
        ["norm-convention-shifted"],
    ),
    "shifted twice": (stored(1.9666, 1.97, (1.4937, 1.2733)), ["norm-convention-shifted"]),
    "trunk converted, head not": (stored(0.97, 0.02, (-0.44, -0.51)), ["norm-convention-mixed"]),
    "layers converted, pre_fc not": (stored(0.97, 0.97, (-0.44, -0.51)), ["norm-convention-mixed"]),
    "head converted, trunk not": (stored(0.02, 0.97, (0.4937, 0.2734)), ["norm-convention-mixed"]),
    "pre_fc shifted twice": (stored(0.97, 0.97, (1.4937, 1.2733)), ["norm-convention-mixed"]),
}


@pytest.mark.parametrize("case", CASES)
def test_convention(tmp_path: Path, case: str) -> None:
    """Each reported state of a checkpoint has its name; the published one and the two low means have none."""
    tensors, expected = CASES[case]
    assert judged(tmp_path, tensors) == (expected, ())


def test_other_families_are_not_judged(tmp_path: Path) -> None:
    """Llama norms have any mean: nothing is said of them."""
    assert judged(tmp_path, stored(0.2, None, None), "llama") == ([], ())


def test_means_between_the_conventions_decide_nothing(tmp_path: Path) -> None:
    """A median near the threshold is said to be undecided."""
    ids, not_judged = judged(tmp_path, stored(0.5, None, None))
    assert ids == []
    assert "trunk layers" in not_judged[0]


def test_zeros_are_not_read_as_a_convention(tmp_path: Path) -> None:
    """Norms in a hole read as zeros, which must not pass for the published convention."""
    ids, not_judged = judged(tmp_path, {n: ("BF16", (H,), bytes(2 * H)) for n in TRUNK})
    assert ids == []
    assert "no layer norm" in not_judged[0]


def test_values_of_every_dtype(tmp_path: Path) -> None:
    """Numbers come back as they were written, in each dtype whose values are read."""
    assert list(unpack(b"\x80\x3f\x00\xc0", "BF16")) == [1.0, -2.0]
    assert list(unpack(b"\x00\x3c\x00\xc0", "F16")) == [1.0, -2.0]
    assert list(unpack(struct.pack("<2f", 0.5, -3.0), "F32")) == [0.5, -3.0]
    assert list(unpack(struct.pack("<2d", 0.5, -3.0), "F64")) == [0.5, -3.0]
    assert list(unpack(struct.pack("<2q", 2**40, -1), "I64")) == [2**40, -1]
    assert list(unpack(b"\0\1\1", "BOOL")) == [0, 1, 1]
    write_shard(
        tmp_path / "model.safetensors",
        {"a": ("F8_E4M3", (4,), b"\1\2\3\4"), "n": ("BF16", (H,), norm(0.5, 1))},
    )
    checkpoint = read_checkpoint(tmp_path)
    assert isinstance(checkpoint, Checkpoint)
    assert isinstance(read_values(checkpoint, checkpoint.tensors["a"]), Unknown)
    values = read_values(checkpoint, checkpoint.tensors["n"])
    assert not isinstance(values, Unknown)
    assert fmean(values) == pytest.approx(0.5, abs=0.05)  # 8 standard errors: false alarm below 1e-14
    assert len(read_norm_groups(checkpoint)) == 0
