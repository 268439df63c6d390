"""diagnosis.consult: a file is known whatever way it is spelt; no file hides another; nothing is created."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from draftproof.deploy.diagnosis.consult import consult, consulted
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.sight import sight_of
from draftproof.deploy.writing.expect import expect
from draftproof.deploy.writing.receipt import Receipt
from draftproof.errors import CouldNotLook
from draftproof.findings.check import Report
from draftproof.host.local import LocalHost

OLD, NEW = b'{"n": 1}\n', b'{"n": 2}\n'
Put = Callable[..., Receipt]


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    """A directory with a config, and a link to it under another name."""
    directory = tmp_path / "real" / "drafter"
    directory.mkdir(parents=True)
    (directory / "config.json").write_bytes(OLD)
    (tmp_path / "link").symlink_to("real", target_is_directory=True)
    return directory


def announce(path: Path | str, host: LocalHost, ledger: Ledger, content: bytes = NEW) -> None:
    """Record an expectation for a path as spelt."""
    expect(host, Place("", str(path)), content, source="test", ledger=ledger)


def causes(subject: Path | str, ledger: Ledger) -> list[str | None]:
    """The causes that a check of ``subject`` gains."""
    report = consulted(Report((), ()), Path(subject), ledger, is_ledger_named=True)
    assert report.not_looked == ()
    return [finding.cause for finding in report.findings]


SPELT = ["real/drafter", "link/drafter", "real/drafter/", "real/../link/drafter"]


@pytest.mark.parametrize("spelt", [*SPELT, *(f"{folder}/config.json" for folder in SPELT)])
@pytest.mark.parametrize("recorded", ["real/drafter", "link/drafter"])
def test_one_file_under_any_spelling(
    spelt: str, recorded: str, drafter: Path, host: LocalHost, ledger: Ledger
) -> None:
    """Recorded through a link or not, checked through a link or not, as directory or file: it is found."""
    tmp_path = drafter.parents[1]
    announce(tmp_path / recorded / "config.json", host, ledger)
    assert causes(f"{tmp_path}/{spelt}", ledger) == ["never_took_effect"]


def test_relative_subject(
    drafter: Path, host: LocalHost, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From inside the directory, the bare name and the dot are the same file."""
    announce(drafter / "config.json", host, ledger)
    monkeypatch.chdir(drafter)
    for subject in ("config.json", ".", "./config.json"):
        assert causes(subject, ledger) == ["never_took_effect"]


def test_two_spellings_are_one_history(drafter: Path, put: Put, host: LocalHost, ledger: Ledger) -> None:
    """Announced under one name and written under another: the last word counts, and there is one finding."""
    announce(drafter.parents[1] / "link" / "drafter" / "config.json", host, ledger, b'{"n": 3}\n')
    put(drafter / "config.json", NEW)
    assert causes(drafter, ledger) == []
    (drafter / "config.json").write_bytes(OLD)
    assert causes(drafter, ledger) == ["reverted"]


def test_a_file_in_a_hub_snapshot(tmp_path: Path, host: LocalHost, ledger: Ledger) -> None:
    """A link that is the file's name there is followed for its content, not for its place."""
    snapshot, blob = tmp_path / "snapshots" / "a", tmp_path / "blobs" / "b"
    snapshot.mkdir(parents=True)
    blob.parent.mkdir()
    blob.write_bytes(OLD)
    (snapshot / "config.json").symlink_to(blob)
    announce(snapshot / "config.json", host, ledger)
    for subject in (snapshot, snapshot / "config.json", blob):
        assert causes(subject, ledger) == ["never_took_effect"]
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").write_bytes(NEW)
    assert causes(snapshot, ledger) == []


def test_a_directory_that_is_gone(drafter: Path, put: Put, ledger: Ledger) -> None:
    """The files that were written below a directory are missed where the directory itself is missing."""
    put(drafter / "new.json", NEW)
    (drafter / "new.json").unlink()
    (drafter / "config.json").unlink()
    drafter.rmdir()
    assert causes(drafter, ledger) == ["reverted"]


def test_what_is_no_file_is_not_waited_for(drafter: Path, host: LocalHost, ledger: Ledger) -> None:
    """A pipe or a directory in the file's place is told at once, as unknown."""
    path = drafter / "config.json"
    announce(path, host, ledger)
    path.unlink()
    os.mkfifo(path)
    assert causes(drafter, ledger) == ["unknown"]
    path.unlink()
    path.mkdir()
    finding = consult(path, ledger)
    assert finding is not None
    assert finding.found == "no regular file but a directory"


def test_a_large_file_is_judged_by_digest(
    drafter: Path, host: LocalHost, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit the bytes are not kept, but a digest that the ledger knows still tells."""
    announce(drafter / "config.json", host, ledger)
    monkeypatch.setattr("draftproof.deploy.sight.KEEP_BYTES", 4)
    assert sight_of(str(drafter / "config.json")).data is None
    assert causes(drafter, ledger) == ["never_took_effect"]
    (drafter / "config.json").write_bytes(NEW[:-2])
    assert causes(drafter, ledger) == ["unknown"]


def test_one_unreadable_content_hides_no_other(drafter: Path, host: LocalHost, ledger: Ledger) -> None:
    """A content lost from the ledger is "not looked" for its file; the next file is still told."""
    announce(drafter / "config.json", host, ledger)
    announce(drafter / "other.json", host, ledger, b'{"other": 1}\n')
    for kept in (ledger.directory / "objects").rglob("*"):
        if kept.is_file() and kept.read_bytes() == NEW:
            kept.unlink()
    report = consulted(Report((), ()), drafter, ledger, is_ledger_named=True)
    assert [finding.subject for finding in report.findings] == ["other.json"]
    (lack,) = report.not_looked
    assert str(drafter / "config.json") in lack.check


def test_nothing_is_created_by_looking(drafter: Path, tmp_path: Path) -> None:
    """A ledger that does not exist stays so: silent as the default, not looked at where it was named."""
    absent = Ledger(tmp_path / "none" / "ledger")
    report = consulted(Report((), ()), drafter, absent, is_ledger_named=False)
    assert (report.findings, report.not_looked, report.exit_code) == ((), (), 0)
    named = consulted(Report((), ()), drafter, absent, is_ledger_named=True)
    assert (len(named.not_looked), named.exit_code) == (1, 3)
    assert not (tmp_path / "none").exists()


def test_a_ledger_of_other_files_says_nothing(drafter: Path, put: Put, ledger: Ledger) -> None:
    """A ledger that knows nothing about the subject is no gap in the check."""
    put(drafter.parent / "config.json", NEW)
    assert causes(drafter, ledger) == []


def test_a_path_that_cannot_be_one(drafter: Path, put: Put, ledger: Ledger) -> None:
    """A NUL in a name is no traceback."""
    put(drafter / "config.json", NEW)
    assert causes("a\0b", ledger) == []
    with pytest.raises(CouldNotLook):
        sight_of("a\0b")
