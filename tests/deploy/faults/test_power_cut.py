"""The power cut right after a receipt: what was acknowledged at L3 is in the image, whole.

The image is what the block device had been given by then: the backing file copied, and mounted elsewhere.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.host.local import LocalHost
from loop_images import FILE_SYSTEMS, image_mounted, needs

pytestmark = [pytest.mark.root, pytest.mark.slow]
TOTALS = Path(os.environ.get("DRAFTPROOF_TOTALS", "/dev/null"))
CUTS = 6


def content(number: int) -> bytes:
    """The ``number``-th config."""
    return json.dumps({"number": number, "pad": "x" * 3000}).encode()


@pytest.mark.parametrize("file_system", FILE_SYSTEMS)
def test_what_was_acknowledged_survives(tmp_path: Path, file_system: str) -> None:
    """After each of six writes, the first a new file, the image holds the acknowledged bytes alone."""
    if needs(file_system):
        pytest.skip(f"{needs(file_system)} is not installed")
    image, host = tmp_path / "image", LocalHost(sys.executable)
    lost = 0
    with image_mounted(image, file_system, is_new=True) as place:
        (place / "model").mkdir()
        os.sync()
        target = place / "model" / "config.json"
        for number in range(CUTS):
            order = WriteOrder(Place("", str(target)), content(number), "test", level=Level.L3)
            receipt = verified_write(host, order, Ledger(tmp_path / "ledger"))
            assert receipt.level is Level.L3
            cut = tmp_path / f"cut{number}"
            shutil.copy(image, cut)
            lost += not survives(cut, file_system, content(number))
            cut.unlink()
    with TOTALS.open("a") as stream:
        stream.write(
            json.dumps({"suite": "S2 power cuts", "fault": file_system, "points": CUTS, "lost": lost}) + "\n"
        )
    assert lost == 0


@pytest.mark.parametrize("file_system", FILE_SYSTEMS)
def test_the_harness_can_fail(tmp_path: Path, file_system: str) -> None:
    """A file renamed into place without any sync is gone from the image, though every reader had seen it."""
    if needs(file_system):
        pytest.skip(f"{needs(file_system)} is not installed")
    image = tmp_path / "image"
    with image_mounted(image, file_system, is_new=True) as place:
        (place / "model").mkdir()
        os.sync()
        target = place / "model" / "config.json"
        target.with_name("new").write_bytes(content(0))
        target.with_name("new").replace(target)
        assert target.read_bytes() == content(0)
        shutil.copy(image, tmp_path / "cut")
    assert not survives(tmp_path / "cut", file_system, content(0))


def survives(image: Path, file_system: str, expected: bytes) -> bool:
    """Whether the recovered image holds the file, whole, and nothing beside it."""
    with image_mounted(image, file_system, is_new=False) as place:
        names = [path.name for path in (place / "model").iterdir()]
        return names == ["config.json"] and (place / "model" / "config.json").read_bytes() == expected
