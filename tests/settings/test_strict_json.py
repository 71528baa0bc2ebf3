"""Strict JSON: plain values come through, all that is not strict is refused by name."""

from __future__ import annotations

import pytest

from edge_agent.errors import ConfigError
from edge_agent.settings.strict_json import parse_json


def json_refusal(raw: bytes, **caps: int) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_json(raw, "desired", **caps)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_json_object_comes_through() -> None:
    raw = '{"a": [1, -2.5e3, true, null], "b": {"c": "\\ud83d\\ude00 NO 0012"}, "d": {}}'
    assert parse_json(raw.encode(), "desired") == {
        "a": [1, -2500.0, True, None],
        "b": {"c": "\U0001f600 NO 0012"},
        "d": {},
    }


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"fps": NaN}', "NaN is not JSON"),
        (b'{"fps": -Infinity}', "-Infinity is not JSON"),
        (b'{"fps": 1e999}', "too large"),
        (b'{"fps": -1e999}', "too large"),
        (b'{"fps": 1234567890123456789}', "more than 18 digits"),
        (b'{"a": 1, "a": 2}', "key a is twice in one object"),
        (b'{"x": {"a": 1, "a": 1}}', "key a is twice in one object"),
        (b'{"a": "\\u0000"}', "desired: a: holds a control character"),
        (b'{"a": ["\\ud800"]}', "desired: a[0]: holds a control character"),
        (b'{"a\\u0000": 1}', "key holds a control character"),
        (b"[1]", "the top is a list"),
        (b"12", "the top is a number"),
        (b"", "desired:1: is not JSON"),
        (b'{"a": 1,}', "desired:1: is not JSON"),
        (b'{\n"a": yes}', "desired:2: is not JSON"),
        (b'{"a": 1} x', "is not JSON"),
        (b'{"a": "\xfc"}', "not UTF-8"),
        (b'{"a":' * 5000, "nested deeper than 20 levels"),
        (b"[" * 5000, "nested deeper than 20 levels"),
        (b'{"a": "' + b"x" * 70_000 + b'"}', "larger than 65536 bytes"),
    ],
)
def test_json_that_is_not_strict_is_refused(raw: bytes, reason: str) -> None:
    assert reason in json_refusal(raw)


def test_json_brackets_in_text_are_not_depth() -> None:
    assert parse_json(b'{"a": "' + b"[" * 100 + b'\\"{"}', "desired") == {"a": "[" * 100 + '"{'}


def test_json_caps_are_parameters() -> None:
    assert "larger than 5 bytes" in json_refusal(b'{"a": 1}', max_bytes=5)
    assert "deeper than 1 levels" in json_refusal(b'{"a": {}}', max_depth=1)
