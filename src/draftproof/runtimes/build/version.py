"""Versions of Python packages in their order, and whether one meets a specifier.

Source: PEP 440, as amended by the packaging.python.org specification of version specifiers.
"""

import re
from dataclasses import dataclass, replace
from functools import total_ordering

__all__ = ["PackageVersion", "meets", "parse_version"]

_VERSION = re.compile(
    r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_n>\d*))?"
    r"(?P<post>-(?P<post_short>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_n>\d*))?"
    r"(?P<dev>[-_.]?dev[-_.]?(?P<dev_n>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?"
)
_PRE = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
_CLAUSE = re.compile(r"(===|~=|==|!=|<=|>=|<|>)\s*([^\s,]+)")
_LAST = float("inf")

Number = int | float


@total_ordering
@dataclass(frozen=True, slots=True)
class PackageVersion:
    """A version taken apart; compared as pip compares them."""

    epoch: int
    release: tuple[int, ...]
    """Without trailing zeros: 1.0 is 1."""

    pre: tuple[str, int] | None
    post: int | None
    dev: int | None
    local: tuple[tuple[int, str], ...]
    """Numbers sort after words: each piece is (number, "") or (-1, word)."""

    num_release: int
    """How many numbers were written, trailing zeros included."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackageVersion) and self._key() == other._key()

    def __lt__(self, other: "PackageVersion") -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        is_only_dev = self.pre is None and self.post is None and self.dev is not None
        pre = ("", -1) if is_only_dev else self.pre or ("z", 0)
        post = -1 if self.post is None else self.post
        dev = _LAST if self.dev is None else self.dev
        return (self.epoch, self.release, pre, post, dev, self.local)

    def public(self) -> "PackageVersion":
        """The version without what a builder added after ``+``."""
        return replace(self, local=())


def parse_version(text: str) -> PackageVersion | None:
    """The version that ``text`` states; None where it is none."""
    found = _VERSION.fullmatch(text.strip().lower())
    if found is None:
        return None
    numbers = [int(number) for number in found["release"].split(".")]
    release = list(numbers)
    while release and release[-1] == 0:
        release.pop()
    pre = (_PRE[found["pre"]] if found["pre"] in _PRE else found["pre"], int(found["pre_n"] or 0))
    post = int(found["post_short"] or found["post_n"] or 0) if found["post"] else None
    pieces = re.split(r"[-_.]", found["local"]) if found["local"] else []
    return PackageVersion(
        int(found["epoch"] or 0),
        tuple(release),
        pre if found["pre"] else None,
        post,
        int(found["dev_n"] or 0) if found["dev"] else None,
        tuple((int(piece), "") if piece.isdigit() else (-1, piece) for piece in pieces),
        len(numbers),
    )


def meets(version: str, specifier: str) -> bool | None:
    """Whether ``version`` meets every clause; None where either cannot be read.

    Pre-releases count as installed versions do: one that is there is held against the clauses as it is.
    """
    found = parse_version(version)
    clauses = _CLAUSE.findall(specifier)
    if found is None or _CLAUSE.sub("", specifier).strip(" ,()"):
        return None
    answers = [_meets(version, found, operator, wanted) for operator, wanted in clauses]
    if None in answers:
        return None
    return all(answers)


def _meets(text: str, found: PackageVersion, operator: str, wanted: str) -> bool | None:
    if operator == "===":
        return text.strip().lower() == wanted.lower()
    if wanted.endswith(".*") and operator in ("==", "!="):
        return _starts(found, wanted[:-2], operator)
    limit = parse_version(wanted)
    if limit is None:
        return None
    public, plain = found.public(), found if limit.local else found.public()
    # A final limit is not after its own pre-releases, and one that is no post-release not before its own.
    below = limit if limit.pre or limit.dev is not None else replace(limit, dev=0, local=())
    is_own_post = limit.dev is None and limit.post is None and found.post is not None
    is_own_post = is_own_post and replace(public, post=None, dev=None) == limit
    return {
        "==": plain == limit,
        "!=": plain != limit,
        "<=": public <= limit,
        ">=": public >= limit,
        "~=": public >= limit and bool(_starts(found, wanted.rpartition(".")[0], "==")),
        "<": found < below,
        ">": public > limit and not is_own_post,
    }[operator]


def _starts(found: PackageVersion, prefix: str, operator: str) -> bool | None:
    wanted = parse_version(prefix)
    if wanted is None:
        return None
    numbers = [*found.release, *[0] * (wanted.num_release - len(found.release))][: wanted.num_release]
    first = [*wanted.release, *[0] * (wanted.num_release - len(wanted.release))]
    is_there = found.epoch == wanted.epoch and numbers == first
    return is_there if operator == "==" else not is_there
