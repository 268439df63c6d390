"""deploy.remote_weights: a directory read by its headers from afar says what reading it here says."""

import base64
import json
import os
import shutil
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from checkpoint.bigdir import write_27b_drafter, write_27b_target
from checkpoint.build import Tensors, tensors_of, write_index, write_shard
from draftproof.checkpoint.ledger import Checkpoint, NoWeights, read_checkpoint
from draftproof.deploy.place import Place
from draftproof.deploy.remote_weights import read_remote_weights
from draftproof.host.local import LocalHost
from draftproof.host.program import fields_of, frames_of, request, shell_argv
from draftproof.host.protocol import Answer, CommandResult, Host

HOST = LocalHost(sys.executable)
A: Tensors = tensors_of({"layers.0.w": (8, 16), "layers.1.w": (8, 16)})
B: Tensors = tensors_of({"layers.2.w": (8, 16), "norm.weight": (16,)})
NAMES = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def clean(root: Path) -> None:
    """Two shards and their index."""
    for name, tensors in zip(NAMES, (A, B), strict=True):
        write_shard(root / name, tensors)
    write_index(root, dict(zip(NAMES, (A, B), strict=True)))


def cut(root: Path, size: int) -> None:
    """The first shard cut to ``size`` bytes, counted from its end where negative."""
    path = root / NAMES[0]
    os.truncate(path, size if size >= 0 else path.stat().st_size + size)


def pointer(root: Path) -> None:
    """A large-file pointer in the place of a shard."""
    text = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 9\n"
    (root / NAMES[0]).write_text(text)


def linked_out(root: Path) -> None:
    """A shard that is a link to another directory."""
    shutil.move(root / NAMES[0], root.parent / "elsewhere")
    (root / NAMES[0]).symlink_to(root.parent / "elsewhere")


def linked_beside(root: Path) -> None:
    """A shard that is a link to another name of its directory."""
    (root / NAMES[0]).rename(root / "blob")
    (root / NAMES[0]).symlink_to("blob")


def dangling(root: Path) -> None:
    """A link to nothing."""
    (root / NAMES[0]).unlink()
    (root / NAMES[0]).symlink_to("nothing")


def piped(root: Path) -> None:
    """A pipe that nobody writes to."""
    (root / NAMES[0]).unlink()
    os.mkfifo(root / NAMES[0])


FAULTS: dict[str, Callable[[Path], object]] = {
    "clean": lambda _: None,
    "one byte short": lambda root: cut(root, -1),
    "header cut": lambda root: cut(root, 40),
    "four bytes": lambda root: cut(root, 4),
    "empty": lambda root: cut(root, 0),
    "one byte more": lambda root: cut(root, (root / NAMES[0]).stat().st_size + 1),
    "no header but zeros": lambda root: (root / NAMES[0]).write_bytes(b"\0" * 5000),
    "a page": lambda root: (root / NAMES[0]).write_bytes(b"<!DOCTYPE html><html>" + b" " * 2000),
    "a pointer": pointer,
    "one gone": lambda root: (root / NAMES[0]).unlink(),
    "no index": lambda root: (root / "model.safetensors.index.json").unlink(),
    "index damaged": lambda root: (root / "model.safetensors.index.json").write_text("{"),
    "a stray one": lambda root: write_shard(root / "extra.safetensors", A),
    "a pickle": lambda root: (root / "pytorch_model.bin").write_bytes(b"\x80"),
    "a directory": lambda root: (root / "sub.safetensors").mkdir(),
    "linked out": linked_out,
    "linked beside": linked_beside,
    "dangling": dangling,
    "a pipe": piped,
}


@dataclass
class Pythonless:
    """This machine as if it had no Python."""

    name: str = ""
    python: str = "python3"

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", answer: Answer | None = None, timeout_s: float
    ) -> CommandResult:
        """The shell program, and of any other that it is not found."""
        if argv[0] == self.python:
            return CommandResult(tuple(argv), 127, b"", b"python3: not found")
        return HOST.run(argv, stdin=stdin, answer=answer, timeout_s=timeout_s)

    failure = HOST.failure


