"""Every step of the protocol removed or altered in turn: each mutant breaks a promise the probe checks."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from totals import record

pytestmark = [pytest.mark.root, pytest.mark.slow]
SOURCE = Path(__file__).parents[3] / "src"
PROBE = Path(__file__).parents[2] / "promises" / "probe.py"


@dataclass(frozen=True)
class Mutant:
    """One edit of the product's text and the check that is expected to notice."""

    name: str
    module: str
    old: str
    new: str
    check: str


MUTANTS = [
    Mutant(**fields) for fields in json.loads(Path(__file__).with_name("mutants.json").read_text("utf-8"))
]
EQUIVALENT_ALONE = {
    "one sync more (the control)": "it does no harm",
    "no last look before the swap": "the exchange inspects what comes out; the look is a second net",
    "mtime and size instead of ctime and digest": "the exchange compares the digest of what comes out",
}
"""Edits that break no promise, with the reason; the probe must let them pass, and pairs below kill them."""

PAIRS = [
    ("no last look before the swap", "what came out not inspected"),
    ("mtime and size instead of ctime and digest", "what came out not inspected"),
]
PAIR_CHECK = "foreign_writer_before_the_order_is_a_conflict"


def mutated(directory: Path, *mutants: Mutant) -> Path:
    """A copy of the product's source with these edits; each must hit exactly one place."""
    shutil.copytree(
        SOURCE / "draftproof", directory / "draftproof", ignore=shutil.ignore_patterns("__pycache__")
    )
    for mutant in mutants:
        path = directory / "draftproof" / mutant.module
        text = path.read_text("utf-8")
        assert text.count(mutant.old) == 1, (
            f"{mutant.name}: {text.count(mutant.old)} places in {mutant.module}"
        )
        path.write_text(text.replace(mutant.old, mutant.new), "utf-8")
    return directory


def probed(source: Path, directory: Path, *names: str) -> tuple[int, str]:
    """Exit status and last line of the probe against the product at ``source``."""
    environment = {**os.environ, "PYTHONPATH": f"{source}:{PROBE.parents[1]}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-S", str(PROBE), str(directory), *names],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout.strip() or done.stderr.strip()[-300:]


def verdict(mutant: Mutant, directory: Path) -> tuple[Mutant, bool, str]:
    """Whether the mutant was noticed, and how: by its own check first, by any other if that one holds."""
    source = mutated(directory / "source", mutant)
    for names in ([mutant.check], []) if mutant.check else ([],):
        code, said = probed(source, directory / f"work{len(names)}", *names)
        if code:
            return mutant, True, said
    return mutant, False, "every check holds"


def test_the_product_itself_passes_the_probe(tmp_path: Path) -> None:
    """Without an edit every check holds; otherwise a kill below would mean nothing."""
    assert probed(mutated(tmp_path / "source"), tmp_path / "work") == (0, "25 checks hold")


def test_every_mutant_is_caught(tmp_path: Path) -> None:
    """Each removed or altered step breaks a promise; those that cannot alone are listed with the reason."""
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(lambda pair: verdict(pair[1], tmp_path / str(pair[0])), enumerate(MUTANTS)))
    survivors = {mutant.name for mutant, is_caught, _ in verdicts if not is_caught}
    counts = {"mutants": len(MUTANTS), "caught": len(MUTANTS) - len(survivors)}
    record("S11 mutants", "one step removed or altered", counts | {"equivalent": sorted(EQUIVALENT_ALONE)})
    assert survivors == set(EQUIVALENT_ALONE), [f"{m.name}: {said}" for m, _, said in verdicts]
    assert len(MUTANTS) == 57


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_two_nets_removed_together_are_caught(tmp_path: Path, one: str, other: str) -> None:
    """What is only a second net is noticed once the first is gone too."""
    by_name = {mutant.name: mutant for mutant in MUTANTS}
    source = mutated(tmp_path / "source", by_name[one], by_name[other])
    assert probed(source, tmp_path / "work", PAIR_CHECK)[0] == 1
