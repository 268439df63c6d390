"""A case file becomes directories on disk: a clean real config, one mutation, weights from a header set.

The weights are written from the architecture's own expected table, at the config's shapes; ``tiny`` shrinks
the widths (never the vocabulary, the depth or the taps) so that whole files fit into a test.
"""

import fnmatch
import hashlib
import json
import math
import struct
from pathlib import Path
from typing import Any

from draftproof.checkpoint.expected.tables import expected_tensors
from draftproof.config.diff import apply
from draftproof.config.drafter import DrafterConfig
from draftproof.config.parse import parse_config
from draftproof.config.raw import parse_raw
from draftproof.config.target import TargetConfig

__all__ = ["Case", "build"]

CONFIGS = Path(__file__).parents[1] / "configs"
Case = dict[str, Any]
Tensor = tuple[str, list[int], bytes]

_TINY = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
_WIDTHS = {"BF16": 2, "F16": 2, "F32": 4, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1, "F8_E4M3": 1}


def build(case: Case, root: Path) -> list[str]:
    """Write everything the case needs below ``root`` and return the arguments of ``check``."""
    subject = _model(root / "subject", case, case)
    argv = [str(subject)]
    if "target" in case:
        argv += ["--target", str(_model(root / "target", case, case["target"]))]
    if "intent" in case:
        argv += ["--intent", str(_model(root / "intent", case, case["intent"]))]
    if "tokenizer_option" in case:
        _tokenizer(root / "named", case["tokenizer_option"])
        argv += ["--tokenizer", str(root / "named")]
    return argv + [str(option) for option in case.get("options", [])]


def _model(directory: Path, case: Case, spec: Case) -> Path:
    """One model directory: config, mutation, weights, tokenizer, further files."""
    home = directory
    if "hub" in spec:
        home = directory / "hub" / "models--org--drafter" / "snapshots" / spec["hub"]["revision"]
    home.mkdir(parents=True)
    value = json.loads((CONFIGS / spec["base"]).read_text("utf-8"))
    value = _tiny(value) if case.get("tiny") else value
    clean = value
    value = apply(spec.get("patch", []), value)
    text = _edited(json.dumps(value, indent=2) + "\n", spec.get("text", []))
    if not spec.get("no_config"):
        (home / "config.json").write_bytes(text.encode("utf-8"))
    if "weights" in spec:
        _weights(home, clean if spec["weights"].get("of") == "clean" else value, spec["weights"])
    if "tokenizer" in spec:
        _tokenizer(home, spec["tokenizer"])
    for name, content in spec.get("files", {}).items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(content, "utf-8")
    if "hub" in spec:
        _into_blobs(home, spec["hub"])
    return home


def _tiny(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _TINY[key] if key in _TINY and isinstance(inner, int) else _tiny(inner)
            for key, inner in value.items()
        }
    return value


def _edited(text: str, edits: list[Case]) -> str:
    """Mutations of the bytes: what JSON patches cannot say."""
    for edit in edits:
        if "replace" in edit:
            old, new = edit["replace"]
            assert old in text, f"the case replaces {old!r}, which is not there"
            text = text.replace(old, new, 1)
        elif "append" in edit:
            text += edit["append"]
        elif "whole" in edit:
            text = edit["whole"]
        elif "keep" in edit:
            text = text[: edit["keep"]]
        else:
            text = {"crlf": text.replace("\n", "\r\n"), "bom": "\ufeff" + text}[edit["kind"]]
    return text


