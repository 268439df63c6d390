"""The tree is a building: a package imports only from floors below its own, and one wing has no torch."""

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
PACKAGE = "draftproof"
FLOORS = (
    {"errors", "names", "printable"},
    {"host", "config"},
    {"checkpoint", "speculation"},
    {"findings", "cache"},
    {"runtimes", "models"},
    {"deploy", "engine"},
    {"doctor", "training"},
    {"server"},
    {"cli"},
    {"__main__"},
)
FLOOR = {name: number for number, floor in enumerate(FLOORS) for name in floor}
NO_TORCH = {
    *("errors", "names", "printable", "config", "checkpoint", "host", "findings", "runtimes", "deploy"),
    "server",
}
HEAVY = {"torch", "transformers", "numpy", "safetensors", "tokenizers", "huggingface_hub"}
BARE = {("engine/text/tokens.py", "Exception")}  # tokenizers raises it for every bad tokenizer.json
FILES = sorted((SRC / PACKAGE).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Absolute dotted names a file imports anywhere, functions and TYPE_CHECKING blocks included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import; write the full name"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def complaints(here: str, names: set[str]) -> list[str]:
    """What is wrong with package ``here`` importing ``names``; empty when nothing is."""
    found = []
    for name in sorted(names):
        parts = name.split(".")
        there = parts[1] if parts[0] == PACKAGE and len(parts) > 1 else None
        if there in FLOOR and there != here and FLOOR[there] >= FLOOR[here]:
            found.append(f"{here} imports {there}, which does not stand below it")
        if here in NO_TORCH and parts[0] in HEAVY:
            found.append(f"{here} imports {parts[0]}; only the engine wing may")
    return found


def test_there_is_a_tree_to_check() -> None:
    """An empty tree would pass every other test here."""
    assert len(FILES) > 20


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_point_down(path: Path) -> None:
    """Every import inside the product goes to a lower floor; the right wing knows no torch."""
    parts = path.relative_to(SRC / PACKAGE).with_suffix("").parts
    if parts == ("__init__",):
        assert not imported(path)
        return
    assert parts[0] in FLOOR, f"{parts[0]} has no floor; give it one in FLOORS"
    assert not complaints(parts[0], imported(path))


@pytest.mark.parametrize(
    ("here", "name"),
    [
        ("config", "draftproof.findings.finding.Finding"),
        ("config", "draftproof.host.local.run"),
        ("runtimes", "torch.nn"),
        ("deploy", "numpy"),
        ("checkpoint", "draftproof.cli.main"),
    ],
)
def test_the_check_can_fail(here: str, name: str) -> None:
    """An upward or sideways import, or torch in the right wing, is complained about."""
    assert complaints(here, {name})


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_inside_functions_are_for_the_command_line(path: Path) -> None:
    """Only cli/ loads a module when a verb runs; everywhere else imports stand at the top."""
    if path.relative_to(SRC / PACKAGE).parts[0] == "cli":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    late = [n.lineno for f in functions for n in ast.walk(f) if isinstance(n, ast.Import | ast.ImportFrom)]
    assert not late, f"{path}: imports inside functions at lines {late}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_nothing_is_swallowed(path: Path) -> None:
    """No handler takes every exception, and none passes in silence."""
    here = path.relative_to(SRC / PACKAGE).as_posix()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            kinds = ast.unparse(node.type) if node.type else "everything"
            if (here, kinds) in BARE:
                continue
            assert kinds not in {"everything", "Exception", "BaseException"}, f"{path}:{node.lineno}: {kinds}"
            assert not all(isinstance(s, ast.Pass) for s in node.body), f"{path}:{node.lineno}: passes"
