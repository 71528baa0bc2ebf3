"""Messages: what the device says, as JSON; one function a topic, all pure. docs/mqtt.md is written from here.

Topics are below the device's own prefix (`<base>/<device>/`, which the transport adds). Every payload carries `v`, the
schema version; times are RFC 3339 UTC; a number that is not finite becomes null.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from edge_agent import __version__
from edge_agent.records import SCHEMA_VERSION, Message, Reading, Sample, json_bytes, rfc3339

STATUS_TOPIC = "status"
HEALTH_TOPIC = "health"
TELEMETRY_TOPIC = "telemetry"
DESIRED_CONFIG_TOPIC = "config/desired"
COMMAND_TOPICS = "command/+"  # a filter: one level below `command`, so replies are not heard

DeviceState = Literal["online", "stopped", "offline"]
PipelineState = Literal["starting", "building", "calibrating", "running", "degraded", "fault"]
CameraState = Literal["online", "stalled", "offline", "disabled"]

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


def result(reading: Reading, *, verdict: str | None = None, config_version: int | None = None) -> Message:
    """A reading, on `<camera>/result`: Reading.to_json with the verdict, null where nothing was verified."""
    body = {**reading.to_json(), "verdict": verdict, "config_version": config_version, "historical": False}
    return Message(f"{reading.camera}/result", json_bytes(body))


def as_historical(message: Message) -> Message:
    """The result with `historical` true, for one that is sent long after its capture; anything else unchanged.

    `historical` is the last member of a result's payload, so this costs no parsing.
    """
    if not message.payload.endswith(_NOT_HISTORICAL):
        return message
    payload = message.payload[: -len(_NOT_HISTORICAL)] + _HISTORICAL
    return Message(message.topic, payload, message.qos, message.retain)


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
