"""deploy.serving.quoting: any text comes back whole from each kind of reader, real where it can be had."""

import json
import re
import subprocess
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof.deploy.serving.quoting import (
    compose_text,
    kubernetes_text,
    shell_line,
    systemd_setting,
    systemd_word,
    yaml_text,
)

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)
NASTY = (
    *("", " ", "a b", "'", '"', "\\", "$HOME", "${A}", "$(id)", "`id`", "%n", "%%", "$$", "a\nb", "\t", "!x"),
    *(
        "-",
        "--",
        "#",
        "~",
        "*",
        "{}",
        "null",
        "yes",
        "0x1",
        "1e3",
        "é",
        "\u202e",
        "\u2028",
        "\x85",
        "😀",
        "\x7f",
    ),
    '{"method":"dflash","model":"/m/a b\'s $x %i","num_speculative_tokens":15}',
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_shell_gives_every_word_back(shell: str) -> None:
    """Real shells, both kinds of quoting trouble at once: all words in one line, split by NUL."""
    line = shell_line(["printf", "%s\\0", *NASTY], {})
    ran = subprocess.run([shell, "-c", line], capture_output=True, check=True)
    assert ran.stdout.decode().split("\0")[:-1] == list(NASTY)


@pytest.mark.parametrize("value", NASTY)
def test_a_shell_gives_every_variable_back(value: str) -> None:
    """Variables stand before the command in a form that every shell has."""
    line = shell_line(["printenv", "DRAFTPROOF_SHOWN"], {"DRAFTPROOF_SHOWN": value})
    ran = subprocess.run(["sh", "-c", line], capture_output=True, check=True)
    assert ran.stdout.decode() == value + "\n"


@pytest.mark.property
@settings(deadline=None, max_examples=50)
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_any_words_through_a_real_shell(words: list[str]) -> None:
    """No text is split, expanded or lost by sh."""
    ran = subprocess.run(
        ["sh", "-c", shell_line(["printf", "%s\\0", *words], {})], capture_output=True, check=True
    )
    assert ran.stdout.decode().split("\0")[:-1] == words


@pytest.mark.property
@settings(deadline=None, max_examples=100)
@given(JSON)
def test_any_value_through_a_real_yaml_reader(value: Any) -> None:
    """PyYAML reads YAML 1.1, the stricter of the two about what is no text; the types come back, too."""
    back = yaml.safe_load(yaml_text(value))
    assert _typed(back) == _typed(value)


@pytest.mark.parametrize(
    "value", [*NASTY, "1_000", "12:30:45", "2026-12-01", "<<", "=", "? a", "- a", "a: b", "a #b"]
)
def test_texts_that_yaml_takes_for_something_else(value: str) -> None:
    """As value, as key and as item."""
    told: dict[str, Any] = {"a": value, value: [value, {value: value}]}
    assert yaml.safe_load(yaml_text(told)) == told


def _typed(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def systemd_words(line: str) -> list[str]:
    """The words of an ``ExecStart=``: systemd.syntax(7) quoting, then specifiers and variables."""
    words: list[str] = []
    current: list[str] | None = None
    quote, place = "", 0
    simple = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "s": " "}
    while place < len(line):
        character = line[place]
        if character == "\\":
            current = current if current is not None else []
            kind = line[place + 1]
            if kind == "x":
                current.append(chr(int(line[place + 2 : place + 4], 16)))
                place += 4
            else:
                current.append(simple[kind])
                place += 2
            continue
        if quote and character == quote:
            quote = ""
        elif not quote and character in "\"'":
            quote, current = character, current if current is not None else []
        elif not quote and character in " \t":
            if current is not None:
                words.append("".join(current))
            current = None
        else:
            current = [*(current or []), character]
        place += 1
    assert not quote, line
    return [_unspecified(word) for word in ([*words, "".join(current)] if current is not None else words)]


def _unspecified(word: str) -> str:
    assert not re.search(r"(?<!%)(?:%%)*%(?!%)", word), f"a specifier in {word!r}"
    plain = word.replace("%%", "%")
    assert not re.search(r"(?<!\$)(?:\$\$)*\$(?!\$)", plain), f"a variable in {plain!r}"
    return plain.replace("$$", "$")


@pytest.mark.property
@settings(deadline=None, max_examples=150)
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_any_words_through_the_rules_of_systemd(words: list[str]) -> None:
    """Quoting, escapes, specifiers and variables as the manual has them, read by a parser of its own."""
    line = " ".join(map(systemd_word, words))
    assert "\n" not in line
    assert systemd_words(line) == words


def test_a_setting_keeps_its_dollars() -> None:
    """Environment= expands specifiers only."""
    assert systemd_setting("A", 'x $y %n "z"') == '"A=x $y %%n \\"z\\""'


def expanded(text: str, variables: dict[str, str]) -> str:
    """What the kubelet makes of an argument: the rules of the Kubernetes API, read by a parser of its own."""
    made, place = [], 0
    while place < len(text):
        if text.startswith("$$", place):
            made.append("$")
            place += 2
        elif text.startswith("$(", place) and ")" in text[place:]:
            end = text.index(")", place)
            name = text[place + 2 : end]
            made.append(variables.get(name, text[place : end + 1]))
            place = end + 1
        else:
            made.append(text[place])
            place += 1
    return "".join(made)


@pytest.mark.property
@given(TEXTS, TEXTS)
def test_a_pod_gets_its_arguments_as_they_are(text: str, more: str) -> None:
    """Whatever variables the pod has, none is read into an argument that the plan says."""
    told = f"{text}$({more})$(A)"
    assert expanded(kubernetes_text(told), {"A": "evil", more: "evil"}) == told


@given(TEXTS)
def test_compose_interpolates_nothing(text: str) -> None:
    """Every dollar stands for itself."""
    told = compose_text(f"${text}")
    assert not re.search(r"(?<!\$)(?:\$\$)*\$(?!\$)", told)
    assert told.replace("$$", "$") == f"${text}"
