"""diagnosis.diagnose: what real shells, tools and full disks spoil is told by cause; the rest is unknown."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from draftproof.deploy.diagnosis.consult import consult, consult_below, consulted
from draftproof.deploy.diagnosis.diagnose import Cause
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.writing.expect import expect
from draftproof.deploy.writing.receipt import Receipt
from draftproof.findings.check import Report
from draftproof.host.local import LocalHost

OLD = b'{\n  "mask_token_id": 248064,\n  "note": "as it was"\n}\n'
INTENDED = (
    b'{\n  "$schema": "https://json.schemastore.org/x",\n  "mask_token_id": 248070,\n'
    b'  "note": "gr\xc3\xbcn `date` costs $5, a\\\\b",\n  "taps": [1, 16, 31, 46, 61]\n}\n'
)
Put = Callable[..., Receipt]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A directory with the old config, and the intended one beside it."""
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "config.json").write_bytes(OLD)
    (directory / "intended.txt").write_bytes(INTENDED)
    return directory


@pytest.fixture
def expected(model: Path, host: LocalHost, ledger: Ledger) -> Path:
    """The config, its new content announced in the ledger and not yet written."""
    path = model / "config.json"
    expect(host, Place("", str(path)), INTENDED, source="test", ledger=ledger)
    return path


def cause(path: Path, ledger: Ledger) -> str | None:
    """What the ledger makes of the file now; None for a file that is as meant."""
    finding = consult(path, ledger)
    return finding.cause if finding else None


