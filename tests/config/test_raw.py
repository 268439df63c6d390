"""Reading strictly: each fault by its exact name and place, each faultless file without a word."""

import json
import os
import runpy
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from draftproof.config.raw import (
    DEFECTS,
    MAX_BYTES,
    Position,
    RawConfig,
    RefusedConfig,
    parse_raw,
    pointer_of,
    read_raw,
    split_pointer,
)
from draftproof.errors import CouldNotLook

Case = tuple[str, bytes, tuple[str, ...]]

_CORPUS = runpy.run_path(str(Path(__file__).with_name("torture_corpus.py")))
CASES: Sequence[Case] = _CORPUS["CASES"]
ENDINGS: Sequence[Case] = _CORPUS["ENDINGS"]
CONFIGS = sorted((Path(__file__).parents[1] / "configs").glob("*.json"))
QUIET = {"json-no-final-newline"}


def ids_named(data: bytes) -> tuple[bool, set[str]]:
    """Whether the bytes are read, and everything that is named about them."""
    try:
        return True, {oddity.id for oddity in parse_raw(data, "case").oddities}
    except RefusedConfig as refused:
        return False, {defect.id for defect in refused.defects}


def refusal(data: bytes) -> RefusedConfig:
    """The refusal of bytes that must be refused."""
    with pytest.raises(RefusedConfig) as caught:
        parse_raw(data, "case.json")
    return caught.value


@pytest.mark.parametrize(("name", "data", "ids"), CASES, ids=[case[0] for case in CASES])
def test_each_fault_has_its_exact_name(
    name: str, data: bytes, ids: tuple[str, ...], record_property: Callable[[str, object], None]
) -> None:
    """A case of the torture corpus is refused or read as it must be, with exactly the names it must get."""
    record_property("is_clean", int(not ids))
    must_refuse = any(DEFECTS[defect_id].severity == "error" for defect_id in ids)
    is_read, named = ids_named(data)
    assert (is_read, named - QUIET) == (not must_refuse, set(ids)), name


@pytest.mark.parametrize(("name", "data", "ids"), ENDINGS, ids=[case[0] for case in ENDINGS])
def test_the_end_of_the_file_is_looked_at(name: str, data: bytes, ids: tuple[str, ...]) -> None:
    """A missing last line ending is named, a present one is not."""
    assert ids_named(data) == (True, set(ids)), name


def test_the_corpus_is_as_large_as_it_was() -> None:
    """Cases are added, not lost, and their names are unique."""
    names = [case[0] for case in CASES]
    assert len(set(names)) == len(names) >= 200
    assert sum(not case[2] for case in CASES) >= 14


def test_the_tally_counts_every_fault_and_no_false_alarm() -> None:
    """The published numbers: every injected fault detected by its name, nothing else reported."""
    rows = runpy.run_path(str(Path(__file__).with_name("torture_tally.py")))["tally"]()
    assert {row.id for row in rows} == set(DEFECTS) - {"json-too-many-defects", "json-too-many-values"}
    assert all(row.detected == row.injected > 0 for row in rows)
    assert sum(row.false_alarms for row in rows) == 0
    assert sum(row.injected for row in rows) >= 200


def test_every_defect_of_the_catalogue_is_in_the_corpus() -> None:
    """No id exists that no case shows; the two counting limits have tests of their own."""
    shown = {defect_id for case in [*CASES, *ENDINGS] for defect_id in case[2]}
    assert set(DEFECTS) - shown == {"json-too-many-defects", "json-too-many-values"}


