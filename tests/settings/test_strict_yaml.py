"""Strict YAML: plain values come through, traps and bombs are refused with line and cure."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from edge_agent.errors import ConfigError
from edge_agent.settings.strict_yaml import dump, parse, parse_document


def refusal(raw: bytes, **caps: int) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(raw, "config.yaml", **caps)
    return str(caught.value)


def test_plain_values_come_through() -> None:
    raw = b"""
a: text
b: 12
c: -0.5
d: 1e3
e: true
f: FALSE
g: null
h: ~
i:
j: [1, two, {x: 3}]
k: "0012"
l: 'NO'
m: '22:00'
source: rtsp://host:554/live
o: 10.0.0.1
p: 1.2.3
q: |
  two
  lines
"""
    assert parse(raw, "config.yaml") == {
        **{"a": "text", "b": 12, "c": -0.5, "d": 1000.0, "e": True, "f": False, "g": None, "h": None, "i": None},
        **{"j": [1, "two", {"x": 3}], "k": "0012", "l": "NO", "m": "22:00", "source": "rtsp://host:554/live"},
        **{"o": "10.0.0.1", "p": "1.2.3", "q": "two\nlines\n"},
    }


@pytest.mark.parametrize("word", ["yes", "No", "NO", "on", "Off", "y", "N", "oFF"])
def test_word_that_yaml_1_1_takes_for_a_boolean_is_refused(word: str) -> None:
    text = refusal(f"a: 1\nsite: {word}\n".encode())
    assert text.startswith(f"config.yaml:2: site: '{word}' is true or false to YAML 1.1; put it in quotes")


@pytest.mark.parametrize(
    ("scalar", "reason"),
    [
        ("0012", "leading zero"),
        ("0089", "leading zero"),
        ("-007", "leading zero"),
        ("00.5", "leading zero"),
        ("22:00", "base 60"),
        ("08:30", "base 60"),
        ("1:30:00.5", "base 60"),
        ("11:22:33:44:55:66", "base 60"),
        ("2026-01-01", "date"),
        ("2026-01-01T10:00:00Z", "date"),
        ("1_000", "underscores"),
        ("1_0.5", "underscores"),
        ("0x1F", "hexadecimal"),
        ("0o17", "octal"),
        ("0b11", "binary"),
        (".inf", "not a finite number"),
        ("-.INF", "not a finite number"),
        (".nan", "not a finite number"),
        ("1e999", "too large"),
        ("-1.0e+999", "too large"),
        ("1234567890123456789", "more than 18 digits"),
        ("=", "meaning of its own"),
    ],
)
def test_number_that_is_not_what_it_looks_like_is_refused(scalar: str, reason: str) -> None:
    text = refusal(f"lot: {scalar}\n".encode())
    assert text.startswith(f"config.yaml:1: lot: '{scalar}' ")
    assert reason in text
    assert parse(f"lot: '{scalar}'\n".encode(), "config.yaml") == {"lot": scalar}


def test_every_trap_is_listed_with_its_line_and_key() -> None:
    text = refusal(b"a: yes\nb:\n  c: [ok, 0012]\n  d: 22:00\n")
    assert [line.split(" ", 2)[:2] for line in text.splitlines()] == [
        ["config.yaml:1:", "a:"],
        ["config.yaml:3:", "b.c[1]:"],
        ["config.yaml:4:", "b.d:"],
    ]


def test_document_keeps_the_good_values_and_lines_beside_the_problems() -> None:
    document = parse_document(b"a: yes\nb:\n  c: [ok, 0012]\n", "config.yaml")
    assert document.values == {"b": {"c": ["ok", None]}}
    assert document.lines == {("a",): 1, ("b",): 2, ("b", "c"): 3, ("b", "c", 0): 3, ("b", "c", 1): 3}
    assert [problem.path for problem in document.problems] == [("a",), ("b", "c", 1)]


def test_coordinate_y_is_a_key_as_x_is_and_no_value() -> None:
    assert parse_document(b"{x: 1, y: 2}\n", "config.yaml").values == {"x": 1, "y": 2}
    assert parse_document(b"x: y\n", "config.yaml").problems


@pytest.mark.parametrize("key", ["on", "no", "n", "12", "1.5", "true", "null", "2026-01-01", "22:00"])
def test_key_that_is_not_text_is_refused(key: str) -> None:
    text = refusal(f"cameras:\n  {key}: x\n".encode())
    assert text.startswith(f"config.yaml:2: cameras.{key}: the key {key} ")
    assert "put it in quotes" in text


@pytest.mark.parametrize("raw", [b"? [a]\n: b\n", b"? {a: 1}\n: b\n", b": b\n"])
def test_key_that_is_no_scalar_is_refused(raw: bytes) -> None:
    assert "key" in refusal(raw)


def test_duplicate_key_names_both_lines() -> None:
    text = refusal(b"mqtt:\n  host: a\n  port: 1883\nmqtt:\n  port: 8883\n")
    assert text == "config.yaml:4: mqtt: is here a second time; first on line 1: keep one of them"


def test_duplicate_key_is_found_at_any_depth_and_however_quoted() -> None:
    assert refusal(b"a:\n  - b: 1\n    'b': 2\n").startswith("config.yaml:3: a[0].b: is here a second time")


def test_merge_key_may_be_overridden() -> None:
    raw = b"""