def shell(program: str, script: str, cwd: Path) -> int:
    """Run a script given on standard input, as ssh would give it."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/root", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [program, "-s"], input=script.encode(), cwd=cwd, env=environment, capture_output=True, check=False
    )
    return done.returncode


TEXT = INTENDED.decode()
REAL = [
    (
        "first-command-eats-stdin",
        "bash",
        "cat >/dev/null\ncat > config.json <<'EOF'\n" + TEXT + "EOF\n",
        "never_took_effect",
    ),
    (
        "read-only-redirect-then-true",
        "bash",
        "cat intended.txt > /proc/nowhere/x; true\n",
        "never_took_effect",
    ),
    ("noclobber-from-rc", "bash", "set -C\ncat intended.txt > config.json\ntrue\n", "never_took_effect"),
    ("sed-without-match", "bash", "sed -i s/248065/248070/ config.json\n", "never_took_effect"),
    ("unquoted-heredoc-bash", "bash", "cat > config.json <<EOF\n" + TEXT + "EOF\n", "shell_expanded"),
    ("unquoted-heredoc-dash", "dash", "cat > config.json <<EOF\n" + TEXT + "EOF\n", "shell_expanded"),
    (
        "unquoted-heredoc-set",
        "bash",
        "schema=id\ncat > config.json <<EOF\n" + TEXT + "EOF\n",
        "shell_expanded",
    ),
    ("double-quoted-echo", "bash", 'echo "' + TEXT.rstrip() + '" > config.json\n', "shell_expanded"),
    ("dash-echo-escapes", "dash", "echo '" + TEXT.rstrip() + "' > config.json\n", "shell_expanded"),
    (
        "delimiter-with-blank",
        "bash",
        "cat > config.json <<'EOF'\n" + TEXT + "EOF \necho done\n",
        "heredoc_open",
    ),
    ("delimiter-indented", "bash", "cat > config.json <<'EOF'\n" + TEXT + "  EOF\nsync\n", "heredoc_open"),
    (
        "delimiter-missing",
        "bash",
        "cat > config.json <<'EOF'\n" + TEXT + "systemctl restart vllm\n",
        "heredoc_open",
    ),
    (
        "delimiter-open-and-expanded",
        "bash",
        "cat > config.json <<EOF\n" + TEXT + "EOF \necho done\n",
        "heredoc_open",
    ),
    (
        "script-with-crlf",
        "bash",
        "cat > config.json <<'EOF'\n" + TEXT.replace("\n", "\r\n") + "EOF\r\nls\r\n",
        "heredoc_open",
    ),
    ("head-c", "bash", "head -c 57 intended.txt > config.json\n", "cut_at"),
    ("stdin-from-null", "bash", "cat < /dev/null > config.json\n", "cut_at"),
    (
        "truncate-extends-with-zeros",
        "bash",
        "head -c 40 intended.txt > x; truncate -s 120 x; cat x > config.json\n",
        "zero_tail",
    ),
    ("unix2dos", "bash", "sed 's/$/\\r/' intended.txt > config.json\n", "newlines_or_bom"),
    ("old-mac", "bash", "tr '\\n' '\\r' < intended.txt > config.json\n", "newlines_or_bom"),
    ("final-newline-lost", "bash", 'printf %s "$(cat intended.txt)" > config.json\n', "newlines_or_bom"),
    ("bom", "bash", "{ printf '\\357\\273\\277'; cat intended.txt; } > config.json\n", "newlines_or_bom"),
    (
        "bom-and-crlf",
        "bash",
        "{ printf '\\357\\273\\277'; sed 's/$/\\r/' intended.txt; } > config.json\n",
        "newlines_or_bom",
    ),
    ("utf-16", "bash", "iconv -f UTF-8 -t UTF-16 intended.txt > config.json\n", "newlines_or_bom"),
    ("latin-1", "bash", "iconv -f UTF-8 -t ISO-8859-1 intended.txt > config.json\n", "newlines_or_bom"),
    ("encoded-twice", "bash", "iconv -f ISO-8859-1 -t UTF-8 intended.txt > config.json\n", "newlines_or_bom"),
    ("json-tool", "bash", "python3 -m json.tool --indent 4 intended.txt > config.json\n", "reformatted"),
    (
        "sorted-by-json-tool",
        "bash",
        "python3 -m json.tool --sort-keys intended.txt > config.json\n",
        "reformatted",
    ),
    ("one-value-changed", "bash", "sed s/248070/248071/ intended.txt > config.json\n", "unknown"),
    ("appended-to-the-old", "bash", "cat intended.txt >> config.json\n", "unknown"),
    (
        "http-error-appended",
        "bash",
        "{ cat intended.txt; printf 'Range Not Satisfiable'; } > config.json\n",
        "unknown",
    ),
    ("removed", "bash", "rm config.json\n", "unknown"),
    ("as-meant", "bash", "cat intended.txt > config.json\n", None),
]


@pytest.mark.parametrize(
    ("program", "script", "expected_cause"), [c[1:] for c in REAL], ids=[c[0] for c in REAL]
)
def test_real_corruptions_are_told(
    expected: Path, ledger: Ledger, program: str, script: str, expected_cause: str | None
) -> None:
    """Each way a shell or tool spoils a write is named; what none of them gives stays unknown."""
    shell(program, script, expected.parent)
    assert cause(expected, ledger) == expected_cause


def test_every_cause_is_among_the_real_cases_or_tested_below() -> None:
    """The table covers all but the two causes that need two writes."""
    assert {case[3] for case in REAL} - {None} == {c.value for c in Cause} - {"wrong_target", "reverted"}
    assert len(REAL) == 32


def test_swallowed_here_document_is_named_in_one_line(expected: Path, ledger: Ledger) -> None:
    """The case study: exit 0, the file as it was, and the finding says that the write never took effect."""
    script = "cat > /dev/null\ncat > config.json <<'EOF'\n" + TEXT + "EOF\n"
    assert shell("bash", script, expected.parent) == 0
    finding = consult(expected, ledger)
    assert finding is not None
    document = finding.as_dict()
    assert (document["id"], document["cause"], document["layer"]) == (
        "file-not-as-written",
        "never_took_effect",
        "BYTES",
    )
    assert "write never took effect (bytes equal the recorded pre-image)" in finding.means


def test_never_taken_and_reverted_differ_by_what_was_seen(
    expected: Path, ledger: Ledger, model: Path
) -> None:
    """The same old bytes: never took effect before the new ones were seen in place, reverted after."""
    assert cause(expected, ledger) == "never_took_effect"
    (model / "intended.txt").replace(expected)
    assert cause(expected, ledger) is None
    expected.write_bytes(OLD)
    assert cause(expected, ledger) == "reverted"


def test_older_content_after_verified_writes_is_reverted(put: Put, model: Path, ledger: Ledger) -> None:
    """Any content from before a verified write is a reversion, the pre-image of the first one included."""
    path = model / "config.json"
    put(path, b'{"n": 1}\n')
    put(path, b'{"n": 2}\n')
    for older in (OLD, b'{"n": 1}\n'):
        path.write_bytes(older)
        assert cause(path, ledger) == "reverted"
    path.unlink()
    assert cause(path, ledger) == "unknown"


def test_removed_file_is_reverted_where_there_was_none_before(put: Put, model: Path, ledger: Ledger) -> None:
    """Absence is an older state like any other."""
    path = model / "new.json"
    put(path, b'{"n": 1}\n')
    path.unlink()
    assert cause(path, ledger) == "reverted"


def test_content_meant_for_another_file_is_wrong_target(put: Put, expected: Path, ledger: Ledger) -> None:
    """The bytes of another place's write are recognised, and the place is named."""
    put(expected.with_name("generation_config.json"), b'{"eos": 1}\n')
    expected.write_bytes(b'{"eos": 1}\n')
    finding = consult(expected, ledger)
    assert finding is not None
    assert finding.cause == "wrong_target"
    assert "generation_config.json" in finding.means


