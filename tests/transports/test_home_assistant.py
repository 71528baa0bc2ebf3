"""Home Assistant: what is announced is what discovery wants, shows what the device says, and goes when it should."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import pytest
from jsonschema import Draft202012Validator

from edge_agent import messages
from edge_agent.config import Config, patched
from edge_agent.errors import ConfigError
from edge_agent.messages import STATUS_TOPIC
from edge_agent.transports.home_assistant import HomeAssistant, discovery, find_announced, object_id
from edge_agent.transports.mqtt import MqttTransport
from tests.broker import DEADLINE_S, Broker, Observer, wait_until
from tests.test_messages import documented
from tests.transports.test_mqtt import BIRTH, BOTH_PROTOCOLS, WILL

CAMERA = {"kind": "folder", "source": "/pictures"}
TOPIC = "homeassistant/device/press-7/config"
PREFIX = "edge/press-7/"

TEXT = {"type": "string", "minLength": 1}
# one topic, without wildcards
STATE_TOPIC = {"type": "string", "pattern": r"^[^+#\u0000/]+(/[^+#\u0000/]+)*$"}
AVAILABILITY = {
    "type": "object",
    "required": ["topic"],
    "properties": {
        "topic": STATE_TOPIC,
        "value_template": TEXT,
        "payload_available": TEXT,
        "payload_not_available": TEXT,
    },
    "additionalProperties": False,
}
ENTITY = {
    "platform": TEXT,
    "name": TEXT,
    "unique_id": TEXT,
    "state_topic": STATE_TOPIC,
    "value_template": TEXT,
    "availability": {"type": "array", "items": AVAILABILITY, "minItems": 1},
    "entity_category": {"enum": ["diagnostic", "config"]},
    "json_attributes_topic": STATE_TOPIC,
    "json_attributes_template": TEXT,
}
NEEDED = ["platform", "unique_id", "state_topic"]
BINARY_SENSOR = {
    "properties": {**ENTITY, "platform": {"const": "binary_sensor"}, "device_class": {"enum": ["connectivity"]}},
    "required": NEEDED,
    "additionalProperties": False,
}
# with device class enum there are options, and neither a unit nor a state class
SENSOR = {
    "properties": {
        **ENTITY,
        "platform": {"const": "sensor"},
        "device_class": {"enum": ["enum", "temperature", "power", "data_size"]},
        "options": {"type": "array", "items": TEXT, "minItems": 1, "uniqueItems": True},
        "state_class": {"enum": ["measurement", "total", "total_increasing"]},
        "unit_of_measurement": TEXT,
    },
    "required": NEEDED,
    "additionalProperties": False,
    "if": {"properties": {"device_class": {"const": "enum"}}, "required": ["device_class"]},
    "then": {
        "required": ["options"],
        "not": {"anyOf": [{"required": ["state_class"]}, {"required": ["unit_of_measurement"]}]},
    },
    "else": {"not": {"required": ["options"]}},
}
DOCUMENTED = {
    "type": "object",
    "required": ["device", "origin", "components"],
    "properties": {
        "device": {
            "type": "object",
            "required": ["identifiers"],
            "properties": {
                "identifiers": {"type": "array", "items": TEXT, "minItems": 1},
                **dict.fromkeys(("name", "manufacturer", "model", "sw_version", "hw_version", "serial_number"), TEXT),
            },
            "additionalProperties": False,
        },
        "origin": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": TEXT, "sw_version": TEXT, "support_url": TEXT},
            "additionalProperties": False,
        },
        "components": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": "^[A-Za-z0-9_-]+$"},
            "additionalProperties": {"anyOf": [SENSOR, BINARY_SENSOR]},
        },
        "qos": {"enum": [0, 1, 2]},
        "state_topic": STATE_TOPIC,
        "encoding": TEXT,
    },
    "additionalProperties": False,
}


def config(**keys: Any) -> Config:
    cameras = {"line-1": CAMERA, "hall.2": CAMERA}
    mqtt = {"home_assistant": "homeassistant", "reconnect_min_s": 0.05, "reconnect_max_s": 0.2, **keys}
    return patched(Config(), {"device_id": "press-7", "cameras": cameras, "mqtt": mqtt})


def components() -> dict[str, Any]:
    return dict(discovery(config(), "press-7")["components"])


def shown(key: str, payload: Any, state: str = "before") -> str:
    """What Home Assistant makes of a payload for one entity."""
    template = jinja2.Environment().from_string(components()[key]["value_template"])
    return template.render(value_json=payload, value=json.dumps(payload), this={"state": state})


# What is announced


def test_announcement_is_as_device_discovery_wants_it() -> None:
    announced = discovery(config(), "press-7")
    Draft202012Validator(DOCUMENTED).validate(announced)
    assert announced["device"]["identifiers"] == ["press-7"]
    ids = [entity["unique_id"] for entity in announced["components"].values()]
    assert len(set(ids)) == len(ids)


def test_there_are_entities_for_the_device_and_for_each_camera() -> None:
    expected = {"status", "health", "temperature", "power", "cpu", "ram_available", "disk_free", "outbox_depth"}
    cameras = {f"{key}_{what}" for key in ("line-1", object_id("hall.2")) for what in ("status", "reading", "fps")}
    assert set(components()) == expected | cameras


def test_every_state_topic_is_one_of_the_contract() -> None:
    for key, entity in components().items():
        topic = entity["state_topic"].removeprefix(PREFIX).replace("hall.2", "line-1")
        assert topic in documented(), key
        assert [place["topic"] for place in entity.get("availability", ())] == (
            [] if key == "status" else [PREFIX + STATUS_TOPIC]
        )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("status", lambda body: "ON" if body["state"] == "online" else "OFF"),
        ("health", lambda body: body["pipeline"]),
        ("cpu", lambda body: body["cpu_percent"]),
        ("ram_available", lambda body: body["ram_available_bytes"]),
        ("disk_free", lambda body: body["disk_free_bytes"]),
        ("outbox_depth", lambda body: body["outbox"]["depth"]),
        ("temperature", lambda body: max(value for value in body["temp_c"].values() if value is not None)),
        ("power", lambda body: body["power_w"]["total"]),
        ("line-1_status", lambda body: body["state"]),
        ("line-1_fps", lambda body: body["fps"]["line-1"]["processed"]),
        ("line-1_reading", lambda body: "; ".join(f"{field['name']}: {field['value']}" for field in body["fields"])),
        (f"{object_id('hall.2')}_fps", lambda body: None),
    ],
)
def test_templates_show_what_the_contract_gives_as_examples(key: str, value: Callable[[Any], object]) -> None:
    topic = components()[key]["state_topic"].removeprefix(PREFIX).replace("hall.2", "line-1")
    example = documented()[topic]
    assert shown(key, example) == str(value(example))


def test_hottest_temperature_and_the_power_of_the_whole_are_shown() -> None:
    assert shown("temperature", {"temp_c": {"cpu": 51.0, "gpu": 62.5, "soc": None}}) == "62.5"
    assert shown("temperature", {}) == shown("temperature", {"temp_c": {"cpu": None}}) == "None"
    assert shown("power", {"power_w": {"VDD_IN": 14.2, "VDD_CPU_GPU_CV": 6.0, "total": 14.2}}) == "14.2"
    assert shown("power", {}) == shown("power", {"power_w": {"total": None}}) == "None"


def test_reading_shows_fields_else_lines_else_why_there_are_none() -> None:
    field = {"name": "lot", "value": "A1"}
    line = {"text": "LOT A1"}
    reading: dict[str, Any] = {"historical": False, "reason": None, "lines": [line, line], "fields": []}
    assert shown("line-1_reading", {**reading, "fields": [field, {"name": "best_before", "value": "2027-01-31"}]}) == (
        "lot: A1; best_before: 2027-01-31"
    )
    assert shown("line-1_reading", reading) == "LOT A1; LOT A1"
    assert shown("line-1_reading", {**reading, "lines": [], "reason": "no_text"}) == "no_text"
    assert len(shown("line-1_reading", {**reading, "lines": [line] * 100})) == 255


def test_reading_of_the_backlog_does_not_take_the_place_of_a_newer_one() -> None:
    reading = {"historical": True, "reason": None, "lines": [{"text": "old"}], "fields": []}
    assert shown("line-1_reading", reading, state="lot: B2") == "lot: B2"


def test_camera_whose_readings_are_joined_has_the_verdict_of_its_last_item() -> None:
    for settings in ({"items": "conveyor"}, {"trigger": {"kind": "motion"}}):
        announced = discovery(patched(config(), {"cameras": {"line-1": settings}}), "press-7")
        Draft202012Validator(DOCUMENTED).validate(announced)
        assert {key for key in announced["components"] if key.endswith("_verdict")} == {"line-1_verdict"}
        entity = announced["components"]["line-1_verdict"]
        item = documented()[entity["state_topic"].removeprefix(PREFIX)]

        def made(template: str, payload: dict[str, Any]) -> str:
            rendered = jinja2.Environment().from_string(template)
            return rendered.render(value_json=payload, this={"state": "PASS"})

        assert made(entity["value_template"], item) == item["verdict"]
        assert made(entity["value_template"], {**item, "historical": True}) == "PASS"
        assert made(entity["value_template"], {**item, "verdict": None}) == "PASS"
        attributes = json.loads(made(entity["json_attributes_template"], item))
        assert attributes["reasons"] == item["reasons"]


def test_status_is_shown_off_and_everything_else_unavailable_unless_it_is_online() -> None:
    (place,) = components()["cpu"]["availability"]
    template = jinja2.Environment().from_string(place["value_template"])
    for state, shown_as, there in (
        ("online", "ON", "online"),
        ("stopped", "OFF", "offline"),
        ("offline", "OFF", "offline"),
    ):
        assert shown("status", {"state": state}) == shown_as
        assert template.render(value_json={"state": state}) == there


def test_ids_keep_different_names_apart() -> None:
    assert object_id("line-1") == "line-1"
    names = ["a.b", "a_b", "a-b", "a..b", "a__b"]
    assert len({object_id(name) for name in names}) == len(names)


@pytest.mark.parametrize("prefix", ["", "home/assistant", "#", "a+b", "x" * 65])
def test_prefix_that_is_no_topic_level_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigError, match="home_assistant"):
        config(home_assistant=prefix)


def test_note_of_what_was_announced_is_kept_with_the_other_state() -> None:
    assert find_announced({"STATE_DIRECTORY": "/var/lib/edge-agent"}) == Path("/var/lib/edge-agent/home-assistant.txt")
    assert find_announced({}) == Path("state/home-assistant.txt")


# Against a real broker


@pytest.fixture
def announce(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., MqttTransport]:
    """Opens the transport of press-7, closed after the test; its notes are in `tmp_path`."""

    def announce(settings: Config, note: Path = tmp_path / "note.txt") -> MqttTransport:
        home_assistant = HomeAssistant(settings, "press-7", note)
        transport = MqttTransport(settings.mqtt, "press-7", WILL, lambda: [BIRTH], home_assistant)
        request.addfinalizer(lambda: transport.close(None, 1.0))
        transport.open(lambda: None)
        return transport

    return announce


def heard(observer: Observer, topic: str = TOPIC) -> list[bytes]:
    return observer.payloads(topic)


def kept(broker: Broker, prefix: str = "homeassistant") -> list[tuple[str, bytes]]:
    """What the broker keeps below a discovery prefix; a message of our own is the sign that all has come."""
    with Observer(broker.port, f"{prefix}/device/#", "sign") as late:
        late.publish("sign", b"")
        late.wait_for("sign", b"")
        return [(one.topic, one.payload) for one in late.heard if one.retained]


@BOTH_PROTOCOLS
def test_device_is_announced_and_again_when_home_assistant_has_started(
    broker: Broker, announce: Callable[..., MqttTransport], protocol: str
) -> None:
    expected = discovery(config(), "press-7")
    with Observer(broker.port, "homeassistant/#", "edge/#") as observer:
        transport = announce(config(port=broker.port, protocol=protocol))
        wait_until(lambda: len(heard(observer)) == 1, "the announcement")
        assert json.loads(heard(observer)[0]) == expected
        assert kept(broker) == [(TOPIC, heard(observer)[0])]
        observer.publish("homeassistant/status", b"offline")
        observer.publish("homeassistant/status", b"online")
        wait_until(lambda: len(heard(observer)) == 2, "the announcement again")
        observer.publish(PREFIX + "command/ping", b"{}")
        assert transport.inbound.get(timeout=DEADLINE_S).topic == "command/ping"  # and its words are no commands
        assert len(heard(observer)) == 2


def test_birth_that_is_kept_causes_no_second_announcement(
    broker: Broker, announce: Callable[..., MqttTransport]
) -> None:
    with Observer(broker.port, "homeassistant/#") as observer:
        observer.publish("homeassistant/status", b"online", retain=True)
        transport = announce(config(port=broker.port))
        wait_until(lambda: len(heard(observer)) >= 1, "the announcement")
        observer.publish(PREFIX + "command/ping", b"{}")
        transport.inbound.get(timeout=DEADLINE_S)
        assert len(heard(observer)) == 1


def test_announcement_is_removed_once_when_it_is_switched_off(
    broker: Broker, announce: Callable[..., MqttTransport], tmp_path: Path
) -> None:
    first = announce(config(port=broker.port))
    wait_until(lambda: kept(broker) != [], "the announcement")
    first.close(None, 1.0)
    with Observer(broker.port, "homeassistant/#") as observer:
        wait_until(lambda: len(heard(observer)) == 1, "what is kept")
        off = config(port=broker.port, home_assistant=None)
        announce(off)
        wait_until(lambda: heard(observer)[1:] == [b""], "the removal")
        wait_until(lambda: not (tmp_path / "note.txt").exists(), "the note gone")
        assert kept(broker) == []
        announce(off)
        wait_until(lambda: broker.log().count("New client connected") >= 3, "the next start")
        assert len(heard(observer)) == 2


def test_announcement_moves_with_the_prefix(broker: Broker, announce: Callable[..., MqttTransport]) -> None:
    first = announce(config(port=broker.port))
    wait_until(lambda: kept(broker) != [], "the announcement")
    first.close(None, 1.0)
    announce(config(port=broker.port, home_assistant="ha"))
    wait_until(lambda: [topic for topic, _ in kept(broker, "ha")] == ["ha/device/press-7/config"], "the new place")
    wait_until(lambda: kept(broker) == [], "the old place empty")


def test_device_that_was_never_announced_says_nothing_there(
    broker: Broker, announce: Callable[..., MqttTransport], tmp_path: Path
) -> None:
    with Observer(broker.port, "homeassistant/#", "edge/#") as observer:
        transport = announce(config(port=broker.port, home_assistant=None))
        observer.wait_for(PREFIX + "status", BIRTH.payload)
        observer.publish("homeassistant/status", b"online")
        observer.publish(PREFIX + "command/ping", b"{}")
        transport.inbound.get(timeout=DEADLINE_S)
        assert heard(observer) == []
    assert "homeassistant" not in "".join(line for line in broker.log().splitlines() if "edge-agent-press-7" in line)
    assert not (tmp_path / "note.txt").exists()


def test_note_that_cannot_be_written_is_told_and_the_device_is_announced(
    broker: Broker, announce: Callable[..., MqttTransport], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    announce(config(port=broker.port), tmp_path / "file" / "note.txt")
    assert "may stay" in caplog.text
    wait_until(lambda: [topic for topic, _ in kept(broker)] == [TOPIC], "the announcement")


def test_broker_that_does_not_take_the_announcement_is_told_and_the_rest_goes_on(
    make_broker: Callable[..., Broker],
    announce: Callable[..., MqttTransport],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    acl = tmp_path / "acl"
    acl.write_text("topic readwrite edge/#\n")
    broker = make_broker(f"allow_anonymous true\nacl_file {acl}").start()
    with Observer(broker.port, "edge/#") as observer:
        announce(config(port=broker.port))
        observer.wait_for(PREFIX + "status", BIRTH.payload)
        wait_until(lambda: f"cannot be told on {TOPIC}" in caplog.text, "the warning")
        assert broker.log().count("New client connected") == 2


def test_announcement_waits_for_a_window_that_is_smaller_than_all_that_is_said(
    make_broker: Callable[..., Broker], announce: Callable[..., MqttTransport]
) -> None:
    broker = make_broker("allow_anonymous true\nmax_inflight_messages 1").start()
    announce(config(port=broker.port))
    wait_until(lambda: [topic for topic, _ in kept(broker)] == [TOPIC], "the announcement")


def test_every_message_named_in_the_announcement_is_said_under_that_topic() -> None:
    said = messages.camera_status("hall.2", "online", reason=None, last_frame_at=None, at=1.0)
    key = f"{object_id('hall.2')}_status"
    assert components()[key]["state_topic"] == PREFIX + said.topic
    assert shown(key, json.loads(said.payload)) == "online"