def test_every_defect_says_what_it_means() -> None:
    """The catalogue is complete: a severity of ours, a title, a meaning, a next step."""
    for defect_id, kind in DEFECTS.items():
        assert kind.severity in {"error", "warning", "note"}, defect_id
        assert kind.title, defect_id
        assert kind.means, defect_id
        assert kind.next_step, defect_id


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_real_configs_are_read_without_a_word(path: Path) -> None:
    """A real config gives the values that json gives, every value with a place, and no oddity."""
    raw = read_raw(path)
    assert json.dumps(raw.value) == json.dumps(json.loads(path.read_text(encoding="utf-8")))
    assert raw.oddities == ()
    assert raw.data == path.read_bytes()
    assert raw.size_bytes == path.stat().st_size


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_cut_of_a_real_config_is_called_truncated(
    path: Path, record_property: Callable[[str, object], None]
) -> None:
    """A config cut at any byte before its closing brace is truncated and nothing else.

    Files over 1000 bytes are cut at every seventh byte, to keep this under five seconds.
    """
    data = path.read_bytes().rstrip()
    cuts = range(1, len(data), 7 if len(data) > 1000 else 1)
    record_property("n", len(cuts))
    for length in cuts:
        assert ids_named(data[:length]) == (False, {"json-truncated"}), f"cut at {length}"


@pytest.mark.parametrize("path", CONFIGS[:3], ids=lambda path: path.name)
def test_places_are_those_of_the_file(path: Path) -> None:
    """At the place of every value its own text begins: reading from there gives the value again."""
    raw = read_raw(path)
    lines = raw.text.split("\n")
    decoder = json.JSONDecoder()
    for pointer, place in raw.positions.items():
        rest = "\n".join([lines[place.line - 1][place.column - 1 :], *lines[place.line :]])
        assert json.dumps(decoder.raw_decode(rest)[0]) == json.dumps(raw.at(pointer)), pointer
    assert len(raw.positions) > 10


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_are_counted_for_every_line_ending(ending: str) -> None:
    """LF, CRLF and CR each end one line, columns start at 1 after them."""
    text = ending.join(["{", '  "a": 1,', '  "\u00e9": [true,', "null]", "}", ""])
    raw = parse_raw(text.encode(), "case")
    assert raw.positions[""] == Position(1, 1)
    assert raw.positions["/a"] == Position(2, 8)
    assert raw.positions["/\u00e9/0"] == Position(3, 9)
    assert raw.line("/\u00e9/1") == 4


@pytest.mark.parametrize(
    ("data", "defect_id", "pointer", "place"),
    [
        (b'{"a": {"b": 1,\n "b": 2}}', "json-duplicate-key", "/a/b", (2, 2)),
        (b'{"x/y": {"~": NaN}}', "json-nan", "/x~1y/~0", (1, 15)),
        (b'{"a": [1, -Infinity]}', "json-infinity", "/a/1", (1, 11)),
        (b'{"a": 1}\n\nEOF\n', "json-heredoc-delimiter", "", (3, 1)),
        (b'{\n "a": [1,\n 2', "json-truncated", "/a", (3, 3)),
        (b'{"a": [1, 2,]}', "json-trailing-comma", "/a", (1, 12)),
        (b'{"a": "x\\q"}', "json-invalid-escape", "/a", (1, 9)),
        ('{"\u00e9": "'.encode() + b"\xe9" + b'"}', "json-not-utf8", "", (1, 8)),
    ],
)
def test_a_defect_is_placed(data: bytes, defect_id: str, pointer: str, place: tuple[int, int]) -> None:
    """A defect carries the pointer of its value and the line and column where it stands."""
    defect = next(d for d in refusal(data).defects if d.id == defect_id)
    assert (defect.pointer, defect.position) == (pointer, Position(*place))


def test_a_truncated_file_says_what_is_still_open() -> None:
    """The message names the containers that were never closed, innermost first, with their lines."""
    found = refusal(b'{\n "a": {\n  "b": [1,').defects[0].found
    assert found.index("[ of /a/b (line 3)") < found.index("{ of /a (line 2)") < found.index("(line 1)")


def test_a_pointer_file_says_what_is_missing() -> None:
    """Of a large-file pointer the digest and the true size are told."""
    pointer = (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 53687091200\n"
    )
    found = refusal(pointer).defects[0].found
    assert "sha256:" + "ab" * 32 in found
    assert "53687091200 bytes" in found


