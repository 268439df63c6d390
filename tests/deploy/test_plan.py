"""deploy.fleet.plan, .fleet, .verify: nothing of a plan is ignored, and each file's truth is its own."""

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from draftproof.deploy.fleet.fleet import each_file, worst
from draftproof.deploy.fleet.plan import PlannedFile, PlanRefused, parse_plan
from draftproof.deploy.fleet.verify import verify
from draftproof.deploy.ledger.ledger import Ledger
from draftproof.deploy.place import Place
from draftproof.deploy.proof.level import Level
from draftproof.deploy.writing.expect import expect
from draftproof.deploy.writing.receipt import Receipt
from draftproof.errors import CouldNotLook
from draftproof.host.local import LocalHost
from draftproof.host.protocol import Answer, CommandResult

NEW = b'{"taps": [1, 16]}\n'
Put = Callable[..., Receipt]
HERE = Path("/plans/plan.toml")

GOOD = """
level = "L3"
root = "/models"
hosts = ["gpu1", "user@gpu2"]
[[files]]
source = "config.json"
path = "/models/d/config.json"
[[files]]
source = "g.json"
path = "/models/d/g.json"
hosts = [""]
level = "L2"
expect_old = "absent"
"""


def test_a_plan_is_every_file_on_every_host() -> None:
    """Hosts and levels for all, unless a file says its own; sources lie beside the plan."""
    files = parse_plan(GOOD, HERE).files
    assert [str(file.place) for file in files] == [
        "gpu1:/models/d/config.json",
        "user@gpu2:/models/d/config.json",
        "/models/d/g.json",
    ]
    assert [file.level for file in files] == [Level.L3, Level.L3, Level.L2]
    assert [file.expected_old for file in files] == [None, None, "absent"]
    assert files[0].source == Path("/plans/config.json")
    assert {file.root for file in files} == {"/models"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no [[files]]"),
        ("level = ", "Invalid value"),
        (GOOD + 'mode = "0644"\n', "'mode' is no key of a plan"),
        ("colour = 1\n" + GOOD, "'colour' is no key of a plan"),
        (GOOD.replace('"L3"', '"L9"'), "level must be L0 to L7, is 'L9'"),
        (GOOD.replace('"/models/d/g.json"', '"d/g.json"'), "path must be absolute"),
        (GOOD.replace('source = "g.json"\n', ""), "source is missing"),
        (GOOD.replace('[""]', "[]"), "hosts is empty"),
        (GOOD.replace('[""]', '["-oProxyCommand=x"]'), "'-oProxyCommand=x' is no host"),
        (GOOD.replace('"absent"', '"abc"'), "expect_old must be a sha256"),
        (GOOD.replace('"L3"', '"L7"'), "L7 needs a port"),
        ("port = 70000\n" + GOOD, "70000 is no port"),
        (GOOD.replace('path = "/models/d/g.json"', "path = 7"), "path must be a str, is 7"),
        (GOOD + GOOD[GOOD.index("[[files]]") :], "two contents for gpu1:/models/d/config.json"),
    ],
)
def test_every_fault_of_a_plan_is_named(text: str, fault: str) -> None:
    """A key that is not known, a value that cannot be: nothing is guessed and nothing is done."""
    with pytest.raises(PlanRefused) as caught:
        parse_plan(text, HERE)
    assert fault in caught.value.found


def planned(name: str) -> PlannedFile:
    """A file of a plan by its name."""
    return PlannedFile(Place("", f"/{name}"), Path(name), "/", Level.L2, None)


def test_one_failure_hides_no_other_result() -> None:
    """Results come in the order of the plan, errors among them."""

    def work(file: PlannedFile) -> str:
        if "bad" in file.place.path:
            raise CouldNotLook("x", expected="", found="", where="", means="", next_step="")
        return file.place.path

    files = [planned("a"), planned("bad"), planned("c")]
    results = [told.result for told in each_file(files, work, jobs=2)]
    assert [results[0], results[2]] == ["/a", "/c"]
    assert isinstance(results[1], CouldNotLook)


def test_the_worst_status_wins() -> None:
    """Unknown, conflict, finding, could not look, fine: in this order."""
    assert [worst(codes) for codes in ([0, 3], [3, 1, 0], [1, 4], [4, 5], [0], [])] == [3, 1, 4, 5, 0, 0]


@dataclass(frozen=True)
class RestartedHost:
    """This machine as it would be after a restart: another boot id in every reply."""

    name: str = ""
    python: str = sys.executable

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", answer: Answer | None = None, timeout_s: float
    ) -> CommandResult:
        """Run here; the boot is another one."""
        result = LocalHost(self.python).run(argv, stdin=stdin, answer=answer, timeout_s=timeout_s)
        return replace(result, stdout=re.sub(rb'"boot_id": "....', b'"boot_id": "0000', result.stdout))

    def failure(self, result: CommandResult) -> CouldNotLook:
        """As LocalHost tells it."""
        return LocalHost(self.python).failure(result)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A free name in a directory of its own."""
    (tmp_path / "model").mkdir()
    return tmp_path / "model" / "config.json"


def test_a_write_read_again_after_a_restart_has_survived(put: Put, target: Path, ledger: Ledger) -> None:
    """L5 needs another boot and the very file of the receipt; before that it is the first not reached."""
    receipt = put(target, NEW, level=Level.L3)
    if not receipt.is_enough:
        pytest.skip(f"the tests' directory does not honour fsync: {receipt.evidence[3].how}")
    place = Place("", str(target))
    now = verify(LocalHost(sys.executable), place, NEW, ledger)
    assert now.level is Level.L4
    later = verify(RestartedHost(), place, NEW, ledger)
    assert later.level is Level.L5
    os.utime(target)
    touched = verify(RestartedHost(), place, NEW, ledger)
    assert (touched.level, touched.evidence[1].holds, touched.evidence[2].holds) == (Level.L0, False, True)


def test_somebody_elses_write_is_in_place_and_no_more(host: LocalHost, target: Path, ledger: Ledger) -> None:
    """Without a receipt of ours nobody knows how it was written: seen, at level L0."""
    expect(host, Place("", str(target)), NEW, source="test", ledger=ledger)
    missing = verify(host, Place("", str(target)), NEW, ledger)
    assert missing.diagnosis is not None
    assert missing.diagnosis.cause.value == "never_took_effect"
    target.write_bytes(NEW)
    verdict = verify(host, Place("", str(target)), NEW, ledger)
    assert (verdict.diagnosis, verdict.level) == (None, Level.L0)
    assert ledger.read().entries[-1].kind == "seen"


def test_a_directory_in_the_files_place_is_told(host: LocalHost, target: Path, ledger: Ledger) -> None:
    """What is no regular file is wrong, and not "absent"."""
    target.mkdir()
    verdict = verify(host, Place("", str(target)), NEW, ledger)
    assert verdict.diagnosis is not None
    assert "no regular file" in verdict.diagnosis.detail
