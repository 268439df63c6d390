"""host.calling over a real sshd: a host without Python is written to by its shell, and that is told."""

from pathlib import Path

import pytest

from draftproof.deploy.hosts import look
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.receipt import FileState
from draftproof.deploy.writing.refusals import Conflict
from draftproof.deploy.writing.write import WriteOrder, verified_write
from draftproof.errors import CouldNotLook
from draftproof.names import Sha256
from loopback import Sshd

pytestmark = [pytest.mark.ssh, pytest.mark.root]
OLD, NEW = b'{"taps": [1, 17]}\n', b'{"taps": [1, 16]}\n'


@pytest.fixture
def order(tmp_path: Path) -> WriteOrder:
    """A write to the host whose PATH has every program but Python."""
    path = tmp_path / "config.json"
    path.write_bytes(OLD)
    return WriteOrder(Place("bare", str(path)), NEW, "test", level=Level.L2)


def test_there_is_no_python_there(sshd: Sshd) -> None:
    """Otherwise the other tests here would test the usual way."""
    assert sshd.host("bare").run(["python3", "-c", ""], timeout_s=20).exit_code == 127


def test_a_verified_write_by_the_shell(sshd: Sshd, order: WriteOrder, ledger: Ledger) -> None:
    """New content, levels told, what a shell cannot know told, the pre-image ours."""
    receipt = verified_write(sshd.host("bare"), order, ledger)
    assert Path(order.place.path).read_bytes() == NEW
    assert (receipt.state, receipt.is_enough) == (FileState.NEW, True)
    assert any("python3 is not there" in note for note in receipt.notes)
    assert ledger.objects.fetch(receipt.old_sha256) == OLD
    assert ledger.read().entries[-1].facts["receipt"] == receipt.as_dict()


def test_another_content_is_a_conflict(sshd: Sshd, order: WriteOrder, ledger: Ledger) -> None:
    """Compare-and-swap holds there too."""
    wrong = WriteOrder(order.place, NEW, "test", expected_old=Sha256("0" * 64))
    with pytest.raises(Conflict):
        verified_write(sshd.host("bare"), wrong, ledger)
    assert Path(order.place.path).read_bytes() == OLD


def test_a_name_that_is_no_text_is_not_risked(sshd: Sshd, tmp_path: Path) -> None:
    """It could not come back whole through a shell and JSON; the missing interpreter is the answer."""
    with pytest.raises(CouldNotLook) as caught:
        look(sshd.host("bare"), Place("bare", f"{tmp_path}/a\nb"), nonce="ab" * 8)
    assert caught.value.id == "host-no-python"