def test_all_defects_are_told_in_the_order_of_the_text() -> None:
    """Reading goes on after a defect where it can; the list follows the text."""
    refused = refusal(b'{"a": NaN,\n "b": 01,\n "a": 1e999,\n "c": [1,]\n}\nEOF\nls\n')
    assert [d.id for d in refused.defects] == [
        "json-nan",
        "json-leading-zero",
        "json-duplicate-key",
        "json-float-overflow",
        "json-trailing-comma",
        "json-heredoc-delimiter",
        "json-shell-text",
    ]
    assert "and 4 more" in refused.found


def test_a_flood_of_one_defect_is_counted() -> None:
    """A thousand NaN are twenty lines and a number, not a thousand lines."""
    refused = refusal(b'{"a": [' + b",".join([b"NaN"] * 1000) + b"]}")
    assert len(refused.defects) == 20
    assert refused.defects[-1].found == "NaN (and 980 more of this kind)"


def test_a_flood_of_defects_ends_the_reading() -> None:
    """After a thousand defects the rest is not read, and that is a defect by name."""
    refused = refusal(b'{"a": [' + b",".join([b"NaN"] * 1001) + b"]}")
    assert refused.defects[-1].id == "json-too-many-defects"


def test_what_a_tolerant_reader_recovers_is_kept() -> None:
    """``recovered`` is what json makes of the bytes without a mark, None where json refuses too."""
    assert refusal(b'{"a": 1, "a": 2}').recovered == {"a": 2}
    assert refusal(b'\xef\xbb\xbf{"a": 1}').recovered == {"a": 1}
    assert refusal(b"[1]").recovered == [1]
    assert refusal(b'{"a": 1').recovered is None
    assert refusal(b'{"a":' * 5000 + b"1" + b"}" * 5000).recovered is None


def test_a_secret_is_not_quoted() -> None:
    """A duplicate credential is reported without its values."""
    refused = refusal(b'{"api_key": "abc-1", "api_key": "abc-2"}')
    assert "abc" not in json.dumps(refused.as_dict())


def test_the_refusal_has_all_its_parts() -> None:
    """The error carries the five parts, the digest, and every defect for the machine."""
    told = refusal(b'{"a": 1, "a": 2}').as_dict()
    assert told["exit"] == 1
    assert told["where"] == "case.json#/a line 1"
    assert all(told[part] for part in ("subject", "expected", "found", "means", "next", "sha256"))
    assert isinstance(told["defects"], list)
    assert set(told["defects"][0]) == {"id", "pointer", "line", "column", "expected", "found", "readers"}


def test_too_many_values_are_refused() -> None:
    """A file under the size limit with over half a million values is refused by name."""
    data = b'{"a": [' + b"0," * 500_001 + b"0]}"
    assert ids_named(data) == (False, {"json-too-many-values"})


def test_the_size_limit_is_exact() -> None:
    """16 MiB are read, one byte more is not."""
    head, tail = b'{"a": "', b'"}\n'
    fits = head + b"x" * (MAX_BYTES - len(head) - len(tail)) + tail
    assert parse_raw(fits, "fits").size_bytes == MAX_BYTES
    assert ids_named(fits + b"\n") == (False, {"json-too-large"})


@pytest.mark.parametrize(
    ("parts", "pointer"),
    [((), ""), (("",), "/"), (("a", 0), "/a/0"), (("a/b", "m~n"), "/a~1b/m~0n"), (("~1",), "/~01")],
)
def test_pointers_are_those_of_rfc_6901(parts: tuple[str | int, ...], pointer: str) -> None:
    """Keys are escaped as RFC 6901 says, and come back as they were."""
    assert pointer_of(parts) == pointer
    assert split_pointer(pointer) == tuple(str(part) for part in parts)


@pytest.mark.parametrize("text", ["a", "a/b", "/~", "/~2", "/a~"])
def test_what_is_no_pointer_is_refused(text: str) -> None:
    """A missing slash and a tilde that escapes nothing are errors."""
    with pytest.raises(ValueError, match="RFC 6901"):
        split_pointer(text)


