"""One ``Requires-Dist`` line: whether it applies to an environment, and whether what is installed meets it.

Source: PEP 508, as amended by the packaging.python.org specification of dependency specifiers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from draftproof.runtimes.build.version import meets

__all__ = ["Requirement", "applies", "canonical", "parse_requirement"]

_REQUIREMENT = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[(?P<extras>[^\]]*)\])?\s*"
    r"(?:@\s*(?P<url>\S+)|\(?(?P<specifier>[^;()]*)\)?)\s*(?:;\s*(?P<marker>.*))?"
)
_TOKEN = re.compile(
    r"""\s*(?:(\(|\)|and\b|or\b)|(not\s+in\b|in\b|===|~=|==|!=|<=|>=|<|>)|("[^"]*"|'[^']*')|(\w+))"""
)
_VERSIONS = {"python_version", "python_full_version", "implementation_version", "platform_release"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A distribution that another needs."""

    name: str
    specifier: str
    """Clauses separated by commas; empty for any version."""

    marker: str
    """The condition, empty for always."""


def canonical(name: str) -> str:
    """The one form of a distribution's name. Source: PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_requirement(line: str) -> Requirement | None:
    """The requirement that the line states; None where it is none."""
    found = _REQUIREMENT.fullmatch(line)
    if found is None:
        return None
    return Requirement(found["name"], (found["specifier"] or "").strip(), (found["marker"] or "").strip())


def applies(marker: str, environment: Mapping[str, str]) -> bool | None:
    """Whether the condition holds there, no extra being asked for; None where it cannot be read."""
    if not marker:
        return True
    tokens: list[tuple[str, ...]] = []
    place = 0
    while place < len(marker.rstrip()):
        found = _TOKEN.match(marker, place)
        if found is None:
            return None
        tokens.append(found.groups(""))
        place = found.end()
    reader = _Marker(tokens, {"extra": "", **environment})
    try:
        value = reader.either()
    except (IndexError, KeyError, ValueError):
        return None
    return value if not reader.tokens else None


class _Marker:
    """Recursive descent over ``or``, ``and``, comparisons."""

    def __init__(self, tokens: list[tuple[str, ...]], environment: Mapping[str, str]) -> None:
        self.tokens = tokens
        self.environment = environment

    def either(self) -> bool:
        value = self.both()
        while self.tokens and self.tokens[0][0] == "or":
            self.tokens.pop(0)
            value = self.both() or value
        return value

    def both(self) -> bool:
        value = self.one()
        while self.tokens and self.tokens[0][0] == "and":
            self.tokens.pop(0)
            value = self.one() and value
        return value

    def one(self) -> bool:
        if self.tokens[0][0] == "(":
            self.tokens.pop(0)
            value = self.either()
            if self.tokens.pop(0)[0] != ")":
                raise ValueError("a bracket is open")
            return value
        left, operator, right = self.tokens.pop(0), self.tokens.pop(0)[1], self.tokens.pop(0)
        return self.compared(left, " ".join(operator.split()), right)

    def compared(self, left: tuple[str, ...], operator: str, right: tuple[str, ...]) -> bool:
        here, there = self.text(left), self.text(right)
        if operator in ("in", "not in"):
            return (here in there) is (operator == "in")
        if {left[3], right[3]} & _VERSIONS:
            version, limit = (here, there) if left[3] else (there, here)
            answer = meets(version, f"{operator}{limit}")
            if answer is not None:
                return answer
        # What is no version has no order: less and greater never hold.
        return operator not in ("<", ">") and (here == there) is not (operator == "!=")

    def text(self, token: tuple[str, ...]) -> str:
        return token[2][1:-1] if token[2] else self.environment[token[3]]
