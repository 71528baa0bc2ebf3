"""Desired: what a text wishes for, or every reason why it is not taken (field cases CFG-4, TEL-2)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from edge_agent.remote.desired import DesiredRefused, parse_desired

CAP = 65_536
YAML_BOMB = b'a: &a ["lol"%s]\n' % (b', "lol"' * 8) + b"".join(
    b"%c: &%c [%s]\n" % (98 + n, 98 + n, b", ".join([b"*%c" % (97 + n)] * 9)) for n in range(8)
)


def text(**members: Any) -> bytes:
    return json.dumps({"version": 3, "token": "t-1", "patch": {"log": {"level": "debug"}}, **members}).encode()


def refused(payload: bytes, max_bytes: int = CAP) -> DesiredRefused:
    with pytest.raises(DesiredRefused) as caught:
        parse_desired(payload, max_bytes)
    return caught.value


def test_a_wish_is_read() -> None:
    desired = parse_desired(text(), CAP)
    assert (desired.version, desired.token, desired.kind) == (3, "t-1", "patch")
    assert desired.content == {"log": {"level": "debug"}}
    assert desired.text == text()


def test_content_is_the_same_whatever_its_version_token_and_order() -> None:
    one = parse_desired(b'{"version": 1, "patch": {"log": {"level": "info"}, "fields": {"max_fields": 3}}}', CAP)
    two = parse_desired(b'{"patch":{"fields":{"max_fields":3},"log":{"level":"info"}},"version":9,"token":"x"}', CAP)
    whole = parse_desired(b'{"config":{"fields":{"max_fields":3},"log":{"level":"info"}},"version":9}', CAP)
    assert one.digest == two.digest != whole.digest


@pytest.mark.parametrize("version", [None, True, 0, -1, 2**53, 1.5, 3.0, "3", [3], {}])
def test_version_is_a_whole_number_from_one(version: Any) -> None:
    caught = refused(text(version=version))
    assert [refusal.key for refusal in caught.refusals] == ["version"]
    assert (caught.version, caught.token) == (None, "t-1")


def test_missing_version_is_refused() -> None:
    assert "version: is missing" in str(refused(b'{"patch": {}}'))


@pytest.mark.parametrize("token", [3, True, ["t"], "x" * 129])
def test_token_is_a_short_text(token: Any) -> None:
    caught = refused(text(token=token))
    assert [refusal.key for refusal in caught.refusals] == ["token"]
    assert (caught.version, caught.token) == (3, None)


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (b'{"version": 1}', "neither is there"),
        (b'{"version": 1, "patch": {}, "config": {}}', "both are there"),
        (b'{"version": 1, "patch": []}', "patch: is a list"),
        (b'{"version": 1, "config": null}', "config: is null"),
        (b'{"version": 1, "patch": {}, "pacth": {}}', "pacth: is unknown here"),
        (b'{"version": 1, "patch": {}, "v": 2}', "v: is 2"),
        (b"[1]", "the top is a list"),
        (b"", "is not JSON"),
        (b"x: !!python/object/apply:os.system [true]", "is not JSON"),
        (b"a: &a [*a]", "is not JSON"),
        (YAML_BOMB, "is not JSON"),
        (b'{"version": 1, "patch": {"pipeline": {"min_confidence": NaN}}}', "NaN is not JSON"),
        (b'{"version": 1, "patch": {"pipeline": {"min_confidence": -Infinity}}}', "-Infinity is not JSON"),
        (b'{"version": 1, "patch": {"pipeline": {"min_confidence": 1e999}}}', "too large"),
        (b'{"version": 1, "version": 2, "patch": {}}', "version is twice"),
        (b'{"version": 1, "patch": {"a": 1, "a": 2}}', "a is twice"),
        (b'{"version": 1, "patch": ' + b"[" * 30_000 + b"]" * 30_000 + b"}", "nested deeper"),
        (b'{"version": 1, "patch": {"a": "x\\u0000.onnx"}}', "control character"),
        (b'{"version": 1, "patch": {"a": "\\ud800"}}', "control character"),
        (b'{"version": 1, "patch": {"a": "\xff"}}', "not UTF-8"),
    ],
)
def test_wrong_text_is_one_clear_refusal(payload: bytes, says: str) -> None:
    began = time.monotonic()
    assert says in str(refused(payload))
    assert time.monotonic() - began < 1.0


def test_size_is_looked_at_before_anything_is_parsed() -> None:
    caught = refused(b"\xff" * 1025, 1024)
    assert str(caught) == "1025 bytes are more than remote.max_bytes, 1024"
    assert caught.version is None


def test_no_refusal_repeats_a_value() -> None:
    assert "S3cret" not in str(refused(text(token={"password": "S3cret"}, version="S3cret")))
