"""checkpoint.ledger: every tensor of a directory, and every fault of its files by its exact name."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from checkpoint.build import Tensors, shard_bytes, tensors_of, write_index, write_shard
from draftproof.checkpoint.ledger import Checkpoint, NoWeights, read_checkpoint
from draftproof.errors import CouldNotLook
from unprivileged import without_privileges

FIRST, SECOND, THIRD = (f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3))
SHARDS: dict[str, Tensors] = {
    FIRST: tensors_of({"embed.weight": (8, 4), "layers.0.weight": (4, 4)}),
    SECOND: tensors_of({"layers.1.weight": (4, 4), "layers.2.weight": (4, 4)}),
    THIRD: tensors_of({"norm.weight": (4,), "head.weight": (8, 4)}),
}


def sharded(root: Path) -> Path:
    """A clean checkpoint of three shards."""
    for name, tensors in SHARDS.items():
        write_shard(root / name, tensors)
    write_index(root, SHARDS)
    return root


def looked(root: Path) -> Checkpoint:
    """The checkpoint, which must be there."""
    found = read_checkpoint(root)
    assert isinstance(found, Checkpoint)
    return found


def named(root: Path) -> list[tuple[str, str]]:
    """Id and subject of every defect."""
    return [(d.id, d.subject) for d in looked(root).defects]


def edit_index(root: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Change the index as a value."""
    path = root / "model.safetensors.index.json"
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value) + "\n")


def test_clean_shards_have_no_defect(tmp_path: Path) -> None:
    """A clean set of shards gives every tensor with its place and nothing else."""
    found = looked(sharded(tmp_path))
    assert found.defects == ()
    assert sorted(found.tensors) == sorted(n for t in SHARDS.values() for n in t)
    entry = found.tensors["layers.1.weight"]
    data = (tmp_path / entry.shard).read_bytes()[entry.begin : entry.end]
    assert (entry.shard, entry.shape, data) == (SECOND, (4, 4), SHARDS[SECOND]["layers.1.weight"][2])


def test_clean_single_file_has_no_defect(tmp_path: Path) -> None:
    """One model.safetensors needs no index, whether the directory, its config or the file is named."""
    write_shard(tmp_path / "model.safetensors", SHARDS[FIRST], {"format": "pt"})
    (tmp_path / "config.json").write_text("{}\n")
    for path in (tmp_path, tmp_path / "config.json", tmp_path / "model.safetensors"):
        found = looked(path)
        assert (found.defects, set(found.tensors)) == ((), set(SHARDS[FIRST]))


def test_missing_shard_names_its_tensors_once(tmp_path: Path) -> None:
    """A shard the index names and nobody has is one defect that lists what it would hold."""
    (sharded(tmp_path) / SECOND).unlink()
    found = looked(tmp_path)
    assert [(d.id, d.subject) for d in found.defects] == [("shard-missing", SECOND)]
    assert "layers.1.weight, layers.2.weight" in found.defects[0].expected
    assert found.unread == (SECOND,)


def test_shard_missing_from_its_own_numbering(tmp_path: Path) -> None:
    """Without an index the numbering of the files tells that one is absent."""
    (sharded(tmp_path) / SECOND).unlink()
    (tmp_path / "model.safetensors.index.json").unlink()
    assert named(tmp_path) == [("shard-missing", SECOND), ("index-missing", "model.safetensors.index.json")]


def test_index_missing(tmp_path: Path) -> None:
    """Several shards without an index are named."""
    (sharded(tmp_path) / "model.safetensors.index.json").unlink()
    assert named(tmp_path) == [("index-missing", "model.safetensors.index.json")]


@pytest.mark.parametrize("value", ["../other.safetensors", "/etc/passwd", "sub/a.safetensors", "..", "a\\b"])
def test_index_path_escape(tmp_path: Path, value: str) -> None:
    """A weight_map value that is a path is named and never followed."""

    def change(index: dict[str, object]) -> None:
        weights = index["weight_map"]
        assert isinstance(weights, dict)
        weights["evil.weight"] = value

    edit_index(sharded(tmp_path), change)
    assert named(tmp_path) == [("index-path-escape", value)]


def test_tensor_missing(tmp_path: Path) -> None:
    """A tensor that the index promises and no shard has."""
    tensors = {n: t for n, t in SHARDS[SECOND].items() if n != "layers.2.weight"}
    write_shard(sharded(tmp_path) / SECOND, tensors)
    assert named(tmp_path) == [("tensor-missing", "layers.2.weight")]


