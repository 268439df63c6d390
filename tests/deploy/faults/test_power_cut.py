"""The power cut at random moments of many writes: what was acknowledged at L3 is in the image, whole.

The image is what the block device had been given by then: its backing file, on XFS, cloned at one moment, and
mounted once the writer has ended. The oracle is outside: which writes had begun, and which were acknowledged.
"""

import json
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.errors import CouldNotLook
from draftproof.host.local import LocalHost
from draftproof.host.protocol import Answer, CommandResult, Host
from loop_images import FILE_SYSTEMS, cut, image_mounted, needs
from loopback import running_sshd
from totals import record

pytestmark = [pytest.mark.root, pytest.mark.ssh, pytest.mark.slow]
IMAGES = {"python": 60, "shell": 20, "sftp": 20}
OUTER = 3 << 30
"""Bytes of the file system that holds the image and its clones, sparse."""


@dataclass(frozen=True)
class ShellHost:
    """This machine as if it had no Python: the writing and the reading are done by its shell."""

    name: str = ""
    python: str = "python3"

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", answer: Answer | None = None, timeout_s: float
    ) -> CommandResult:
        """Run, unless it is Python."""
        if argv[0] == self.python:
            return CommandResult(tuple(argv), 127, b"", b"not found")
        return LocalHost(sys.executable).run(argv, stdin=stdin, answer=answer, timeout_s=timeout_s)

    def failure(self, result: CommandResult) -> CouldNotLook:
        """As LocalHost tells it."""
        return LocalHost(self.python).failure(result)


@contextmanager
def writing_host(kind: str, directory: Path) -> Iterator[Host]:
    """The host that writes in this form."""
    if kind == "python":
        yield LocalHost(sys.executable)
    elif kind == "shell":
        yield ShellHost()
    else:
        pytest.importorskip("asyncssh")
        directory.mkdir()
        with running_sshd(directory) as server:
            yield server.host("sftp")


def content(number: int) -> bytes:
    """The ``number``-th config; 0 stands for no file yet."""
    return json.dumps({"number": number, "pad": "x" * 3000}).encode()


class Writer:
    """Writes one number after another; how far it has begun and how far it was acknowledged."""

    def __init__(self, put: Callable[[int], None]) -> None:
        """``put`` returns when its write is acknowledged."""
        self.put, self.begun, self.acknowledged, self.last_s = put, 0, 0, 0.0
        self.is_over, self.trouble = threading.Event(), ""

    def run(self) -> None:
        """Until told to stop, or a write is not acknowledged."""
        while not self.is_over.is_set():
            self.begun += 1
            started = time.monotonic()
            try:
                self.put(self.begun)
            except AssertionError as error:
                self.trouble = str(error) or "not acknowledged"
                return
            self.acknowledged, self.last_s = self.begun, time.monotonic() - started


def cut_often(writer: Writer, image: Path, number: int, seed: int) -> list[tuple[Path, int, int]]:
    """Clones of the image at any moment of a write, with what was acknowledged before and begun by then."""
    chance = random.Random(seed)  # noqa: S311 - a test's choice, repeatable
    thread = threading.Thread(target=writer.run)
    thread.start()
    while not writer.last_s and thread.is_alive():
        time.sleep(0.01)
    cuts = []
    try:
        for each in range(number):
            time.sleep(chance.random() * 1.2 * writer.last_s)
            acknowledged = writer.acknowledged
            copy = cut(image, image.with_name(f"cut{each}"))
            cuts.append((copy, acknowledged, writer.begun))
    finally:
        writer.is_over.set()
        thread.join()
    assert not writer.trouble, writer.trouble
    return cuts


def number_in(image: Path, file_system: str) -> int:
    """The number that the recovered image holds; 0 for no file, -1 for anything that no write put there."""
    with image_mounted(image, file_system, is_new=False) as place:
        target = place / "model" / "config.json"
        if not target.exists():
            return 0
        data = target.read_bytes()
    try:
        number: int = json.loads(data)["number"]
    except ValueError:
        return -1
    return number if data == content(number) else -1


@contextmanager
def image_ready(directory: Path, file_system: str) -> Iterator[tuple[Path, Path, ExitStack]]:
    """An image with an empty ``model`` directory, where it is mounted, and what unmounts it."""
    if needs(file_system) or needs("xfs"):
        pytest.skip(f"{needs(file_system) or needs('xfs')} is not installed")
    with image_mounted(directory / "outer", "xfs", is_new=True, size=OUTER) as outer, ExitStack() as inner:
        image = outer / "image"
        place = inner.enter_context(image_mounted(image, file_system, is_new=True))
        (place / "model").mkdir()
        os.sync()
        yield image, place, inner


@pytest.mark.parametrize("kind", IMAGES)
@pytest.mark.parametrize("file_system", FILE_SYSTEMS)
def test_what_was_acknowledged_survives(tmp_path: Path, file_system: str, kind: str) -> None:
    """Every image holds a whole config: the last acknowledged one, or one that had been begun since."""
    with (
        image_ready(tmp_path, file_system) as (image, place, inner),
        writing_host(kind, tmp_path / "sshd") as host,
    ):
        target = place / "model" / "config.json"

        def put(number: int) -> None:
            there = Place(host.name, str(target))
            order = WriteOrder(there, content(number), "test", level=Level.L3, patience_s=60)
            receipt = verified_write(host, order, Ledger(tmp_path / "ledger"))
            assert receipt.level >= Level.L3, receipt.evidence

        writer = Writer(put)
        cuts = cut_often(writer, image, IMAGES[kind], seed=len(file_system))
        inner.close()
        found = [(number_in(copy, file_system), low, high) for copy, low, high in cuts]
    lost = [each for each in found if not each[1] <= each[0] <= each[2]]
    counts = {"points": len(found), "writes": writer.acknowledged, "lost": len(lost)}
    record("S2 power cuts", f"{file_system}, written by {kind}", counts)
    assert not lost
    assert writer.acknowledged >= len(found) // 5, "hardly anything was written between the cuts"


@pytest.mark.parametrize("file_system", FILE_SYSTEMS)
def test_the_harness_can_fail(tmp_path: Path, file_system: str) -> None:
    """Files renamed into place without any sync are gone from the images, though readers had seen them."""
    with image_ready(tmp_path, file_system) as (image, place, inner):
        target = place / "model" / "config.json"

        def put(number: int) -> None:
            target.with_name("new").write_bytes(content(number))
            target.with_name("new").replace(target)
            assert target.read_bytes() == content(number)

        cuts = cut_often(Writer(put), image, 5, seed=1)
        inner.close()
        found = [(number_in(copy, file_system), low) for copy, low, _ in cuts]
    assert [number for number, low in found if number < low], found
