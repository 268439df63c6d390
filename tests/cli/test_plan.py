"""cli.plan, cli.apply, cli.verify: a plan recorded, carried out, read again, each file for itself."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from draftproof.cli.main import main

OLD, NEW = '{"taps": [1, 17]}\n', '{"taps": [1, 16]}\n'
Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan for three files: one to be replaced, one new, one whose directory does not exist."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(OLD)
    (tmp_path / "new.json").write_text(NEW)
    entries = [model / "config.json", model / "generation_config.json", tmp_path / "none" / "config.json"]
    path = tmp_path / "plan.toml"
    path.write_text("".join(f'[[files]]\nsource = "new.json"\npath = "{entry}"\n' for entry in entries))
    return path


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """A verb over the plan with --json: exit status and object."""

    def call(verb: str, *argv: object) -> tuple[int, dict[str, Any]]:
        code = main([verb, *map(str, argv), "--ledger", str(tmp_path / "ledger"), "--json"])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, document

    return call


def test_plan_records_and_shows_what_would_change(run: Run, plan: Path, tmp_path: Path) -> None:
    """Two files would change, one cannot be looked at; the two are in the ledger as expected."""
    code, document = run("plan", plan)
    replaced, created, failed = document["files"]
    assert (code, document["schema"]) == (1, "draftproof.plan/1")
    assert (replaced["would"], created["would"]) == ("replace", "create")
    assert failed["error"]["id"] == "write-parent-missing"
    assert [entry["kind"] for entry in run("history")[1]["entries"]] == ["expect", "expect"]
    assert (tmp_path / "model" / "config.json").read_text() == OLD


def test_apply_writes_what_it_can_and_tells_the_rest(run: Run, plan: Path, tmp_path: Path) -> None:
    """Two receipts and one error; the exit status is the error's."""
    code, document = run("apply", plan)
    assert code == 3
    assert [file["state"] for file in document["files"][:2]] == ["new", "new"]
    assert document["files"][2]["error"]["exit"] == 3
    assert (tmp_path / "model" / "generation_config.json").read_text() == NEW


def test_apply_can_be_rehearsed(run: Run, plan: Path, tmp_path: Path) -> None:
    """--dry-run changes no file and records nothing."""
    document = run("apply", plan, "--dry-run")[1]
    assert document["files"][0]["schema"] == "draftproof.rehearsal/1"
    assert (tmp_path / "model" / "config.json").read_text() == OLD
    assert run("history")[1]["num_lines"] == 0


def test_verify_names_the_cause_of_each_wrong_file(run: Run, plan: Path, tmp_path: Path) -> None:
    """Planned and not written: never took effect; applied: in place; changed back: reverted."""
    run("plan", plan)
    code, document = run("verify", plan)
    assert code == 1
    assert [file["cause"] for file in document["files"]] == [
        "never_took_effect",
        "never_took_effect",
        "unknown",
    ]
    run("apply", plan)
    document = run("verify", plan)[1]
    assert [file["is_in_place"] for file in document["files"]] == [True, True, False]
    (tmp_path / "model" / "config.json").write_text(OLD)
    assert run("verify", plan)[1]["files"][0]["cause"] == "reverted"


def test_everything_in_place_is_exit_zero(run: Run, plan: Path, tmp_path: Path) -> None:
    """Plan has nothing to change, verify nothing to tell."""
    (tmp_path / "none").mkdir()
    assert run("apply", plan)[0] == 0
    assert run("verify", plan)[0] == 0
    assert run("plan", plan)[0] == 0


def test_a_plan_that_is_none_does_nothing(run: Run, tmp_path: Path) -> None:
    """An unknown key is exit 1, a missing plan or source 3, a wrong option 2."""
    path = tmp_path / "plan.toml"
    path.write_text('[[files]]\nsource = "x.json"\npath = "/x"\nmode = 1\n')
    assert run("apply", path)[1]["error"]["id"] == "plan-refused"
    path.write_text('[[files]]\nsource = "x.json"\npath = "/x"\n')
    assert run("apply", path)[0] == 3
    assert run("verify", tmp_path / "none.toml")[0] == 3
    (tmp_path / "x.json").write_text(NEW)
    assert run("verify", path, "--jobs", "0")[0] == 2


def test_text_tells_the_same(plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """People see one line a file, with its level or its cause."""
    ledger = ["--ledger", str(tmp_path / "ledger")]
    main(["plan", str(plan), *ledger])
    main(["verify", str(plan), *ledger])
    main(["apply", str(plan), *ledger])
    main(["verify", str(plan), *ledger])
    text = capsys.readouterr().out
    for words in ("would replace", "never_took_effect: write never took effect", "in place, L"):
        assert words in text


def test_what_is_in_place_is_not_written_again(run: Run, plan: Path, tmp_path: Path) -> None:
    """A second apply leaves the very inodes and writes no entry; --rewrite writes them anew."""
    (tmp_path / "none").mkdir()
    run("apply", plan)
    target = tmp_path / "model" / "config.json"
    before, lines = target.stat(), run("history")[1]["num_lines"]
    code, document = run("apply", plan)
    assert (code, [file["is_in_place"] for file in document["files"]]) == (0, [True, True, True])
    assert (target.stat().st_ino, run("history")[1]["num_lines"]) == (before.st_ino, lines)
    code, document = run("apply", plan, "--rewrite")
    assert code == 0
    assert target.stat().st_ino != before.st_ino
    assert [file["schema"] for file in document["files"]] == ["draftproof.receipt/1"] * 3


def test_a_level_that_no_receipt_shows_is_earned_by_writing(run: Run, plan: Path, tmp_path: Path) -> None:
    """Somebody else's copy is in place at L2; that it is durable is known once we have written it."""
    (tmp_path / "none").mkdir()
    for name in ("model", "other", "none"):
        if (tmp_path / name).is_dir():
            (tmp_path / name / "config.json").write_text(NEW)
    seen = run("apply", plan)[1]["files"][0]
    assert (seen["is_in_place"], seen["level"]) == (True, "L0")
    plan.write_text('level = "L3"\n' + plan.read_text())
    assert run("apply", plan)[1]["files"][0]["schema"] == "draftproof.receipt/1"


def test_every_entry_of_the_ledger_has_its_place_in_the_history(run: Run, plan: Path) -> None:
    """Numbers that the list of intents skips are those of receipts and sightings: named beside them."""
    run("plan", plan)
    run("apply", plan)
    document = run("history")[1]
    numbers = [n for e in document["entries"] for n in (e["ledger_entry"], *e["outcome_entries"])]
    assert sorted(numbers) == list(range(1, document["num_lines"] + 1))