def test_repeated_expectations_share_a_pre_image(expected: Path, host: LocalHost, ledger: Ledger) -> None:
    """A second try that does not take effect either is still never_took_effect."""
    expect(host, Place("", str(expected)), b'{"again": 1}\n', source="test", ledger=ledger)
    assert cause(expected, ledger) == "never_took_effect"


def test_a_directory_is_asked_about_as_a_whole(put: Put, expected: Path, ledger: Ledger) -> None:
    """Every file below a directory that the ledger knows is held against it; others are not mentioned."""
    put(expected.with_name("generation_config.json"), b'{"eos": 1}\n')
    expected.with_name("stranger.json").write_text("{}")
    findings = consult_below(expected.parent, ledger)
    assert [(finding.subject, finding.cause) for finding in findings] == [
        ("config.json", "never_took_effect")
    ]
    assert consult(expected.with_name("stranger.json"), ledger) is None


def test_a_report_gains_what_the_ledger_knows(expected: Path, ledger: Ledger, tmp_path: Path) -> None:
    """For a file and for its directory the finding joins the report; an unusable ledger is not silence."""
    for subject in (expected, expected.parent):
        report = consulted(Report((), ()), subject, ledger, is_ledger_named=False)
        assert [finding.cause for finding in report.findings] == ["never_took_effect"]
        assert report.exit_code == 1
    (tmp_path / "file").write_text("")
    for is_named, code in ((False, 0), (True, 3)):
        report = consulted(Report((), ()), expected, Ledger(tmp_path / "file"), is_ledger_named=is_named)
        assert [entry.check for entry in report.not_looked] == ["what the ledger says was meant to be here"]
        assert report.exit_code == code


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A memory file system with room for 64 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.root
def test_full_disk_leaves_a_cut_file(full_disk: Path, host: LocalHost, ledger: Ledger) -> None:
    """Onto a full file system: the file ends at the last whole page, and the place of the cut is told."""
    intended = json.dumps({"pad": ["x" * 60] * 2000}).encode()
    path = full_disk / "config.json"
    expect(host, Place("", str(path)), intended, source="test", ledger=ledger)
    with path.open("wb") as stream:
        subprocess.run(["cat"], input=intended, stdout=stream, stderr=subprocess.DEVNULL, check=False)
    finding = consult(path, ledger)
    assert finding is not None
    assert finding.cause == "cut_at"
    assert f"cut at byte {path.stat().st_size} of {len(intended)}" in finding.means
