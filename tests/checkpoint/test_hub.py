"""checkpoint.hub: a cache or download folder proves offline what it holds, and each fault has a name."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from checkpoint.build import shard_bytes, tensors_of
from draftproof.checkpoint.hub.cache import read_hub
from draftproof.checkpoint.hub.layout import find_snapshot, resolve
from draftproof.checkpoint.ledger import Checkpoint, read_checkpoint
from draftproof.errors import CouldNotLook

OLD, NEW = "a" * 40, "b" * 40
CONFIG = b'{\n  "block_size": 16\n}\n'
WEIGHTS = shard_bytes(tensors_of({"fc.weight": (8, 4)}))


def git_sha1(data: bytes) -> str:
    """What git itself names these bytes."""
    command = ["git", "hash-object", "--stdin"]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout.decode().strip()


def cache(root: Path, revision: str = NEW, *, config: bytes = CONFIG) -> Path:
    """A cache with one snapshot of a config and a shard; the snapshot."""
    repo = root / "models--org--drafter"
    snapshot = repo / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (repo / "blobs").mkdir(exist_ok=True)
    (repo / "refs").mkdir(exist_ok=True)
    (repo / "refs" / "main").write_text(revision)
    names = {
        "config.json": (git_sha1(config), config),
        "model.safetensors": (hashlib.sha256(WEIGHTS).hexdigest(), WEIGHTS),
    }
    for name, (etag, data) in names.items():
        (repo / "blobs" / etag).write_bytes(data)
        (snapshot / name).symlink_to(f"../../blobs/{etag}")
    return snapshot


def told(root: Path) -> list[tuple[str, str]]:
    """Id and subject of every defect of the hub reader."""
    return [(d.id, d.subject) for d in read_hub(root).defects]


def test_a_clean_cache_proves_every_file(tmp_path: Path) -> None:
    """A config is proven by git's own digest, a shard by sha256, whatever path leads to the snapshot."""
    snapshot = cache(tmp_path)
    (tmp_path / "alias").symlink_to(snapshot)
    for root in (snapshot, tmp_path / "alias"):
        report = read_hub(root)
        assert report.defects == ()
        assert report.not_proven == ()
        assert {(p.name, p.algorithm) for p in report.proven} == {
            ("config.json", "git-sha1"),
            ("model.safetensors", "sha256"),
        }
        assert report.snapshot is not None
        assert (report.snapshot.name, report.snapshot.revision) == ("org/drafter", NEW)


def test_a_config_edited_through_its_link(tmp_path: Path) -> None:
    """Writing through the snapshot's link changes the blob: it is no longer what its name says."""
    snapshot = cache(tmp_path)
    (snapshot / "config.json").write_bytes(CONFIG.replace(b"16", b"15"))
    report = read_hub(snapshot)
    assert [(d.id, d.subject) for d in report.defects] == [("hub-blob-edited", "config.json")]
    assert report.defects[0].expected.endswith(git_sha1(CONFIG))
    assert git_sha1(CONFIG.replace(b"16", b"15")) in report.defects[0].found


def test_a_flipped_bit_in_a_shard(tmp_path: Path) -> None:
    """A shard of the right size with one bit flipped is not what was downloaded."""
    snapshot = cache(tmp_path)
    path = (snapshot / "model.safetensors").resolve()
    path.write_bytes(WEIGHTS[:-1] + bytes([WEIGHTS[-1] ^ 1]))
    assert told(snapshot) == [("hub-blob-edited", "model.safetensors")]


def test_sed_replaces_the_link(tmp_path: Path) -> None:
    """Sed -i leaves a regular file where the link was, and the blob as it was."""
    snapshot = cache(tmp_path)
    subprocess.run(["sed", "-i", "s/16/15/", str(snapshot / "config.json")], check=True)
    assert told(snapshot) == [("hub-file-not-link", "config.json")]


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_dangling_link(tmp_path: Path, name: str) -> None:
    """A link whose blob is gone."""
    snapshot = cache(tmp_path)
    (snapshot / name).resolve().unlink()
    assert told(snapshot) == [("hub-link-dangling", name)]


def test_a_dangling_shard_is_told_by_the_cache_alone(tmp_path: Path) -> None:
    """The ledger leaves a cache's dangling link to the hub reader and only says that it is not read."""
    snapshot = cache(tmp_path)
    (snapshot / "model.safetensors").resolve().unlink()
    found = read_checkpoint(snapshot)
    assert isinstance(found, Checkpoint)
    assert (found.defects, found.unread) == ((), ("model.safetensors",))


def test_an_unfinished_download(tmp_path: Path) -> None:
    """An .incomplete blob is named."""
    snapshot = cache(tmp_path)
    (snapshot.parent.parent / "blobs" / ("c" * 64 + ".0a1b2c3d.incomplete")).write_bytes(b"half")
    assert told(snapshot) == [("hub-incomplete", "blobs")]