one: &one {kind: rtsp, max_fps: 5, source: a}
two:
  <<: *one
  source: b
three:
  source: c
  <<: [{max_fps: 9}, *one]
"""
    values = parse(raw, "config.yaml")
    assert values["two"] == {"kind": "rtsp", "max_fps": 5, "source": "b"}
    assert values["three"] == {"kind": "rtsp", "max_fps": 9, "source": "c"}


def test_merge_of_something_else_is_refused() -> None:
    assert "<< takes a mapping" in refusal(b"a: {<<: 3}\n")
    assert "second time" in refusal(b"x: &x {k: 1}\na:\n  <<: *x\n  <<: *x\n")


def test_quoted_merge_sign_is_an_ordinary_key() -> None:
    assert parse(b"'<<': {a: 1}\n", "config.yaml") == {"<<": {"a": 1}}


@pytest.mark.parametrize(
    ("raw", "line", "reason"),
    [
        (b"mqtt:\n\thost: a\n", 2, "tab"),
        (b"a: 1\nsite: M\xfcnchen\n", 2, "byte 0xfc is not UTF-8; save the file as UTF-8"),
        (b"\xff\xfea\x00:\x00 \x00\x00\xd8", 1, "not UTF-16-LE"),
        (b"a: 1\n\nb: \x01\n", 3, "control character U+0001"),
        (b"a: 1\nb: \0\n", 2, "control character U+0000"),
        (b"a: 1\nb: \xc2\x9b\n", 2, "control character U+009B"),
        ("a: 1\nb: 2\n".encode("utf-16-le"), 1, "save the file as UTF-8"),
        (b"# c\n- a\n", 2, "the top is a list"),
        (b"hello\n", 1, "the top is a single value"),
        (b"host:a\n", 1, "the top is a single value"),
        (b"null\n", 1, "the top is a single value"),
        (b"a: 1\n---\nb: 2\n", 2, "second document"),
        (b"a: 1\n...\nb: 2\n", 3, "expected one document"),
        (b"a: 1\nb: " + b"[" * 5000, 2, "nested deeper than 20 levels"),
        (b"{" * 5000, 1, "nested deeper than 20 levels"),
        (b"- " * 5000, 1, "nested deeper than 20 levels"),
        (b"a: [1, 2\n", 2, "not closed"),
        (b"a: 1\n b: 2\n", 2, "colon where none can be"),
        (b"a: 1\nb: 'x\n", 3, "quotes that are opened and not closed"),
        (b'a: "\\q"\n', 1, "unknown escape"),
        (b'a: "\\UFFFFFFFF"\n', 1, "cannot take"),
        (b"a: 1\nb c\nd: 2\n", 3, "is not YAML"),
        (b"%YAML 2.0\n---\na: 1\n", 1, "directive"),
    ],
)
def test_broken_text_is_one_clear_line(raw: bytes, line: int, reason: str) -> None:
    text = refusal(raw)
    assert "\n" not in text
    assert text.startswith(f"config.yaml:{line}: ")
    assert reason in text


@pytest.mark.parametrize("escape", ["\\0", "\\e", "\\x7f", "\\ud800"])
def test_control_character_by_escape_is_refused(escape: str) -> None:
    assert "a: '" in refusal(f'a: "x{escape}"\n'.encode())
    assert "control character" in refusal(f'"x{escape}": 1\n'.encode())


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbfsite: M\xc3\xbcnchen\n",
        "site: München\n".encode("utf-16"),
        b"\xfe\xff" + "site: München\r\n".encode("utf-16-be"),
        "site: München\n".encode("utf-32"),
        b"---\r\nsite: M\xc3\xbcnchen\r\n...\r\n",
        b"%YAML 1.2\n---\nsite: M\xc3\xbcnchen\n",
    ],
)
def test_byte_order_marks_and_utf_16_work(raw: bytes) -> None:
    assert parse(raw, "config.yaml") == {"site": "München"}


@pytest.mark.parametrize("raw", [b"", b"# only a comment\n", b"---\n", b"\n \n", b"\xef\xbb\xbf"])
def test_empty_text_is_an_empty_mapping(raw: bytes) -> None:
    assert parse(raw, "config.yaml") == {}


def laughs(per_level: int) -> bytes:
    """Nine levels, each a list of aliases to the level before."""
    lines = ["a: &a [" + ",".join(["lol"] * 9) + "]"]
    for below, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [" + ",".join([f"*{below}"] * per_level) + "]")
    return "\n".join(lines).encode()


@pytest.mark.parametrize(("per_level", "reason"), [(9, "more than 32 aliases"), (4, "more than 20000 values")])
def test_billion_laughs_is_refused_in_little_memory(per_level: int, reason: str) -> None:
    tracemalloc.start()
    try:
        text = refusal(laughs(per_level))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert reason in text
    assert peak_bytes < 50_000_000


def test_merge_bomb_is_refused() -> None:
    lines = ["a: &a {k: 1}"]
    for below, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} {{<<: [*{below}, *{below}, *{below}, *{below}]}}")
    assert "more than 20000 values" in refusal("\n".join(lines).encode())


def test_aliases_cannot_stack_depth() -> None:
    lines = ["a0: &a0 " + "[" * 18 + "]" * 18]
    lines += [f"a{i}: &a{i} " + "[" * 18 + f"*a{i - 1}" + "]" * 18 for i in range(1, 32)]
    assert "nested deeper than 20 levels" in refusal("\n".join(lines).encode())


@pytest.mark.parametrize("raw", [b"a: &a [*a]\n", b"a: &a {b: {c: *a}}\n", b"a: &a {<<: *a}\n"])
def test_alias_inside_itself_is_refused(raw: bytes) -> None:
    assert refusal(raw).startswith("config.yaml:1: an alias (*) stands inside what it refers to")


def test_few_aliases_are_fine() -> None:
    assert parse(b"a: &a [u, v]\nb: *a\n", "config.yaml") == {"a": ["u", "v"], "b": ["u", "v"]}


def test_tag_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    target = tmp_path / "pwned"
    text = refusal(f'x: !!python/object/apply:os.system ["touch {target}"]\n'.encode())
    assert text.startswith("config.yaml:1: tags (!...) are not allowed")
    assert not target.exists()


@pytest.mark.parametrize("value", ["!!str 12", "! 12", "!mine x", "!<tag:yaml.org,2002:int> 3", "!x!y z"])
def test_every_form_of_tag_is_refused(value: str) -> None:
    assert "tags (!...) are not allowed" in refusal(f"x: {value}\n".encode())


@pytest.mark.parametrize(
    "value", ["0012", "*S3cret", "&S3cret", "!S3cret", "!!S3cret x", "@S3cret", "%S3cret", "S3: cret", '"S3cret\\q"']
)
def test_no_message_repeats_a_password(value: str) -> None:
    text = refusal(f"password: {value}\n".encode())
    assert "cret" not in text
    assert "0012" not in text


def test_size_depth_and_alias_caps_are_parameters() -> None:
    assert "larger than 10 bytes" in refusal(b"a: " + b"x" * 10, max_bytes=10)
    assert "deeper than 2 levels" in refusal(b"a: {b: {c: 1}}", max_depth=2)
    assert "more than 1 aliases" in refusal(b"a: &a 1\nb: *a\nc: *a\n", max_aliases=1)


def test_long_values_are_cut_in_messages() -> None:
    assert len(refusal(b"a: 1" + b"1" * 60_000)) < 200
    assert len(refusal(b"a: {yes: 1, " + b"k" * 500 + b": 0012}")) < 500


def test_hundreds_of_problems_are_cut_short() -> None:
    text = refusal(b"".join(b"k%d: yes\n" % i for i in range(300)))
    assert len(text.splitlines()) == 41
    assert text.endswith("config.yaml: and 260 more")


@pytest.mark.parametrize(
    "value",
    [
        *["NO", "y", "0012", "22:00", "08:30", "2026-01-01", "1e3", "1_000", "12", "0x1F", "", " x ", "a: b", "#", "~"],
        *["0b65bdc8", "0o9f", "0b11", "0o17", "0xg"],  # a digest may begin like a number
        *["<<", "=", "*a", "München", "two\nlines", "rtsp://a:***@h/", "true", ".inf", "-", "'", '"', "\u2028"],
        "x" * 2000,
    ],
)
def test_dumped_text_is_read_back_the_same(value: str) -> None:
    values: dict[str, Any] = {"k": value, "l": [value, 1, 1.5, True, None, {}]}
    assert parse(dump(values).encode(), "dump") == values


def test_dumped_keys_are_read_back_the_same() -> None:
    values: dict[str, Any] = {"no": 1, "12": {"n": 2}, "1e3": [], "line1": None}
    assert parse(dump(values).encode(), "dump") == values