def test_lookups_tell_null_from_absent() -> None:
    """A written null is there; an absent key and an index with a leading zero are not."""
    raw: RawConfig = parse_raw(b'{"a": null, "b": [5, {"c": 1}]}', "case")
    assert raw.has("/a")
    assert raw.at("/a") is None
    assert raw.at("/b/1/c") == 1
    assert not raw.has("/c")
    for absent in ("/c", "/b/2", "/b/01", "/b/-", "/a/x"):
        assert not raw.has(absent)
        with pytest.raises(KeyError):
            raw.at(absent)


def _not_regular(tmp_path: Path) -> list[tuple[Path, str]]:
    fifo, loop, gone = tmp_path / "fifo", tmp_path / "loop", tmp_path / "gone"
    os.mkfifo(fifo)
    loop.symlink_to(loop)
    return [
        (fifo, "a pipe (FIFO)"),
        (tmp_path, "a directory"),
        (Path("/dev/zero"), "a character device"),
        (gone, "No such file or directory"),
        (loop, "symbolic link"),
        (fifo / "below", "Not a directory"),
        (Path("a\0b"), "null byte"),
        (tmp_path / ("x" * 300), "too long"),
    ]


def test_what_is_no_file_is_not_looked_at(tmp_path: Path) -> None:
    """A pipe, a directory, a device, nothing at all: told with all parts, at once, with exit status 3."""
    for path, said in _not_regular(tmp_path):
        with pytest.raises(CouldNotLook) as caught:
            read_raw(path)
        error = caught.value
        assert said in error.found, path
        assert error.exit_code == 3
        assert all((error.subject, error.expected, error.where, error.means, error.next_step))


def test_a_socket_is_not_looked_at(tmp_path: Path) -> None:
    """A socket is named as one."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        with pytest.raises(CouldNotLook, match="a socket"):
            read_raw(tmp_path / "s")


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    """Loaders follow links, so does the reader; the origin stays the path that was asked for."""
    (tmp_path / "blob").write_bytes(b"{}\n")
    (tmp_path / "config.json").symlink_to("blob")
    assert read_raw(tmp_path / "config.json").origin == str(tmp_path / "config.json")


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    """A sparse terabyte is refused by its size at once."""
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(RefusedConfig, match="json-too-large"):
        read_raw(path)


_SIZE = 1 << 16
HOSTILE = {
    "newlines in a string": b'{"a": "' + b"\n" * _SIZE,
    "brackets": b"[" * _SIZE,
    "template brackets": b'{"a": [' + b"{{" * _SIZE,
    "placeholders": b'{"a": [' + b"<a " * _SIZE,
    "titles": b"<html>" + b"<title" * _SIZE,
    "comments": b'{"a": [' + b"1 /* x */" * _SIZE,
    "bare words": b"{" + b"\na:1" * _SIZE,
    "bytes that are not UTF-8": b'{"a": "' + b"\xff\n" * _SIZE,
    "NaN": b'{"a": [' + b"NaN," * _SIZE + b"1]}",
    "one key": b"{" + b'"a":1,' * _SIZE + b'"a":1}',
    "lines after the value": b"{}" + b"\nEOF\nx" * _SIZE,
    "minus signs": b'{"a": [' + b"- " * _SIZE,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused_in_bounded_time_and_words(kind: str) -> None:
    """Sixty-five thousand faults of one kind end in at most 300 defects and a message that fits a screen.

    Were any of them looked at in quadratic time, this test would run for many minutes; it takes seconds.
    """
    refused = refusal(HOSTILE[kind])
    assert len(refused.defects) <= 300
    assert all(len(defect.found) < 500 for defect in refused.defects)


@pytest.mark.parametrize("data", [b"[1]", b"[null]\n", b'["a"]', b"[1.5]"])
def test_an_array_is_not_a_table_of_toml(data: bytes) -> None:
    """Brackets around one word name a TOML table, too; a file that is JSON whole is told as JSON."""
    assert "json-not-an-object" in [defect.id for defect in refusal(data).defects]
