"""The text format: what is written is read back, and what is no sample is no page."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof.errors import CouldNotLook
from draftproof.runtimes.observed.prometheus import is_metrics, parse_samples

NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,20}", fullmatch=True)
KEYS = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,9}", fullmatch=True)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def written(labels: dict[str, str]) -> str:
    """Labels as the format writes them."""
    escaped = (
        (key, value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\""))
        for key, value in labels.items()
    )
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped) + "}"


@pytest.mark.property
@given(NAMES, st.dictionaries(KEYS, VALUES, max_size=4), st.floats(allow_nan=False))
def test_round_trip(name: str, labels: dict[str, str], value: float) -> None:
    """Every sample that can be written is read back exactly."""
    number = {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, repr(value))
    text = f"# HELP {name} x\n{name}{written(labels)} {number}\n"
    (sample,) = parse_samples(text, "page")
    assert (sample.name, dict(sample.labels), sample.value) == (name, labels, value)
    assert is_metrics(text)


@pytest.mark.property
@given(st.text(st.sampled_from('ab{}="\\, 1.e+-#\t'), max_size=40).map(str.strip))
def test_any_line_is_a_sample_a_comment_or_refused(line: str) -> None:
    """No line makes the parser fail otherwise, and none is passed over in silence."""
    if not line or line.startswith("#"):
        assert parse_samples(line, "page") == ()
    elif is_metrics(line):
        assert len(parse_samples(line, "page")) == 1
    else:
        with pytest.raises(CouldNotLook, match="could-not-look metrics"):
            parse_samples(line, "page")


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("a 1", 1.0),
        ("a{} 1.5e+06", 1.5e6),
        ('a{b="}",} 2 1700000000', 2.0),
        ('a{ b = "c" , d="e" } 3 # {trace="x"} 1', 3.0),
        ("a +Inf", math.inf),
    ],
)
def test_legal_lines(line: str, value: float) -> None:
    """What the format allows beside the usual."""
    assert parse_samples(line, "page")[0].value == value


@pytest.mark.parametrize(
    "line",
    [
        "a",
        "a 1_000",
        "a 0x10",
        "a one",
        'a{b="c} 1',
        'a{b="c",b="d"} 1',
        'a{b="\\x"} 1',
        "a{b=c} 1",
        "1a 1",
        "a 1 2 3",
        "a \u0661",
    ],
)
def test_illegal_lines(line: str) -> None:
    """Each is refused, with the line's number."""
    with pytest.raises(CouldNotLook) as error:
        parse_samples(f"ok 1\n{line}\n", "page")
    assert error.value.where == "page line 2"
