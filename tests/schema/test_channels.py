"""Channels: which topics the contract has, and that what is heard is judged as its schema says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from edge_agent.errors import ConfigError
from edge_agent.remote.command_control import parse_call
from edge_agent.remote.desired import parse_desired
from edge_agent.schema.channels import channel_of, channels
from edge_agent.schema.documents import message_schema
from tests import contract
from tests.test_messages import documented


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("status", "status"),
        ("line-1/status", "camera-status"),
        ("line-1/result", "result"),
        ("config/desired", "config-desired"),
        ("command/log-level", "command-log-level"),
        ("command/log-level/reply", "command-log-level-reply"),
        ("command/dance/reply", "command-unknown-reply"),
        ("command/dance", None),
        ("command/status", None),
        ("health/result", None),
        ("line 1/result", None),
        (".hidden/status", None),
        ("a/b/result", None),
        ("", None),
    ],
)
def test_topic_has_the_channel_that_the_contract_gives_it(topic: str, name: str | None) -> None:
    channel = channel_of(topic)
    assert (None if channel is None else channel.name) == name


def test_examples_of_the_contract_are_valid() -> None:
    examples = documented()
    said = {channel.topic.replace("{camera}", "line-1") for channel in channels().values() if channel.name in examples}
    assert said <= set(examples)
    for topic, example in examples.items():
        contract.check(topic, json.dumps(example).encode())


GOOD: dict[str, Any] = {
    "v": 1,
    "state": "online",
    "reason": None,
    "at": "2026-11-30T12:00:00.000Z",
    "started_at": "2026-11-30T11:59:57.120Z",
    "version": "0.1.0",
}


@pytest.mark.parametrize(
    ("payload", "fault"),
    [
        (b'{"v":1,"v":1}', "a member comes twice"),
        (b'{"v":NaN}', "NaN is no JSON"),
        (b'{"v":-Infinity}', "Infinity is no JSON"),
        (b'{"v":"\xff"}', "can't decode"),
        (b"[]", "is not of type 'object'"),
        (b"", "Expecting value"),
        (json.dumps({**GOOD, "extra": 1}).encode(), "unexpected"),
        (json.dumps({**GOOD, "v": 2}).encode(), "1 was expected"),
        (json.dumps({**GOOD, "state": "up"}).encode(), "is not one of"),
        (json.dumps({**GOOD, "started_at": "2026-11-30T11:59:57+00:00"}).encode(), "does not match"),
        (json.dumps({**GOOD, "started_at": "2026-13-30T11:59:57.120Z"}).encode(), "is not a 'date-time'"),
        (json.dumps({name: value for name, value in GOOD.items() if name != "at"}).encode(), "'at' is a required"),
    ],
)
def test_strict_check_finds_what_breaks_the_contract(payload: bytes, fault: str) -> None:
    assert contract.fault_of("status", json.dumps(GOOD).encode()) is None
    assert fault in str(contract.fault_of("status", payload))


def valid(channel: str, value: Any) -> bool:
    return Draft202012Validator(message_schema(channels()[channel])).is_valid(value)


def taken_as_desired(value: Any) -> bool:
    try:
        parse_desired(json.dumps(value).encode(), 65_536)
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize(
    ("wish", "right"),
    [
        ({"version": 1, "patch": {}}, True),
        ({"v": 1, "version": 2**53 - 1, "token": "a" * 128, "config": {"log": {"level": "debug"}}}, True),
        ({"version": 7, "token": None, "patch": {"log": None}}, True),
        ({"version": 0, "patch": {}}, False),
        ({"version": 2**53, "patch": {}}, False),
        ({"version": "7", "patch": {}}, False),
        ({"version": True, "patch": {}}, False),
        ({"version": 1.5, "patch": {}}, False),
        ({"patch": {}}, False),
        ({"version": 1}, False),
        ({"version": 1, "patch": {}, "config": {}}, False),
        ({"version": 1, "patch": []}, False),
        ({"version": 1, "patch": {}, "token": 7}, False),
        ({"version": 1, "patch": {}, "token": "a" * 129}, False),
        ({"version": 1, "patch": {}, "comment": ""}, False),
        ({"v": 2, "version": 1, "patch": {}}, False),
        ([], False),
    ],
)
def test_schema_and_device_judge_a_wish_alike(wish: Any, right: bool) -> None:
    assert valid("config-desired", wish) is taken_as_desired(wish) is right


def taken_as_call(name: str, value: Any) -> bool:
    try:
        parse_call(name, json.dumps(value).encode(), 65_536)
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize(
    ("call", "right"),
    [
        ({"id": "c-1"}, True),
        ({"id": "A.b_c:d-9", "args": {}, "v": 1}, True),
        ({"id": "c-1", "args": None, "expires_at": "2026-11-30T12:00:30Z"}, True),
        ({"id": "c-1", "expires_at": "2026-11-30T13:00:30.500+01:00"}, True),
        ({"id": "c-1", "expires_at": "2026-11-30T12:00:30.5Z"}, True),
        ({"id": "c-1", "expires_at": "2026-11-30T12:00:30.123456789Z"}, True),
        ({"id": "c-1", "expires_at": "2026-11-30T12:00Z"}, True),
        ({"id": "c-1", "expires_at": "20261130T120030Z"}, False),
        ({"id": "c-1", "expires_at": "2026-11-30 12:00:30Z"}, False),
        ({"id": "c-1", "expires_at": "2026-11-30T12:00:30,5Z"}, False),
        ({}, False),
        ({"id": ""}, False),
        ({"id": "a" * 65}, False),
        ({"id": "a b"}, False),
        ({"id": 7}, False),
        ({"id": "c-1", "args": []}, False),
        ({"id": "c-1", "expires_at": "2026-11-30T12:00:30"}, False),
        ({"id": "c-1", "expires_at": 1_796_040_030}, False),
        ({"id": "c-1", "when": "now"}, False),
    ],
)
def test_schema_and_device_judge_a_command_alike(call: Any, right: bool) -> None:
    assert valid("command-ping", call) is taken_as_call("ping", call) is right


def test_arguments_are_those_of_the_command() -> None:
    assert valid("command-snapshot", {"id": "c-1", "args": {"camera": "line-1", "quality": 50}})
    assert not valid("command-snapshot", {"id": "c-1"})
    assert not valid("command-snapshot", {"id": "c-1", "args": {"camera": "line-1", "quality": 500}})
    assert not valid("command-log-level", {"id": "c-1", "args": {"level": "loud"}})
    assert not valid("command-ping", {"id": "c-1", "args": {"loud": True}})
