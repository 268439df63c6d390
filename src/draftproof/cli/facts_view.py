"""The table of ``draftproof facts``: name, value, and the line and pointer (or rule) behind it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from draftproof.cli.output import line, shown
from draftproof.config.fact import Fact, Shape
from draftproof.config.facts import as_facts
from draftproof.config.parse import Parsed
from draftproof.config.source import ClassDefault, Derived, Source, Unknown, Written

__all__ = ["print_facts", "ranges", "told_source"]

_MAX_VALUE_WIDTH = 40
_MAX_RUNS = 3
_LAYER_PARTS = 3  # layers, index, part


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    value: str
    source: str


def print_facts(parsed: Parsed, subject: str) -> None:
    """Print every fact: what is known as a table, then what has no value, gathered by reason."""
    known = list(_folded([each for each in as_facts(parsed) if each.shape is Shape.VALUE]))
    rows = [_Row(each.name, shown(each.value), told_source(each.source)) for each in known if _is_known(each)]
    name_width = max((len(row.name) for row in rows), default=0)
    value_width = min(_MAX_VALUE_WIDTH, max((len(row.value) for row in rows), default=0))
    line(subject)
    for row in rows:
        line(f"  {row.name:<{name_width}}  {row.value:<{value_width}}  {row.source}".rstrip())
    for reason, names in _by_reason(known).items():
        line(f"  no value: {', '.join(names)}", style="dim")
        line(f"    {reason}", style="dim")
    for problem in parsed.problems:
        what = f"expected {problem.expected}, found {problem.found}"
        place = problem.pointer or "the whole file"
        line(f"  {problem.kind.value}: {place} (l.{problem.line}): {what}", style="warning")
    if parsed.superseded:
        line(f"  read, but decided elsewhere: {', '.join(parsed.superseded)}", style="dim")
    if parsed.unparsed:
        line(f"  read by nobody here: {', '.join(parsed.unparsed)}", style="dim")


def told_source(source: Source) -> str:
    """Where a value comes from, for people."""
    match source:
        case Written():
            return f"l.{source.line:<4} {source.pointer}"
        case ClassDefault():
            return f"default of {source.library}"
        case Derived():
            return f"derived: {source.rule}"
        case Unknown():
            return source.reason


def ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers with neighbours joined: ``0-2,4``; a long list is cut: ``0-2,...(48)``."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    told = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    if len(told) <= _MAX_RUNS:
        return ",".join(told)
    return f"{','.join(told[:_MAX_RUNS])},...({sum(last - first + 1 for first, last in runs)})"


def _is_known(each: Fact) -> bool:
    return not isinstance(each.source, Unknown)


def _by_reason(known: list[Fact]) -> dict[str, list[str]]:
    """Names of what has no value, under the reason they share."""
    gathered: dict[str, list[str]] = {}
    for each in known:
        if isinstance(each.source, Unknown):
            gathered.setdefault(each.source.reason, []).append(each.name)
    return gathered


def _folded(known: list[Fact]) -> Iterator[Fact]:
    """The facts with the parts of equal layers told once, under all their numbers."""
    layers = [each for each in known if each.path[0] == "layers" and len(each.path) == _LAYER_PARTS]
    numbers: dict[str, list[int]] = {}
    for index in dict.fromkeys(each.path[1] for each in layers):
        said = shown([each.value for each in layers if each.path[1] == index])
        numbers.setdefault(said, []).append(int(index))
    for each in known:
        if each not in layers:
            yield each
            continue
        group = next(group for group in numbers.values() if int(each.path[1]) in group)
        if int(each.path[1]) == group[0]:
            yield replace(each, path=("layers", ranges(group), each.path[2]))
