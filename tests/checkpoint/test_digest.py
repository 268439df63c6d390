"""checkpoint.digest: the digests of hashlib and blake3, in one pass, for any size and number of files."""

import hashlib
import os
from pathlib import Path

import blake3
import pytest

from draftproof.checkpoint.digest import default_algorithms, digest_files
from draftproof.errors import CouldNotLook, UsageError

MIB = 1 << 20


def test_digests_of_every_size(tmp_path: Path) -> None:
    """Empty, small, exactly one buffer, one byte more: sha256 and blake3 as their own libraries give them."""
    sizes = [0, 1, 4095, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 9 * MIB]
    paths = []
    for size in sizes:
        path = tmp_path / f"{size}.bin"
        path.write_bytes(os.urandom(size))
        paths.append(path)
    found = digest_files(paths)
    assert [d.path for d in found] == paths
    for digest, size in zip(found, sizes, strict=True):
        data = digest.path.read_bytes()
        expected = {"sha256": hashlib.sha256(data).hexdigest(), "blake3": blake3.blake3(data).hexdigest()}
        assert digest.digests == expected
        assert (digest.size_bytes, digest.is_stable) == (size, True)
    assert default_algorithms() == ("sha256", "blake3")


def test_progress_adds_up(tmp_path: Path) -> None:
    """The progress of several workers adds up to the bytes of all files."""
    paths = [tmp_path / f"{i}.bin" for i in range(5)]
    for path in paths:
        path.write_bytes(bytes(5 * MIB))
    counted: list[int] = []
    digest_files(paths, ["sha256"], counted.append, num_workers=3)
    assert sum(counted) == 25 * MIB


def test_a_file_that_grows_meanwhile_is_not_stable(tmp_path: Path) -> None:
    """A file that changes while it is read has no digest to rely on, and says so."""
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(9 * MIB))

    def grow(_count: int) -> None:
        with path.open("ab") as file:
            file.write(b"x")

    assert not digest_files([path], ["sha256"], grow)[0].is_stable


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    """A FIFO does not hang, a link is not followed, a missing file is said."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    for name in ("fifo", "link", "absent"):
        with pytest.raises(CouldNotLook):
            digest_files([tmp_path / name])


def test_an_unknown_algorithm_is_a_usage_error(tmp_path: Path) -> None:
    """md5 is not offered."""
    with pytest.raises(UsageError):
        digest_files([tmp_path], ["md5"])
    assert digest_files([]) == ()
