"""The documents say what the product does: help, exit codes, ids and commands are compared, not trusted."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from draftproof.deploy.fleet.plan import read_plan
from draftproof.deploy.proof.level import CLAIMS

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])


def loaded(name: str) -> ModuleType:
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


PAGES_MADE: dict[Path, str] = loaded("generate").pages()


@pytest.mark.parametrize("path", sorted(PAGES_MADE), ids=lambda p: str(p.relative_to(ROOT)))
def test_generated_pages_are_current(path: Path) -> None:
    """What is generated from the product equals what is committed; `make docs` mends it."""
    assert path.read_text(encoding="utf-8") == PAGES_MADE[path]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page names a file of the repository."""
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_make_targets_exist(page: Path) -> None:
    """Every `make x` in the documents is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z]+)`|^make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert {a or b for a, b in named} <= targets


def test_the_two_commands_stand_on_the_first_screen() -> None:
    """A newcomer sees the proof and both commands without scrolling."""
    first_screen = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:45])
    assert "make demo" in first_screen
    assert "make test" in first_screen


def test_every_package_is_on_the_lifecycle_page() -> None:
    """The page that tells the story names every package of the tree."""
    story = (ROOT / "docs" / "explanation" / "lifecycle.md").read_text(encoding="utf-8")
    packages = {p.parent.name for p in (ROOT / "src" / "draftproof").glob("*/__init__.py")}
    assert packages
    assert not {name for name in packages if f"`{name}`" not in story}


def test_the_reliability_page_counts_the_suites_as_they_are() -> None:
    """The tests behind every row of the page are those collected today; `make docs` measures anew."""
    script = [sys.executable, str(ROOT / "docs" / "reliability.py"), "--count"]
    counts = json.loads(subprocess.run(script, capture_output=True, text=True, check=True).stdout)
    page = (ROOT / "docs" / "reference" / "reliability.md").read_text(encoding="utf-8")
    tables = re.findall(r"(?m)^\|.*\| tests \|\n\|[-:|]+\|\n((?:\|.*\n)+)", page)
    rows = re.findall(r"(?m)^\| ([^|*]+) \|.*\| (\d+) \|$", "".join(tables))
    assert {what: int(tests) for what, tests in rows} == {what: sum(n) for what, n in counts.items()}
    assert page.endswith(loaded("reliability_writes").section(counts)), "python docs/reliability.py --writes"


def test_the_levels_of_the_guide_are_those_of_the_product() -> None:
    """The guide's table claims for each level what a receipt claims."""
    guide = (ROOT / "docs" / "howto" / "place-a-file.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| (L\d) \| (.+?)(?: \(`--pid`, `--port`\))? \|$", guide, re.MULTILINE))
    assert told == {level.name: claim for level, claim in CLAIMS.items()}


def test_the_plan_of_the_guide_is_a_plan(tmp_path: Path) -> None:
    """The example plan is read as it stands."""
    guide = (ROOT / "docs" / "howto" / "place-a-file.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "plan.toml").write_text(example, encoding="utf-8")
    assert [file.level.name for file in read_plan(tmp_path / "plan.toml").files] == ["L3"]