def _weights(home: Path, value: Any, spec: Case) -> None:
    """Every required tensor of the architecture, changed as the case says, in one shard or more."""
    if "text" in spec:
        (home / "model.safetensors").write_text(spec["text"], "utf-8")
        return
    tensors = {} if spec.get("empty") else _required(value)
    for pattern in spec.get("drop", []):
        gone = [name for name in tensors if fnmatch.fnmatchcase(name, pattern)]
        assert gone, f"the case drops {pattern!r}, which is not there"
        tensors = {name: tensor for name, tensor in tensors.items() if name not in gone}
    for name, tensor in spec.get("add", {}).items():
        tensors[name] = _tensor(tensor)
    for pattern, change in spec.get("fill", {}).items():
        for name in [name for name in tensors if fnmatch.fnmatchcase(name, pattern)]:
            dtype, shape, _ = tensors[name]
            tensors[name] = _tensor({"dtype": dtype, "shape": shape, "fill": change})
    count = spec.get("shards", 1)
    if count == 1:
        (home / "model.safetensors").write_bytes(_file(tensors))
        return
    names = list(tensors)
    weight_map: dict[str, str] = {}
    for part in range(count):
        shard = f"model-{part + 1:05d}-of-{count:05d}.safetensors"
        mine = {name: tensors[name] for name in names[part::count]}
        weight_map |= dict.fromkeys(mine, shard)
        if part + 1 not in spec.get("omit", []):
            (home / shard).write_bytes(_file(mine))
    total = sum(len(data) for _, _, data in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    text = json.dumps(index, indent=2) + spec.get("index_append", "")
    (home / "model.safetensors.index.json").write_text(text, "utf-8")


def _required(value: Any) -> dict[str, Tensor]:
    parsed = parse_config(parse_raw(json.dumps(value).encode(), "case"))
    assert isinstance(parsed.config, DrafterConfig | TargetConfig), "the base config is not recognised"
    table = expected_tensors(parsed.config)
    assert table.entries, table.unknown
    tensors = {}
    for entry in table.entries:
        if entry.required:
            assert entry.shape is not None, f"{entry.name} has no shape"
            shape = [dim if dim is not None else 1 for dim in entry.shape]
            dtype = "I64" if entry.name == "d2t" else "BF16"
            is_norm = entry.name.endswith("norm.weight") or "_norm" in entry.name
            tensors[entry.name] = _tensor({"dtype": dtype, "shape": shape, "fill": 1.0 if is_norm else 0.02})
    return tensors


def _tensor(spec: Case) -> Tensor:
    dtype, shape = spec["dtype"], list(spec["shape"])
    count = math.prod(shape)
    fill = spec.get("fill", 0.02)
    if dtype in ("I64", "I32"):
        numbers = _numbers(fill, count)
        return dtype, shape, struct.pack(f"<{count}{'q' if dtype == 'I64' else 'i'}", *numbers)
    if dtype == "BOOL":
        return dtype, shape, bytes(int(number) for number in _numbers(fill, count))
    if dtype == "BF16":
        return dtype, shape, struct.pack("<f", float(fill))[2:] * count
    return dtype, shape, b"\x3c" * (count * _WIDTHS[dtype])


def _numbers(fill: Any, count: int) -> list[int]:
    """Integers by a rule: a constant, a list, or ``skip:N:M``: offsets to the first N ids, then from M."""
    if isinstance(fill, list):
        assert len(fill) == count
        return [int(number) for number in fill]
    if isinstance(fill, str) and fill.startswith("skip:"):
        kept, first = (int(number) for number in fill.split(":")[1:])
        return [0 if index < kept else first - kept for index in range(count)]
    return [int(fill)] * count


def _file(tensors: dict[str, Tensor]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    begin = 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, begin + len(data)]}
        begin += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values())


def _tokenizer(directory: Path, spec: Case) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    vocab = {f"tok{token}": token for token in range(spec["size"])} | spec.get("vocab", {})
    taken = set(spec.get("vocab", {}).values())
    vocab = {text: token for text, token in vocab.items() if token not in taken or text in spec["vocab"]}
    document = {
        "version": "1.0",
        "added_tokens": [{"id": int(t), "content": text} for t, text in spec.get("added", {}).items()],
        "pre_tokenizer": {"type": spec.get("pre_tokenizer", "ByteLevel")},
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    }
    (directory / "tokenizer.json").write_text(json.dumps(document), "utf-8")
    config = {"eos_token": spec.get("eos", "<|im_end|>"), "tokenizer_class": "Qwen2Tokenizer"}
    (directory / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")


def _into_blobs(home: Path, spec: Case) -> None:
    """Move every file into blobs named by content, leave links, then edit or flip what the case says."""
    root = home.parents[1]
    (root / "blobs").mkdir()
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(str(spec.get("main") or spec["revision"]), "utf-8")
    for file in sorted(home.iterdir()):
        data = file.read_bytes()
        is_large = file.suffix == ".safetensors"
        name = hashlib.sha256(data).hexdigest() if is_large else _git_sha1(data)
        (root / "blobs" / name).write_bytes(data)
        file.unlink()
        file.symlink_to(Path("../../blobs") / name)
        if file.name in spec.get("edit", {}):
            old, new = spec["edit"][file.name]
            edited = data.replace(old.encode(), new.encode(), 1)
            assert edited != data
            (root / "blobs" / name).write_bytes(edited)
        if file.name in spec.get("flip", []):
            flipped = data[:-1] + bytes([data[-1] ^ 1])
            (root / "blobs" / name).write_bytes(flipped)
    for other in spec.get("other_revisions", []):
        (home.parent / other).mkdir()
        for file in home.iterdir():
            (home.parent / other / file.name).symlink_to(file.readlink())


def _git_sha1(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