@pytest.mark.parametrize("host", [HOST, Pythonless()], ids=["python", "shell"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_same_as_here(tmp_path: Path, host: Host, fault: str) -> None:
    """Shards, tensors, side files and every defect, told of the place that was named."""
    root = tmp_path / "model"
    clean(root)
    FAULTS[fault](root)
    here, there = read_checkpoint(root), read_remote_weights(host, Place("gpu7", str(root)))
    assert isinstance(here, Checkpoint)
    assert isinstance(there, Checkpoint)
    assert there.root == Path(f"gpu7:{root}")
    assert not [d for d in there.defects if "draftproof-" in f"{d.where}{d.found}{d.expected}"]
    as_here = [
        replace(defect, where=defect.where.replace("gpu7:", ""), found=defect.found.replace("gpu7:", ""))
        for defect in there.defects
    ]
    assert as_here == list(here.defects)
    assert replace(there, root=here.root, defects=here.defects) == here
    assert bool(here.defects) != (fault in {"clean", "a pickle", "a directory", "linked beside"})


def test_a_hub_cache_is_followed(tmp_path: Path) -> None:
    """A snapshot's links to its blobs are files; one whose blob is gone is no shard."""
    blobs, snapshot = tmp_path / "models--a--b" / "blobs", tmp_path / "models--a--b" / "snapshots" / "1"
    clean(snapshot)
    blobs.mkdir()
    for number, path in enumerate(sorted(snapshot.iterdir())):
        path.rename(blobs / f"{number:040x}")
        path.symlink_to(f"../../blobs/{number:040x}")
    there = read_remote_weights(HOST, Place("gpu7", str(snapshot)))
    assert isinstance(there, Checkpoint)
    assert (there.defects, len(there.tensors)) == ((), 4)


def test_odd_names_by_a_shell(tmp_path: Path) -> None:
    """Names that a shell would mangle come whole; one with a control character is not guessed at."""
    root = tmp_path / "with 'quote' $HOME"
    clean(root)
    for name in ("-n.txt", "a b", ".hidden", "..two", 'q"uote', "back\\slash", "*"):
        (root / name).write_text("x")
    there, here = read_remote_weights(Pythonless(), Place("", str(root))), read_checkpoint(root)
    assert there == here
    (root / "line\nfeed").write_text("x")
    read = read_remote_weights(Pythonless(), Place("", str(root)))
    assert isinstance(read, NoWeights)
    assert "control character" in read.reason


def test_what_a_shell_cannot_list_is_told(tmp_path: Path) -> None:
    """No such directory; headers that together are more than is read at once."""
    read = read_remote_weights(Pythonless(), Place("", str(tmp_path / "no")))
    assert isinstance(read, NoWeights)
    assert "No such directory" in read.reason
    clean(tmp_path / "model")
    ask: dict[str, str | int] = {"nonce": "ab" * 8, "path": str(tmp_path / "model"), "room_bytes": 1500}
    result = HOST.run(shell_argv("headers", 20), stdin=request(ask), timeout_s=60)
    assert "larger than are read" in frames_of(result.stdout, "ab" * 8)["listing"]["error"]


def test_fifty_gigabytes_cost_their_headers(tmp_path: Path) -> None:
    """A 27B target of twelve shards and its drafter: every tensor, a frame of less than a megabyte."""
    for write, count in ((write_27b_target, 12), (write_27b_drafter, 1)):
        root = tmp_path / write.__name__
        write(root)
        host = Watched()
        there, here = read_remote_weights(host, Place("", str(root))), read_checkpoint(root)
        assert isinstance(there, Checkpoint)
        assert isinstance(here, Checkpoint)
        assert len(there.shards) == count
        assert there.tensors == here.tensors
        assert host.num_bytes < 1 << 20


@dataclass
class Watched:
    """This machine, the size of its replies counted; a reply of its own where one is given."""

    listing: dict[str, object] | None = None
    num_bytes: int = 0
    name: str = ""
    python: str = sys.executable

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", answer: Answer | None = None, timeout_s: float
    ) -> CommandResult:
        """Run here, or say what is to be said."""
        if self.listing is not None:
            line = f"{fields_of(stdin)['nonce']} listing {json.dumps(self.listing)}\n"
            return CommandResult(tuple(argv), 0, line.encode(), b"")
        result = HOST.run(argv, stdin=stdin, answer=answer, timeout_s=timeout_s)
        self.num_bytes += len(result.stdout)
        return result

    failure = HOST.failure


def member(**changes: object) -> dict[str, object]:
    """A shard as a machine may tell it."""
    head = base64.b64encode(zlib.compress(b"\0" * 2000)).decode()
    told = {"name": "a.safetensors", "kind": "file", "size": 2000, "real": "", "head": head, "error": ""}
    return {**told, "plain": None, **changes}


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "../a.safetensors"},
        {"name": "/a.safetensors"},
        {"name": ".."},
        {"name": ""},
        {"name": "a\0"},
        {"name": "x" * 300},
        {"size": -1},
        {"size": 1 << 60},
        {"head": "!"},
        {"head": base64.b64encode(b"no stream").decode()},
        {"plain": "!"},
        {"error": "Permission denied"},
    ],
)
def test_a_machine_that_lies_is_not_believed(changes: dict[str, object]) -> None:
    """A name that leads out, a length that no file has, a stream that is none: not looked at, and why."""
    listing: dict[str, object] = {"error": "", "members": [member(**changes)]}
    read = read_remote_weights(Watched(listing), Place("gpu7", "/models/d"))
    assert isinstance(read, NoWeights)
    assert read.reason.startswith("gpu7:/models/d: ")


def test_a_packed_bomb_is_cut(tmp_path: Path) -> None:
    """A head that unpacks to a gigabyte is not unpacked further than all heads together may be."""
    bomb = base64.b64encode(zlib.compress(b"\0" * (200 << 20), 9)).decode()
    listing: dict[str, object] = {"error": "", "members": [member(head=bomb, size=1000)]}
    read = read_remote_weights(Watched(listing), Place("gpu7", str(tmp_path)))
    assert isinstance(read, Checkpoint)
    assert read.unread == ("a.safetensors",)


def test_a_directory_that_cannot_be_listed_says_why(tmp_path: Path) -> None:
    """No such directory, and a machine without the interpreter."""
    gone = read_remote_weights(HOST, Place("gpu7", str(tmp_path / "none")))
    assert gone == NoWeights(f"gpu7:{tmp_path}/none: No such file or directory")
    read = read_remote_weights(LocalHost("/no/python"), Place("gpu7", str(tmp_path)))
    assert isinstance(read, NoWeights)
