"""Versions, specifiers and markers against PyPA's own ``packaging``, which pip uses."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.markers import InvalidMarker, Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from draftproof.runtimes.build.requirement import applies, canonical, parse_requirement
from draftproof.runtimes.build.version import meets, parse_version

RELEASES = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
SUFFIXES = st.sampled_from(
    ["", "a1", "b2", "rc1", ".dev3", "a1.dev2", ".post1", ".post1.dev2", "rc1.post2", "-1", ".RC", "alpha"]
)
LOCALS = st.sampled_from(["", "+cpu", "+cu130", "+cu128.1", "+1", "+g1234567.d20260101"])
EPOCHS = st.sampled_from(["", "1!"])
VERSIONS = st.builds(lambda *parts: "".join(parts), EPOCHS, RELEASES, SUFFIXES, LOCALS)
PUBLIC = st.builds(lambda *parts: "".join(parts), EPOCHS, RELEASES, SUFFIXES)

HERE = {
    "implementation_name": "cpython",
    "implementation_version": "3.11.7",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_release": "6.1.0-18-amd64",
    "platform_system": "Linux",
    "platform_version": "#1 SMP",
    "python_full_version": "3.11.7",
    "python_version": "3.11",
    "sys_platform": "linux",
}


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(VERSIONS, VERSIONS)
def test_versions_stand_in_the_order_of_pip(left: str, right: str) -> None:
    """Less, equal and greater are those of ``packaging``."""
    ours, theirs = (parse_version(left), parse_version(right)), (Version(left), Version(right))
    assert ours[0] is not None
    assert ours[1] is not None
    assert (ours[0] < ours[1], ours[0] == ours[1]) == (theirs[0] < theirs[1], theirs[0] == theirs[1])


@pytest.mark.property
@settings(max_examples=500, deadline=None)
@given(VERSIONS, PUBLIC, st.sampled_from(["==", "!=", "<=", ">=", "<", ">"]))
def test_one_clause_is_met_as_pip_says(version: str, limit: str, operator: str) -> None:
    """An installed version meets a clause for us where it does for pip, pre-releases included."""
    theirs = SpecifierSet(f"{operator}{limit}").contains(version, prereleases=True)
    assert meets(version, f"{operator}{limit}") is theirs


@pytest.mark.property
@settings(max_examples=200, deadline=None)
@given(VERSIONS, st.lists(st.integers(0, 3), min_size=2, max_size=4), st.sampled_from(["~=", "== *", "!= *"]))
def test_compatible_and_prefix_clauses(version: str, release: list[int], form: str) -> None:
    """``~=`` and the wildcards agree with pip's."""
    limit = ".".join(map(str, release))
    clause = f"~={limit}" if form == "~=" else f"{form[:2]}{limit}.*"
    assert meets(version, clause) is SpecifierSet(clause).contains(version, prereleases=True)


@pytest.mark.parametrize(
    ("version", "specifier", "answer"),
    [
        ("2.13.0+cpu", "==2.13.0", True),
        ("2.13.0", "==2.13.0+cpu", False),
        ("2.13.0+cpu", "==2.13.0+cpu", True),
        ("5.24.0", "<5.20.0,>=5.16.1", False),
        ("1.0", "", True),
        ("not a version", ">=1", None),
        ("1.0", ">=one", None),
        ("1.0", "=>1", None),
        ("1.0", "===1.0", True),
    ],
)
def test_what_engines_write(version: str, specifier: str, answer: object) -> None:
    """Clauses of real engines, and what cannot be read, which is neither met nor missed."""
    assert meets(version, specifier) is answer


ATOMS = [
    'platform_machine == "x86_64"',
    "platform_machine != 's390x'",
    'python_version > "3.11"',
    'python_version >= "3.9"',
    'python_full_version < "3.12"',
    '"linux" in sys_platform',
    'sys_platform not in "win32"',
    'extra == "gdown"',
    'platform_system == "Darwin"',
]


@pytest.mark.parametrize("pair", list(itertools.product(ATOMS, ATOMS)))
def test_markers_hold_where_pip_says(pair: tuple[str, str]) -> None:
    """Every pair of conditions, joined each way, with and without brackets."""
    left, right = pair
    for marker in (
        f"{left} and {right}",
        f"{left} or {right}",
        f"({left}) and ({right} or {left})",
        f"{left} or {right} and {left}",
    ):
        assert applies(marker, HERE) is Marker(marker).evaluate({**HERE, "extra": ""})


@pytest.mark.parametrize(
    "marker", ["platform_machine ==", "(os_name == 'posix'", "nobody == 'x'", "or", "'a' 'b'", "#"]
)
def test_a_marker_that_cannot_be_read_is_neither_true_nor_false(marker: str) -> None:
    """What pip refuses we do not decide."""
    with pytest.raises(InvalidMarker):
        Marker(marker)
    assert applies(marker, HERE) is None


@pytest.mark.parametrize(
    "line",
    [
        "torch==2.13.0+cpu; platform_machine == 'x86_64'",
        "fastapi[standard]<0.137.0,>=0.133.0",
        "torch (==2.13.0)",
        "pillow (!=8.3.*,>=5.3.0)",
        "scipy ; extra == 'scipy'",
        "Foo.Bar_baz",
        "thing @ https://example.org/thing.whl",
    ],
)
def test_lines_are_taken_apart_as_pip_does(line: str) -> None:
    """Name, clauses and marker."""
    ours, theirs = parse_requirement(line), Requirement(line)
    assert ours is not None
    assert canonical(ours.name) == canonical(theirs.name)
    assert SpecifierSet(ours.specifier) == theirs.specifier
    assert bool(ours.marker) is bool(theirs.marker)


def test_a_line_that_is_none() -> None:
    """Nonsense is no requirement."""
    assert parse_requirement("???") is None