def test_tensor_duplicate(tmp_path: Path) -> None:
    """A tensor in two indexed shards."""
    write_shard(sharded(tmp_path) / THIRD, {**SHARDS[THIRD], **tensors_of({"layers.1.weight": (4, 4)})})
    assert named(tmp_path) == [("tensor-duplicate", "layers.1.weight")]
    assert looked(tmp_path).tensors["layers.1.weight"].shard == SECOND


def test_tensor_unindexed(tmp_path: Path) -> None:
    """A tensor of an indexed shard that the index does not know."""
    write_shard(sharded(tmp_path) / THIRD, {**SHARDS[THIRD], **tensors_of({"extra.weight": (4,)})})
    assert named(tmp_path) == [("tensor-unindexed", "extra.weight")]


def test_tensor_misplaced(tmp_path: Path) -> None:
    """A tensor that stands in another shard than the index says."""

    def change(index: dict[str, object]) -> None:
        weights = index["weight_map"]
        assert isinstance(weights, dict)
        weights["layers.1.weight"] = THIRD

    edit_index(sharded(tmp_path), change)
    assert named(tmp_path) == [("tensor-misplaced", "layers.1.weight")]


def test_shard_stray(tmp_path: Path) -> None:
    """A safetensors file that the glob finds and the index does not name."""
    write_shard(sharded(tmp_path) / "old.safetensors", SHARDS[SECOND])
    assert named(tmp_path) == [("shard-stray", "old.safetensors")]
    assert "2 of its 2 tensors also stand in indexed shards" in looked(tmp_path).defects[0].found


@pytest.mark.parametrize("other", ["model-00001-of-00004.safetensors", "model.safetensors"])
def test_shard_sets_mixed(tmp_path: Path, other: str) -> None:
    """Two sets of shards in one directory are one defect."""
    write_shard(sharded(tmp_path) / other, SHARDS[FIRST])
    assert named(tmp_path) == [("shard-sets-mixed", "model")]


def test_total_size_mismatch(tmp_path: Path) -> None:
    """A metadata.total_size that is not the sum."""
    write_index(sharded(tmp_path), SHARDS, total_size=999)
    assert named(tmp_path) == [("total-size-mismatch", "model.safetensors.index.json")]


def test_index_refused_says_why(tmp_path: Path) -> None:
    """An index with text after its value is refused in the words of the strict reader."""
    path = sharded(tmp_path) / "model.safetensors.index.json"
    path.write_text(path.read_text() + "Requested range not satisfiable")
    found = looked(tmp_path)
    assert [(d.id, d.subject) for d in found.defects] == [("index-refused", path.name)]
    assert "json-" in found.defects[0].found


def test_index_without_a_map(tmp_path: Path) -> None:
    """An index that maps nothing is malformed, not empty."""
    (sharded(tmp_path) / "model.safetensors.index.json").write_text('{"metadata": {}}\n')
    assert named(tmp_path) == [("index-malformed", "model.safetensors.index.json")]


def test_pickles_are_named_and_not_opened(tmp_path: Path) -> None:
    """Pickle, GGUF and code beside the weights are listed; a FIFO among them cannot hang the reader."""
    sharded(tmp_path)
    for name in ("pytorch_model.bin", "mask_embedding.pt", "modeling_x.py"):
        (tmp_path / name).write_bytes(b"\x80\x04")
    os.mkfifo(tmp_path / "draft.gguf")
    found = looked(tmp_path)
    assert found.defects == ()
    assert found.others == ("draft.gguf", "mask_embedding.pt", "modeling_x.py", "pytorch_model.bin")


def test_no_weights_is_said(tmp_path: Path) -> None:
    """A directory without safetensors files is not an empty checkpoint."""
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    found = read_checkpoint(tmp_path)
    assert isinstance(found, NoWeights)
    assert "model.gguf" in found.reason
    (tmp_path / "drafter.json").write_text("{}")
    assert isinstance(read_checkpoint(tmp_path / "drafter.json"), NoWeights)


def test_nothing_there_could_not_look(tmp_path: Path) -> None:
    """A path that does not exist is an error of its own, never an empty checkpoint."""
    with pytest.raises(CouldNotLook):
        read_checkpoint(tmp_path / "absent")


def test_special_file_is_named(tmp_path: Path) -> None:
    """A FIFO under a shard's name is refused without waiting for a writer."""
    os.mkfifo(tmp_path / "model.safetensors")
    assert named(tmp_path) == [("shard-not-regular", "model.safetensors")]


