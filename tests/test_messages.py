"""Messages: every payload is strict JSON with the members the contract names."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from edge_agent import __version__, messages
from edge_agent.config import RESERVED_CAMERA_NAMES
from edge_agent.records import Message, Quad, Reading, Sample, TextBox, TextLine

AT = 1_800_000_000.25
AT_TEXT = "2027-01-15T08:00:00.250Z"


def strict(message: Message) -> Any:
    """The payload, by a parser that refuses what RFC 8259 refuses (field case TEL-2)."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in {message.payload!r}")

    return json.loads(message.payload.decode("utf-8"), parse_constant=refuse)


def reading(confidence: float = 0.9) -> Reading:
    box = TextBox(Quad(np.array([[0, 0], [10, 0], [10, 5], [0, 5]], np.float32)), 0.8)
    return Reading("line-1", 7, AT, 640, 480, lines=(TextLine("LOT A1", confidence, box),), timings_ms={"detect": 3.2})


def test_device_status_is_a_retained_state() -> None:
    message = messages.status("online", reason=None, at=AT, started_at=AT - 60)
    assert (message.topic, message.qos, message.retain) == ("status", 1, True)
    assert strict(message) == {
        "v": 1,
        "state": "online",
        "reason": None,
        "at": AT_TEXT,
        "started_at": "2027-01-15T07:59:00.250Z",
        "version": __version__,
    }


def test_will_does_not_pretend_to_know_when_it_is_sent() -> None:
    assert strict(messages.status("offline", reason="lost", at=None, started_at=AT))["at"] is None


def test_health_names_backend_and_precision() -> None:
    message = messages.health("running", reason=None, backend="onnxruntime", precision="fp32", at=AT)
    assert (message.topic, message.retain) == ("health", True)
    assert strict(message) == {
        "v": 1,
        "pipeline": "running",
        "reason": None,
        "backend": "onnxruntime",
        "precision": "fp32",
        "at": AT_TEXT,
    }


def test_camera_status_stands_below_the_camera() -> None:
    message = messages.camera_status("line-1", "offline", reason="unplugged", last_frame_at=None, at=AT)
    assert (message.topic, message.qos, message.retain) == ("line-1/status", 1, True)
    assert strict(message) == {
        "v": 1,
        "camera": "line-1",
        "state": "offline",
        "reason": "unplugged",
        "last_frame_at": None,
        "at": AT_TEXT,
    }


def test_result_is_the_reading_and_is_not_retained() -> None:
    message = messages.result(reading(), verdict="PASS", config_version=3)
    assert (message.topic, message.qos, message.retain) == ("line-1/result", 1, False)
    body = strict(message)
    assert body == {**reading().to_json(), "verdict": "PASS", "config_version": 3, "historical": False}


def test_historical_result_differs_in_that_one_member() -> None:
    fresh = messages.result(reading())
    late = messages.as_historical(fresh)
    assert strict(late) == {**strict(fresh), "historical": True}
    assert (late.topic, late.qos, late.retain) == (fresh.topic, fresh.qos, fresh.retain)
    assert messages.as_historical(late) == late
    other = messages.health("running", reason=None, backend=None, precision=None, at=AT)
    assert messages.as_historical(other) is other


def test_result_with_numpy_and_not_a_number_confidence_is_strict_json() -> None:
    for confidence in (np.float32("nan"), np.float32(0.5), np.int64(1), math.inf):
        line = strict(messages.result(reading(confidence)))["lines"][0]
        assert line["confidence"] == (float(confidence) if math.isfinite(confidence) else None)


def test_telemetry_nests_dotted_names_and_says_why_a_value_is_null() -> None:
    samples = [
        Sample("cpu_percent", 12.5, "percent", AT),
        Sample("ram_total_bytes", 8e9, "bytes", AT),
        Sample("temp_c.cpu", 51.0, "c", AT),
        Sample("temp_c.gpu", math.inf, "c", AT),
        Sample("power_w.VDD_IN", None, "w", AT),
    ]
    message = messages.telemetry(samples, {"power_w.VDD_IN": "no such rail"}, {"fps": {"line-1": None}}, at=AT)
    assert (message.topic, message.qos, message.retain) == ("telemetry", 0, False)
    assert b'"ram_total_bytes":8000000000,' in message.payload
    assert strict(message) == {
        "v": 1,
        "at": AT_TEXT,
        "fps": {"line-1": None},
        "cpu_percent": 12.5,
        "ram_total_bytes": 8_000_000_000,
        "temp_c": {"cpu": 51.0, "gpu": None},
        "power_w": {"VDD_IN": None},
        "absent": {"temp_c.gpu": "not a finite number: inf", "power_w.VDD_IN": "no such rail"},
    }


def test_no_camera_can_be_named_like_a_topic_of_the_device() -> None:
    topics = (
        messages.STATUS_TOPIC,
        messages.HEALTH_TOPIC,
        messages.TELEMETRY_TOPIC,
        messages.DESIRED_CONFIG_TOPIC,
        messages.COMMAND_TOPICS,
    )
    assert {topic.split("/")[0] for topic in topics} == RESERVED_CAMERA_NAMES
