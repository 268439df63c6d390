"""``draftproof explain``: every id in full, as text, as JSON, as the reference page."""

import json
from pathlib import Path

import pytest

from draftproof.cli.main import main
from draftproof.findings.catalogue import CATALOGUE
from draftproof.findings.failures import FAILURES

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("kind_id", sorted(CATALOGUE))
def test_every_id_is_explained(capsys: Capture, kind_id: str) -> None:
    """The text holds the title, the meaning and the next step of the id."""
    assert main(["explain", kind_id]) == 0
    output = capsys.readouterr().out
    kind = CATALOGUE[kind_id]
    assert kind.title in output
    assert kind.means in output
    assert kind.next in output


def test_json_is_one_object(capsys: Capture) -> None:
    """One id as JSON carries its severity, layer, effect and source."""
    assert main(["explain", "taps-conflict", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "draftproof.explain/1"
    assert document["id"] == "taps-conflict"
    assert document["effect"]["source"] == "vllm-project/vllm#40727"


def test_an_unknown_id_is_usage_with_the_nearest(capsys: Capture) -> None:
    """A slip is answered with what was meant, as one JSON object."""
    assert main(["explain", "mask-absnet", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert "mask-absent" in error["expected"]
    assert error["next"] == "draftproof explain mask-absent"


def test_without_an_id_all_are_listed(capsys: Capture) -> None:
    """The list holds every id once."""
    assert main(["explain"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == [*sorted(CATALOGUE), *sorted(FAILURES)]
    assert main(["explain", "--json"]) == 0
    assert {kind["id"] for kind in json.loads(capsys.readouterr().out)["kinds"]} == set(CATALOGUE)


def test_the_reference_page_is_what_is_printed(capsys: Capture) -> None:
    """--markdown prints docs/reference/findings.md as it stands."""
    assert main(["explain", "--markdown"]) == 0
    page = Path(__file__).parents[2] / "docs" / "reference" / "findings.md"
    assert capsys.readouterr().out == page.read_text("utf-8")


@pytest.mark.parametrize("failure_id", sorted(FAILURES))
def test_every_error_id_is_explained(capsys: Capture, failure_id: str) -> None:
    """An id that a command ended with has its exit status and meaning, as text and as JSON."""
    failure = FAILURES[failure_id]
    assert main(["explain", failure_id]) == 0
    output = capsys.readouterr().out
    assert failure.means in output
    assert f"exit {failure.exit_code}" in output
    assert main(["explain", failure_id, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exit"] == failure.exit_code