def test_link_out_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    """A link to elsewhere is named; one to a sibling is followed; one to nothing is dangling."""
    outside = write_shard(tmp_path / "elsewhere" / "w.safetensors", SHARDS[FIRST])
    root = tmp_path / "model"
    write_shard(root / "real.bin2", SHARDS[FIRST])
    link = root / "model.safetensors"
    link.symlink_to(outside)
    assert named(root) == [("shard-link-outside", "model.safetensors")]
    link.unlink()
    link.symlink_to("real.bin2")
    assert (named(root), set(looked(root).tensors)) == ([], set(SHARDS[FIRST]))
    link.unlink()
    link.symlink_to("gone")
    assert named(root) == [("shard-link-dangling", "model.safetensors")]
    link.unlink()
    link.symlink_to("model.safetensors")
    assert named(root) == [("shard-link-dangling", "model.safetensors")]


def test_snapshot_is_followed_to_its_blob(tmp_path: Path) -> None:
    """A hub cache snapshot leads over one or two links to its bytes."""
    repo = tmp_path / "hub" / "models--a--b"
    shared = tmp_path / "hub" / "blobs" / "ab" / ("ab" + "0" * 62)
    write_shard(shared, SHARDS[FIRST])
    (repo / "blobs").mkdir(parents=True)
    (repo / "blobs" / ("1" * 64)).symlink_to(f"../../blobs/ab/{shared.name}")
    (repo / "blobs" / ("2" * 64)).write_bytes(shard_bytes(SHARDS[SECOND]))
    snapshot = repo / "snapshots" / ("c" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "a.safetensors").symlink_to("../../blobs/" + "1" * 64)
    (snapshot / "b.safetensors").symlink_to("../../blobs/" + "2" * 64)
    (tmp_path / "model").symlink_to(snapshot)
    assert set(looked(tmp_path / "model").tensors) == {*SHARDS[FIRST], *SHARDS[SECOND]}


def test_several_indexes(tmp_path: Path) -> None:
    """Two indexes in one directory are named, and the usual one is read."""
    index = (sharded(tmp_path) / "model.safetensors.index.json").read_text()
    (tmp_path / "other.safetensors.index.json").write_text(index)
    assert named(tmp_path) == [("index-several", "model.safetensors.index.json")]
    assert looked(tmp_path).index_name == "model.safetensors.index.json"


def test_a_shard_without_permission() -> None:
    """A shard that may not be opened is unreadable, not empty."""
    with tempfile.TemporaryDirectory() as folder:  # outside pytest's own, which only its user may enter
        root = Path(folder)
        root.chmod(0o755)
        write_shard(root / "model.safetensors", SHARDS[FIRST]).chmod(0)
        user = os.geteuid()
        os.seteuid(user or 65534)  # root may open anything, so root looks as nobody
        try:
            told = named(root)
        finally:
            os.seteuid(user)
    assert told == [("shard-unreadable", "model.safetensors")]


@pytest.mark.parametrize("given", ["n" * 300, "n" * 300 + ".safetensors", "loop"])
def test_no_path_is_more_than_could_not_look(given: str, tmp_path: Path) -> None:
    """A name too long, and links in a circle, are named like any other thing that is not there."""
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(CouldNotLook):
        read_checkpoint(tmp_path / given)


def test_a_directory_that_may_be_listed_and_not_entered() -> None:
    """Its names are seen, and every shard among them is named as unreadable."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_shard(root / "model.safetensors", tensors_of({"a": (1,)}))
        root.chmod(0o744)
        with without_privileges():
            listed = read_checkpoint(root)
        root.chmod(0o700)
    assert isinstance(listed, Checkpoint)
    assert [d.id for d in listed.defects] == ["shard-unreadable"]


def test_an_index_that_may_not_be_read_hides_no_shard() -> None:
    """The index is refused, with the system's reason; the shards beside it are looked at all the same."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        write_shard(root / "model.safetensors", tensors_of({"a": (1,)}))
        index = write_index(root, {"model.safetensors": tensors_of({"a": (1,)})})
        index.chmod(0)
        with without_privileges():
            read = read_checkpoint(root)
    assert isinstance(read, Checkpoint)
    assert [(d.id, "Permission denied" in d.found) for d in read.defects] == [("index-refused", True)]
    assert list(read.tensors) == ["a"]
