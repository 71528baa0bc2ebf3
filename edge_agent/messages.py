"""Messages: what the device says, as JSON; one function a topic, all pure. docs/mqtt.md is written from here.

Topics are below the device's own prefix (`<base>/<device>/`, which the transport adds). Every payload carries `v`, the
schema version; times are RFC 3339 UTC; a number that is not finite becomes null.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from edge_agent import __version__
from edge_agent.records import (
    SCHEMA_VERSION,
    Item,
    Message,
    Origin,
    Reading,
    Reason,
    Sample,
    Verdict,
    json_bytes,
    reason_to_json,
    rfc3339,
)

STATUS_TOPIC = "status"
HEALTH_TOPIC = "health"
TELEMETRY_TOPIC = "telemetry"
EVENT_TOPIC = "event"
DESIRED_CONFIG_TOPIC = "config/desired"
REPORTED_CONFIG_TOPIC = "config/reported"
EXPECTED = "expected"  # below a camera's name: what its items must say
TRIGGER = "trigger"  # below a camera's name: an item is there
COMMAND_TOPICS = "command/+"  # a filter: one level below `command`, so replies are not heard

DeviceState = Literal["online", "stopped", "offline"]
PipelineState = Literal["starting", "building", "calibrating", "running", "degraded", "fault"]
CameraState = Literal["online", "stalled", "offline", "disabled"]
CommandState = Literal["accepted", "done", "failed", "busy", "duplicate"]
ExpectedCode = Literal[200, 400, 409, 429]

WHOLE_UNITS = frozenset({"bytes", "count"})  # of samples that are written without a decimal point

_NOT_HISTORICAL = b'"historical":false}'
_HISTORICAL = b'"historical":true}'


def status(state: DeviceState, *, reason: str | None, at: float | None, started_at: float) -> Message:
    """Whether the device is there, retained on `status`.

    The last will is one of these with state `offline` and `at` None: nobody can know beforehand when it will be sent.
    `started_at` is when this process started, unix s.
    """
    return _retained(
        STATUS_TOPIC,
        {
            "state": state,
            "reason": reason,
            "at": None if at is None else rfc3339(at),
            "started_at": rfc3339(started_at),
            "version": __version__,
        },
    )


def health(
    pipeline: PipelineState, *, reason: str | None, backend: str | None, precision: str | None, at: float
) -> Message:
    """How the reading goes, retained on `health`; `backend` and `precision` are null until engines are loaded."""
    return _retained(
        HEALTH_TOPIC,
        {"pipeline": pipeline, "reason": reason, "backend": backend, "precision": precision, "at": rfc3339(at)},
    )


def camera_status(
    camera: str, state: CameraState, *, reason: str | None, last_frame_at: float | None, at: float
) -> Message:
    """Whether a camera gives frames, retained on `<camera>/status`; `last_frame_at` unix s or None."""
    return _retained(
        f"{camera}/status",
        {
            "camera": camera,
            "state": state,
            "reason": reason,
            "last_frame_at": None if last_frame_at is None else rfc3339(last_frame_at),
            "at": rfc3339(at),
        },
    )


def config_reported(
    version: int | None,
    code: Literal[200, 202, 400, 500],
    *,
    detail: str | None,
    token: str | None,
    active_version: int | None,
    rolled_back_from: int | None = None,
    refused: Iterable[tuple[str, str]] = (),
    at: float,
) -> Message:
    """What became of the configuration wished for, retained on `config/reported`: 202 on trial, 200 in force, 400 not
    taken (`refused` gives each key with the reason), 500 rolled back or not to be kept.

    `active_version` is what is in force, None for the device's own settings.
    """
    return _retained(
        REPORTED_CONFIG_TOPIC,
        {
            "version": version,
            "code": code,
            "detail": detail,
            "token": token,
            "active_version": active_version,
            "rolled_back_from": rolled_back_from,
            "refused": [{"key": key, "why": why} for key, why in refused],
            "at": rfc3339(at),
        },
    )


def command_reply(
    name: str, command_id: str | None, state: CommandState, body: Mapping[str, Any], at: float
) -> Message:
    """What became of a command, on `command/<name>/reply`; `body` holds further members: `result` or `reason`."""
    reply = {"v": SCHEMA_VERSION, "id": command_id, "state": state, **body, "at": rfc3339(at)}
    return Message(f"command/{name}/reply", json_bytes(reply))


def result(
    reading: Reading,
    *,
    boot_id: str | None = None,
    clock_trusted: bool = False,
    verdict: Verdict | None = None,
    reasons: Iterable[Reason] = (),
    expectation_id: str | None = None,
    evidence_id: str | None = None,
    config_version: int | None = None,
) -> Message:
    """A reading, on `<camera>/result`: Reading.to_json, the clocks it was made by, and the verdict, null where nothing
    was verified."""
    mono = reading.captured_mono
    body = {
        **reading.to_json(),
        "captured_mono": None if mono is None else round(mono, 3),
        "boot_id": boot_id,
        "clock_trusted": clock_trusted,
        "verdict": verdict,
        "reasons": [reason_to_json(reason) for reason in reasons],
        "expectation_id": expectation_id,
        "evidence_id": evidence_id,
        "config_version": config_version,
        "historical": False,
    }
    origin = Origin(body["id"], reading.camera, reading.seq, reading.captured_at)
    return Message(f"{reading.camera}/result", json_bytes(body), origin=origin)


def item(
    made: Item, *, boot_id: str | None = None, clock_trusted: bool = False, config_version: int | None = None
) -> Message:
    """An item, on `<camera>/item`: Item.to_json and the clock it was made by. Its origin counts it as a reading of the
    frame that showed it last."""
    body = {
        **made.to_json(),
        "boot_id": boot_id,
        "clock_trusted": clock_trusted,
        "config_version": config_version,
        "historical": False,
    }
    return Message(
        f"{made.camera}/item",
        json_bytes(body),
        origin=Origin(made.id, made.camera, made.last_seq, made.last_seen_at),
    )


@dataclass(frozen=True)
class ExpectedAnswer:
    """What became of one expectation that came, or of several that were not looked at: 200 it was put in force, 400
    refused, 409 replaced by one behind it before it was in force, 429 too many waited. `at` unix s."""

    id: str | None
    code: ExpectedCode
    detail: str
    at: float


def expected_reported(
    camera: str,
    expectation_id: str | None,
    code: Literal[200, 400],
    *,
    detail: str | None,
    answers: Iterable[ExpectedAnswer] = (),
    at: float,
) -> Message:
    """What a camera's items must say now, retained on `<camera>/expected/reported`: 200 the expectation of this id is
    in force (null: nothing is expected), 400 the newest that came is not taken, and the one of this id is in force.

    `answers` tell of the newest that came, in the order of arrival.
    """
    said = [{"id": each.id, "code": each.code, "detail": each.detail, "at": rfc3339(each.at)} for each in answers]
    return _retained(
        f"{camera}/{EXPECTED}/reported",
        {"camera": camera, "id": expectation_id, "code": code, "detail": detail, "answers": said, "at": rfc3339(at)},
    )


def event(kind: str, text: str, *, unsaid: int = 0, at: float) -> Message:
    """Something that happened to the device, on `event`; `unsaid` others of its kind came since the last one said."""
    body = {"v": SCHEMA_VERSION, "at": rfc3339(at), "kind": kind, "text": text, "unsaid": unsaid}
    return Message(EVENT_TOPIC, json_bytes(body))


def as_historical(message: Message) -> Message:
    """The result with `historical` true, for one that is sent long after its capture; anything else unchanged.

    `historical` is the last member of a result's payload, so this costs no parsing.
    """
    if not message.payload.endswith(_NOT_HISTORICAL):
        return message
    payload = message.payload[: -len(_NOT_HISTORICAL)] + _HISTORICAL
    return Message(message.topic, payload, message.qos, message.retain, message.origin)


def telemetry(
    samples: Iterable[Sample], absent: Mapping[str, str], sections: Mapping[str, Any], *, at: float
) -> Message:
    """The device's figures, on `telemetry` at QoS 0.

    Each sample stands under its name; a dot in the name nests it (`temp_c.cpu` is `{"temp_c": {"cpu": ...}}`).
    `absent` says why a value is null, by name. `sections` are whole members: fps, latency_ms, outbox and such.
    """
    body: dict[str, Any] = {"v": SCHEMA_VERSION, "at": rfc3339(at), **sections}
    reasons = dict(absent)
    for sample in samples:
        value = sample.value
        if value is not None and not math.isfinite(value):
            reasons.setdefault(sample.name, f"not a finite number: {value}")
            value = None
        if value is not None and sample.unit in WHOLE_UNITS:
            value = round(value)
        group, _, member = sample.name.partition(".")
        if member:
            body.setdefault(group, {})[member] = value
        else:
            body[group] = value
    return Message(TELEMETRY_TOPIC, json_bytes({**body, "absent": reasons}), qos=0)


def _retained(topic: str, body: Mapping[str, Any]) -> Message:
    return Message(topic, json_bytes({"v": SCHEMA_VERSION, **body}), retain=True)
