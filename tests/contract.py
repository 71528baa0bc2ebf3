"""The contract of docs/mqtt, held strictly: every payload the device says must be what its schema says, and no more.

`check(topic, payload)` for a topic below the device's own prefix. What is published lets a later device add members;
here a member that the schema does not name is a fault as well.
"""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import best_match

from edge_agent.schema.channels import Channel, channel_of
from edge_agent.schema.documents import message_schema

FORMATS = FormatChecker(formats=())


@FORMATS.checks("date-time", raises=ValueError)
def is_time(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value.replace("Z", "+00:00")).tzinfo is not None


def strict(payload: bytes) -> Any:
    """The JSON value, by a parser that refuses what RFC 8259 does, and members that come twice."""
    return json.loads(payload.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_without_twins)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    assert len(members) == len(pairs), f"a member comes twice: {[name for name, _ in pairs]}"
    return members


def closed(schema: Any) -> Any:
    """The schema with no room for members that it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(value) for name, value in schema.items()}
    if "properties" in schema and schema.get("additionalProperties") is True:
        made["additionalProperties"] = False
    return made


@cache
def validator(channel: Channel) -> Draft202012Validator:
    schema = closed(message_schema(channel))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=FORMATS)


def fault_of(topic: str, payload: bytes) -> str | None:
    """Why a payload is not what its topic may carry; None where it is."""
    channel = channel_of(topic)
    if channel is None:
        return f"{topic} is no topic of the contract"
    try:
        error = best_match(validator(channel).iter_errors(strict(payload)))
    except (ValueError, AssertionError) as exc:
        return f"{topic}: {exc} in {payload[:500]!r}"
    return None if error is None else f"{topic}: {error.json_path}: {error.message[:500]} in {payload[:2000]!r}"


def check(topic: str, payload: bytes) -> None:
    """AssertionError for a payload that breaks the contract."""
    fault = fault_of(topic, payload)
    assert fault is None, fault