def test_an_old_snapshot(tmp_path: Path) -> None:
    """refs/main that names another snapshot is told, and files of both are told as shared."""
    old = cache(tmp_path, OLD, config=b"{}\n")
    cache(tmp_path, NEW)
    assert told(old) == [("hub-ref-mismatch", "refs/main"), ("hub-blob-shared", "model.safetensors")]
    report = read_hub(old)
    assert (report.defects[0].expected, report.defects[0].found) == (OLD, NEW)
    assert "of 2 snapshots" in report.defects[1].found


def test_the_shared_store_of_two_repositories(tmp_path: Path) -> None:
    """A blob that is a link into the shared store is proven by its own name, not by the store's."""
    snapshot = cache(tmp_path)
    blob = snapshot.parent.parent / "blobs" / hashlib.sha256(WEIGHTS).hexdigest()
    store = tmp_path / "blobs" / "0f" / ("0f" * 32)
    store.parent.mkdir(parents=True)
    blob.rename(store)
    blob.symlink_to(f"../../blobs/0f/{store.name}")
    assert read_hub(snapshot).defects == ()
    assert {p.name for p in read_hub(snapshot).proven} == {"config.json", "model.safetensors"}
    store.write_bytes(WEIGHTS[:-1] + b"\0")
    assert told(snapshot) == [("hub-blob-edited", "model.safetensors")]


def test_large_blobs_are_hashed_when_asked(tmp_path: Path) -> None:
    """A shard above 16 MiB is not proven unless digests are wanted, and that is said."""
    snapshot = cache(tmp_path)
    (snapshot / "model.safetensors").unlink()
    data = bytes(1 << 20) * 17
    blob = snapshot.parent.parent / "blobs" / hashlib.sha256(data).hexdigest()
    blob.write_bytes(data)
    (snapshot / "model.safetensors").symlink_to(f"../../blobs/{blob.name}")
    assert any(r.startswith("model.safetensors: ") for r in read_hub(snapshot).not_proven)
    report = read_hub(snapshot, with_weights=True)
    assert (report.not_proven, report.defects, len(report.proven)) == ((), (), 2)
    blob.write_bytes(data[:-1] + b"\1")
    found = read_hub(snapshot, with_weights=True).defects
    assert [(d.id, d.subject) for d in found] == [("hub-blob-edited", "model.safetensors")]


def local_dir(root: Path, commits: dict[str, str]) -> Path:
    """A download folder whose records name a commit for each file."""
    records = root / ".cache" / "huggingface" / "download"
    records.mkdir(parents=True)
    for name, data in (("config.json", CONFIG), ("model.safetensors", WEIGHTS)):
        (root / name).write_bytes(data)
        etag = git_sha1(data) if name.endswith("json") else hashlib.sha256(data).hexdigest()
        (records / f"{name}.metadata").write_text(f"{commits[name]}\n{etag}\n1764547200.0\n")
    return root


def test_a_download_folder_of_one_revision(tmp_path: Path) -> None:
    """A clean local_dir has no defect and proves its files by their records."""
    root = local_dir(tmp_path / "model", {"config.json": NEW, "model.safetensors": NEW})
    report = read_hub(root)
    assert (report.defects, report.snapshot) == ((), None)
    assert {p.name for p in report.proven} == {"config.json", "model.safetensors"}


def test_a_download_folder_of_two_revisions(tmp_path: Path) -> None:
    """A config of one commit beside weights of another."""
    root = local_dir(tmp_path / "model", {"config.json": OLD, "model.safetensors": NEW})
    report = read_hub(root)
    assert [(d.id, d.subject) for d in report.defects] == [("hub-mixed-revisions", "model")]
    assert f"{OLD}: config.json; {NEW}: model.safetensors" == report.defects[0].found


def test_a_download_folder_edited(tmp_path: Path) -> None:
    """A config changed after hf download --local-dir no longer has the digest of its record."""
    root = local_dir(tmp_path / "model", {"config.json": NEW, "model.safetensors": NEW})
    (root / "config.json").write_bytes(b"{}\n")
    assert told(root) == [("hub-blob-edited", "config.json")]


def test_hard_links_are_noted(tmp_path: Path) -> None:
    """A file with a second name can be changed through it."""
    (tmp_path / "config.json").write_bytes(CONFIG)
    assert told(tmp_path) == []
    os.link(tmp_path / "config.json", tmp_path.parent / f"{tmp_path.name}-other.json")
    assert told(tmp_path) == [("hard-linked", "config.json")]


def test_a_repository_folder_stands_for_its_main_snapshot(tmp_path: Path) -> None:
    """The folder models--org--name resolves by refs/main; without the snapshot it could not look."""
    snapshot = cache(tmp_path)
    repo = snapshot.parent.parent
    assert resolve(repo) == snapshot
    assert resolve(snapshot) == snapshot
    assert resolve(tmp_path) == tmp_path
    assert find_snapshot(tmp_path) is None
    (repo / "refs" / "main").write_text(OLD)
    with pytest.raises(CouldNotLook, match="snapshot"):
        resolve(repo)
    (repo / "refs" / "main").unlink()
    assert resolve(repo) == snapshot
