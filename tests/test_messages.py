"""Messages: every payload is strict JSON with the members the contract names."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from edge_agent import __version__, messages, registry
from edge_agent.agent import Agent
from edge_agent.agent_report import agent_sections
from edge_agent.cameras.status import CameraStatus
from edge_agent.clock import DeviceClock
from edge_agent.config import Config
from edge_agent.evidence import EvidenceStore
from edge_agent.expectations import Expectations
from edge_agent.inspection import Inspection
from edge_agent.no_text import NoTextLimit
from edge_agent.outbox.memory import MemoryOutbox
from edge_agent.publisher import PublisherStats
from edge_agent.records import (
    Character,
    Code,
    Field,
    Item,
    ItemField,
    ItemLine,
    Message,
    Origin,
    Quad,
    Reading,
    Reason,
    Sample,
    TextBox,
    TextLine,
    Vote,
)
from edge_agent.results import Results
from edge_agent.settings.cameras import RESERVED_CAMERA_NAMES, CameraConfig
from edge_agent.telemetry import SENSORS
from edge_agent.telemetry.vitals import Vitals
from edge_agent.telemetry.watch import BoardWatch
from tests.conftest import ROOT
from tests.telemetry import boards

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
    reason = Reason("lot: read", "read beyond doubt", "A1", "PASS")
    message = messages.result(
        reading(),
        boot_id="b",
        clock_trusted=True,
        verdict="PASS",
        reasons=[reason],
        expectation_id="job-7",
        config_version=3,
    )
    assert (message.topic, message.qos, message.retain) == ("line-1/result", 1, False)
    body = strict(message)
    clocks = {"captured_mono": None, "boot_id": "b", "clock_trusted": True}
    verified = {
        "verdict": "PASS",
        "reasons": [
            {"rule": "lot: read", "expected": "read beyond doubt", "seen": "A1", "verdict": "PASS", "why": None}
        ],
        "expectation_id": "job-7",
        "evidence_id": None,
    }
    assert body == {**reading().to_json(), **clocks, **verified, "config_version": 3, "historical": False}
    assert message.origin == Origin(reading().id, "line-1", 7, AT)


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
    message = messages.telemetry(
        samples, {"power_w.VDD_IN": "no such rail"}, {"withheld_no_text": {"line-1": 3}}, at=AT
    )
    assert (message.topic, message.qos, message.retain) == ("telemetry", 0, False)
    assert b'"ram_total_bytes":8000000000,' in message.payload
    assert strict(message) == {
        "v": 1,
        "at": AT_TEXT,
        "withheld_no_text": {"line-1": 3},
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
        messages.EVENT_TOPIC,
        messages.DESIRED_CONFIG_TOPIC,
        messages.COMMAND_TOPICS,
    )
    assert {topic.split("/")[0] for topic in topics} == RESERVED_CAMERA_NAMES


# docs/mqtt.md


def documented() -> dict[str, Any]:
    """Topic -> the example that the contract gives for it, by its heading."""
    text = (ROOT / "docs" / "mqtt.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    examples = {}
    for heading, body in sections:
        for block in re.findall(r"^```json\n(.*?)^```", body, re.MULTILINE | re.DOTALL):
            topic = heading.replace("&lt;camera&gt;", "line-1").replace("&lt;name&gt;", "ping")
            examples[topic] = strict(Message("example", block.encode()))
    return examples


def shape(value: Any) -> Any:
    """Names and kinds of members; null agrees with nothing but null."""
    if isinstance(value, dict):
        return {name: shape(member) for name, member in value.items()}
    if isinstance(value, list):
        return [shape(member) for member in value]
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def test_contract_shows_the_messages_that_are_sent() -> None:
    documented_quad = documented()["line-1/result"]["lines"][0]["quad"]
    box = TextBox(Quad(np.array(documented_quad, np.float32)), 0.9121)
    whole = Reading(
        "line-1",
        1742,
        AT,
        1280,
        720,
        lines=(TextLine("EXP 2027-08-12", 0.9873, box, characters=(Character("2", 0.8, 1.412, "Z"),), doubtful=(0,)),),
        fields=(
            Field("expiry_date", "2027-08-12", "2027-08-12", 0.9873, (0,)),
            Field("barcode_digits", "4006381333931", "4006381333931", 1.0, (), source="barcode", codes=(0,)),
        ),
        codes=(Code("EAN13", "4006381333931", box.quad),),
        timings_ms={"detect": 21.4, "recognise": 12.9, "extract": 0.6, "total": 34.9},
        engines={"detect": "a", "recognise": "b"},
        backend="onnxruntime",
        captured_mono=4711.204,
    )
    line = replace(whole.lines[0], doubtful=())
    item = Item(
        id="0c41d8a7e2b94f06a1d35e77",
        camera="line-1",
        first_seen_at=AT,
        last_seen_at=AT + 1,
        first_seq=1742,
        last_seq=1757,
        width_px=1280,
        height_px=720,
        n_reads=14,
        agreement=0.9964,
        decided_by="settled",
        decided_after_ms=412.6,
        lines=(ItemLine(line, 14, (Vote("B", 0.9286, "8"),)),),
        fields=(ItemField(whole.fields[0], 13, 0.9286),),
        verdict="FAIL",
        reasons=(Reason("lot: one of 2", "L2346A, L2346B", "L2345B", "FAIL", "differs"),),
        expectation_id="job-4711",
        evidence_id="0c41d8a7e2b94f06a1d35e77",
    )
    answer = messages.ExpectedAnswer("job-4711", 200, "in force", AT)
    sent = [
        messages.item(item, boot_id="52856abe7ad341ca88895fe5d84edad3", clock_trusted=True),
        messages.expected_reported("line-1", "job-4711", 200, detail="in force", answers=[answer], at=AT),
        messages.status("online", reason=None, at=AT, started_at=AT),
        messages.health("running", reason=None, backend="onnxruntime", precision="fp32", at=AT),
        messages.camera_status("line-1", "online", reason=None, last_frame_at=AT, at=AT),
        messages.result(whole, boot_id="52856abe7ad341ca88895fe5d84edad3", clock_trusted=True),
        messages.event("outbox_full", "the oldest readings are dropped", at=AT),
        messages.config_reported(42, 202, detail="on trial", token="shift-7", active_version=41, at=AT),
        messages.command_reply("ping", "c-1", "done", {"result": {"version": "0.1.0", "uptime_s": 3.25}}, AT),
    ]
    for message in sent:
        assert shape(strict(message)) == shape(documented()[message.topic]), message.topic


def results(folder: Path, put: Callable[[Message], None]) -> Results:
    """What counts readings and items, with evidence."""
    config = Config(cameras={"line-1": CameraConfig(kind="folder", source="x")})
    clock = DeviceClock()
    with EvidenceStore(folder / "evidence", config.evidence, lambda kind, text: None) as evidence:
        inspection = Inspection(config, put, clock, Expectations(config, put), evidence)
    return Results(put, clock, NoTextLimit(10.0), inspection=inspection)


def test_contract_lists_the_members_of_telemetry(tmp_path: Path) -> None:
    vitals = Vitals()
    vitals.count("line-1", "offered")
    vitals.timed({"detect": 52.1})
    outbox = MemoryOutbox(max_bytes=100_000, max_age_s=60)
    nothing = cast(Any, None)
    outbox.put(messages.result(reading()))
    agent = Agent(nothing, nothing, [], outbox, nothing, vitals, results(tmp_path, outbox.put), nothing)
    example = documented()["telemetry"]
    root = boards.orin_nano(tmp_path)
    clock = iter(range(20))
    watch = BoardWatch(root, lambda: (0, 0), lambda: float(next(clock)))
    watch.probe()()  # what is told is of the time since the last look
    probes = [registry.load(SENSORS, row, "sensor")(root) for row in SENSORS]
    rows = {sensor.name.split(".")[0] for probe in (*probes, watch.probe()) for sensor in probe()}
    assert {"v", "at", "absent", *rows, *agent_sections(agent), *watch.sections()} == set(example)
    assert set(example["cameras"]["line-1"]) == {field.name for field in fields(CameraStatus)} - {"camera"}
    assert set(example["publisher"]) == {field.name for field in fields(PublisherStats)}
    assert set(example["outbox"]) == set(asdict(outbox.stats()))
    for section in ("items", "evidence"):
        assert shape(agent_sections(agent)[section]()) == shape(example[section])
    assert shape(agent_sections(agent)["clock"]()) == shape(example["clock"])
    accounts, shown = agent_sections(agent)["ledger"](), example["ledger"]
    assert set(accounts) == set(shown)
    assert set(accounts["today"]["line-1"]) == set(shown["today"]["line-1"]) == set(shown["all"]["line-1"])
    assert set(example["latency_ms"]["detect"]) == set(vitals.latency_ms()["detect"])
    assert set(example["fps"]["line-1"]) == set(example["frames"]["line-1"]) == set(vitals.fps()["line-1"])
