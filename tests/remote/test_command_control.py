"""CommandControl: each command runs once and is answered; floods, remains and nonsense do no harm."""

from __future__ import annotations

import base64
import json
import logging
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from edge_agent.calibrate.job import CalibrationJob
from edge_agent.calibrate.wish import Wish
from edge_agent.config import Config, rebuilt
from edge_agent.errors import ConfigError, EdgeAgentError
from edge_agent.models.spec import DEFAULT_MODELS_DIR
from edge_agent.records import Frame, Message
from edge_agent.remote.command_control import CommandControl, unix_s
from edge_agent.remote.commands import COMMANDS, Desk
from edge_agent.remote.config_store import ConfigStore
from edge_agent.remote.seen_ids import SeenIds
from edge_agent.remote.trial import Look
from edge_agent.transports.base import Inbound
from tests.broker import wait_until
from tests.conftest import ROOT

MODELS = ROOT / DEFAULT_MODELS_DIR
NOW = 1_796_040_000.0  # 2026-11-30T12:00:00Z

# a calibration's child: listens to its wish, then says one outcome when a file appears, or fails
CHILD = """
import json, pathlib, sys, time
wish = json.load(sys.stdin)
def say(**event): print(json.dumps(event), flush=True)
say(event="progress", step="ranges", share=0.4)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
if pathlib.Path(sys.argv[1]).read_text() == "fail":
    say(event="failed", kind="CalibrationRefused", message="only 3 frames")
    sys.exit(1)
say(event="outcome", outcome={"model": wish["models"], "verdict": "promoted"})
say(event="done")
"""


class FakeSite:
    """An agent that has one frame and remembers what it was asked for."""

    def __init__(self) -> None:
        image = np.random.default_rng(1).integers(0, 255, (720, 1280, 3), np.uint8)
        self.frame = Frame("left", 7, NOW, 1.0, image)
        self.asked: list[str] = []

    def look(self) -> Look:
        return Look(0.0)

    def apply(self, config: Config) -> None:
        self.asked.append("apply")

    def hear_camera(self, inbound: Inbound) -> None:
        self.asked.append(inbound.topic)

    def newest(self, camera: str) -> Frame | None:
        return self.frame if camera == "left" else None

    def ledger(self) -> Mapping[str, Any]:
        return {"today": {}, "all": {}}

    def discard_plans(self) -> list[str]:
        self.asked.append("discard_plans")
        return ["net"]

    def replay(self) -> int:
        self.asked.append("replay")
        return 3


class Device:
    """A device, whose processes share one folder; what it answers is read as JSON."""

    def __init__(self, folder: Path, **remote: Any) -> None:
        self.folder = folder
        self.mono = 100.0
        self.unix: float | None = NOW
        cameras = {name: {"kind": "folder", "source": f"/{name}"} for name in ("left", "right")}
        calibration = {"directory": str(folder / "calibration")}
        values = {"cameras": cameras, "remote": remote, "calibration": calibration}
        self.config = rebuilt(Config(), values, "settings")
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.site = FakeSite()
        self.wishes: list[Wish] = []
        self.start()

    def start(self) -> None:
        """A process begins."""
        store = ConfigStore(self.folder / "state" / "config")
        self.desk = Desk(self.site, self.config, store, MODELS, start_calibration=self.begin_calibration)
        seen = SeenIds(self.folder / "state" / "commands.json", self.config.remote.kept_command_ids)
        self.control = CommandControl(
            self.config.remote,
            seen,
            self.hear,
            lambda: NOW,
            lambda: self.unix,
            lambda: self.mono,
            max_answer_bytes=262_144,
        )
        self.control.resume()

    def begin_calibration(self, wish: Wish) -> CalibrationJob:
        self.wishes.append(wish)
        return CalibrationJob(wish, [sys.executable, "-c", CHILD, str(self.folder / "go")])

    def hear(self, message: Message) -> None:
        assert (message.retain, message.qos) == (False, 1)
        self.said.append((message.topic, json.loads(message.payload)))

    def send(self, name: str, payload: Any, *, retained: bool = False) -> None:
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.control.hear(Inbound(f"command/{name}", raw, retained), self.desk)

    def answer(self, name: str, payload: Any) -> dict[str, Any]:
        """The only answer."""
        self.said.clear()
        self.send(name, payload)
        ((topic, body),) = self.said
        assert topic == f"command/{name}/reply"
        return body

    def states(self) -> list[tuple[Any, str]]:
        said, self.said = self.said, []
        return [(body["id"], body["state"]) for _, body in said]


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    device = Device(tmp_path)
    yield device
    device.control.close(device.desk)


def test_ping_is_answered_at_once(device: Device) -> None:
    body = device.answer("ping", {"id": "c-1"})
    assert (body["v"], body["id"], body["state"], body["at"]) == (1, "c-1", "done", "2026-11-30T12:00:00.000Z")
    assert set(body["result"]) == {"version", "uptime_s"}


def test_every_command_that_may_be_configured_is_in_the_table() -> None:
    assert set(COMMANDS) == set(Config().remote.commands)


def test_command_that_comes_again_runs_once_also_in_the_next_process(device: Device) -> None:
    assert device.answer("replay", {"id": "c-1"})["result"] == {"queued": 3}
    body = device.answer("replay", {"id": "c-1"})
    assert (body["state"], body["first"]) == (
        "duplicate",
        {"command": "replay", "state": "done", "result": {"queued": 3}},
    )
    device.start()
    assert device.answer("replay", {"id": "c-1"})["state"] == "duplicate"
    assert device.site.asked == ["replay"]


def test_id_counts_for_all_commands(device: Device) -> None:
    device.send("ping", {"id": "c-1"})
    assert device.answer("replay", {"id": "c-1"})["first"]["command"] == "ping"
    assert device.site.asked == []


def test_retained_command_is_never_carried_out_nor_answered(device: Device) -> None:
    device.send("restart", {"id": "c-1"}, retained=True)
    device.send("restart", b"")
    assert device.said == []
    assert device.desk.restart is None
    assert device.control.counts == {"ignored_retained": 1, "ignored_empty": 1}


def test_unknown_command_is_answered_with_those_there_are(device: Device) -> None:
    body = device.answer("reboot", {"id": "c-1"})
    assert body["state"] == "failed"
    assert body["reason"].startswith("there is no command reboot; there are: calibrate, config-history, ledger")


def test_command_that_the_settings_do_not_list_is_unknown(tmp_path: Path) -> None:
    device = Device(tmp_path, commands=["ping"])
    assert device.answer("snapshot", {"id": "c-1", "args": {"camera": "left"}})["reason"] == (
        "there is no command snapshot; there are: ping"
    )
    assert device.answer("ping", {"id": "c-2"})["state"] == "done"


@pytest.mark.parametrize("name", ["", "a/b", "Ping", "p" * 40, "ping\n", "+", "../x", "#"])
def test_name_that_is_none_is_not_answered(device: Device, name: str) -> None:
    device.send(name, {"id": "c-1"})
    assert device.said == []
    assert device.control.counts == {"ignored_no_name": 1}


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (b"{", "is not JSON"),
        (b"\xff", "not UTF-8"),
        ([1], "the top is a list"),
        ({}, "id is missing or wrong"),
        ({"id": 3}, "id is missing or wrong"),
        ({"id": "x" * 65}, "id is missing or wrong"),
        ({"id": "a b"}, "id is missing or wrong"),
        ({"id": "c", "args": []}, "args is no object"),
        ({"id": "c", "arsg": {}}, "'arsg' is unknown here"),
        (b'{"id": "c", "args": {"quality": NaN}}', "NaN is not JSON"),
        (b'{"id": "c", "args": {"quality": 1e999}}', "too large"),
        (b'{"id": "c", "id": "d"}', "id is twice"),
        (b'{"id": "' + b"x" * 70_000 + b'"}', "65536"),
        ({"id": "c", "expires_at": 17}, "expires_at is no time"),
        ({"id": "c", "expires_at": "2026-11-30"}, "expires_at is no time"),
    ],
)
def test_payload_that_is_none_is_answered_without_an_id(device: Device, payload: Any, says: str) -> None:
    body = device.answer("ping", payload)
    assert (body["id"], body["state"]) == (None, "failed")
    assert says in body["reason"]


@pytest.mark.parametrize(
    ("name", "args", "says"),
    [
        ("ping", {"x": 1}, "args: x: unknown key"),
        ("snapshot", {}, "args: camera: is missing"),
        ("snapshot", {"camera": "left", "quality": "80"}, "args: quality: '80' is not a whole number"),
        ("snapshot", {"camera": "left", "quality": 101}, "args: quality: 101 is greater than 100"),
        ("snapshot", {"camera": "../left"}, "args: camera: '../left' is no name"),
        ("log-level", {"level": "loud"}, "args: level: 'loud' is not"),
        ("rollback", {}, "args: model: is missing"),
        ("calibrate", {"source": "folder"}, "args: source: its value is not"),
        ("config-history", {"text": "../../etc/passwd"}, "args: text"),
    ],
)
def test_wrong_arguments_are_answered_with_the_reason_and_may_be_sent_again(
    device: Device, name: str, args: dict[str, Any], says: str
) -> None:
    body = device.answer(name, {"id": "c-1", "args": args})
    assert (body["id"], body["state"]) == ("c-1", "failed")
    assert says in body["reason"]
    assert device.answer("ping", {"id": "c-1"})["state"] == "done"


def test_command_that_has_expired_is_not_carried_out(device: Device) -> None:
    assert device.answer("replay", {"id": "c-1", "expires_at": "2026-11-30T12:00:01Z"})["state"] == "done"
    late = device.answer("replay", {"id": "c-2", "expires_at": "2026-11-30T12:59:00+01:00"})
    assert (late["state"], late["reason"]) == ("failed", "expired 60 s ago")
    device.unix = None
    unset = device.answer("replay", {"id": "c-3", "expires_at": "2026-11-30T12:00:01Z"})
    assert "clock of this device is not set" in unset["reason"]
    assert device.site.asked == ["replay"]


@pytest.mark.parametrize(
    ("text", "unix"),
    [
        ("2026-11-30T12:00:00Z", NOW),
        ("2026-11-30T12:00Z", NOW),
        ("2026-11-30T12:00:00.5Z", NOW + 0.5),
        ("2026-11-30T13:30:00.123456789+01:30", NOW + 0.123456789),
        ("2026-11-30T11:00:00.25-01:00", NOW + 0.25),
    ],
)
def test_time_is_read_with_any_fraction_whatever_the_python(text: str, unix: float) -> None:
    assert unix_s(text) == pytest.approx(unix, abs=1e-6)


@pytest.mark.parametrize("text", ["2026-11-30T12:00:00", "2026-13-30T12:00:00Z", "2026-11-30T12:00:00+99:00", "", 17])
def test_time_that_is_none_is_refused(text: object) -> None:
    with pytest.raises(ConfigError, match="expires_at is no time"):
        unix_s(text)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_while_start_up_goes_on_each_command_is_done_or_busy_and_may_come_again(device: Device, name: str) -> None:
    args = {"snapshot": {"camera": "left"}, "log-level": {"level": "info"}, "rollback": {"model": "ppocrv4-mobile-det"}}
    device.desk.site = None
    body = device.answer(name, {"id": "c-1", "args": args.get(name, {})})
    if name in ("config-history", "log-level", "ping"):
        assert body["state"] == "done"
        return
    assert body["state"] == "busy"
    assert "the device is starting" in body["reason"]
    assert device.site.asked == []
    assert device.desk.restart is None
    device.desk.site = device.site
    again = device.answer(name, {"id": "c-1", "args": args.get(name, {})})
    assert again["state"] in ("accepted", "done", "failed")
    device.control.close(device.desk)


def test_flood_of_commands_is_neither_carried_out_nor_answered_one_by_one(tmp_path: Path) -> None:
    device = Device(tmp_path, command_rate_per_min=60)
    for n in range(500):
        device.send("replay", {"id": f"c-{n}"})
    states = device.states()
    assert [state for _, state in states].count("done") == len(device.site.asked) == 15
    assert states[15:] == [(None, "busy")]
    device.mono += 10.0
    for n in range(500, 600):
        device.send("replay", {"id": f"c-{n}"})
    assert len(device.site.asked) == 25
    assert device.control.counts["ignored_too_many"] == 575


# ---- each of them ---------------------------------------------------------------------------------------------------


def test_snapshot_is_the_newest_frame_and_fits_the_message(device: Device) -> None:
    body = device.answer("snapshot", {"id": "c-1", "args": {"camera": "left", "quality": 95}})
    result = body["result"]
    assert (result["camera"], result["seq"], result["captured_at"]) == ("left", 7, "2026-11-30T12:00:00.000Z")
    picture = cv2.imdecode(np.frombuffer(base64.b64decode(result["jpeg_base64"]), np.uint8), cv2.IMREAD_COLOR)
    assert picture.shape == (result["height_px"], result["width_px"], 3)
    # noise is the worst of pictures: it fits only smaller and rougher
    assert result["width_px"] < 1280
    assert len(json.dumps(body)) <= device.config.mqtt.max_payload_bytes


def test_snapshot_of_a_camera_that_is_not_there_or_has_given_nothing_fails(device: Device) -> None:
    nowhere = device.answer("snapshot", {"id": "c-1", "args": {"camera": "nowhere"}})
    assert nowhere["reason"] == "there is no camera 'nowhere'; there are: left, right"
    assert device.answer("snapshot", {"id": "c-2", "args": {"camera": "right"}})["reason"] == (
        "camera right has given no frame yet"
    )


def test_log_level_is_changed(device: Device) -> None:
    root = logging.getLogger()
    before = root.level
    try:
        body = device.answer("log-level", {"id": "c-1", "args": {"level": "error"}})
        assert body["result"]["level"] == "error"
        assert root.level == logging.ERROR
    finally:
        root.setLevel(before)


@pytest.mark.parametrize("name", ["restart", "rebuild"])
def test_restart_is_accepted_and_answered_by_the_next_process(device: Device, name: str) -> None:
    assert device.answer(name, {"id": "c-1"})["state"] == "accepted"
    assert device.desk.restart is not None
    device.said.clear()
    device.start()
    assert device.states() == [("c-1", "done")]
    assert device.desk.restart is None
    assert device.answer(name, {"id": "c-1"})["state"] == "duplicate"
    assert device.desk.restart is None


def test_what_cannot_be_done_fails_with_the_reason(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> list[str]:
        raise EdgeAgentError("onnxruntime has no plans")

    monkeypatch.setattr(device.site, "discard_plans", refuse)
    body = device.answer("rebuild", {"id": "c-1"})
    assert (body["state"], body["reason"]) == ("failed", "onnxruntime has no plans")
    assert device.desk.restart is None


def test_rollback_of_a_model_that_runs_as_float_fails(device: Device) -> None:
    body = device.answer("rollback", {"id": "c-1", "args": {"model": "ppocrv6-small-det"}})
    assert "the float model is in use" in body["reason"]
    body = device.answer("rollback", {"id": "c-2", "args": {"model": "nowhere"}})
    assert "there is no model 'nowhere'" in body["reason"]


def test_history_of_configurations_and_its_texts_can_be_fetched_without_passwords(device: Device) -> None:
    text = (
        b'{"version": 4, "patch": {"cameras": {"a": {"source": "rtsp://admin:S3cret@192.0.2.10/x"}},'
        b' "mqtt": {"password" : "S3cr\\"et", "host": "a"}}}'
    )
    device.desk.store.refuse(text, 4, "mqtt.host: is never changed from afar")
    (entry,) = device.answer("config-history", {"id": "c-1"})["result"]["history"]
    assert (entry["version"], entry["outcome"]) == (4, "refused")
    body = device.answer("config-history", {"id": "c-2", "args": {"text": entry["text"]}})
    assert "S3cr" not in json.dumps(body)
    shown = json.loads(body["result"]["text"])["patch"]
    assert shown["cameras"]["a"]["source"] == "rtsp://admin:***@192.0.2.10/x"
    assert shown["mqtt"] == {"password": "***", "host": "a"}
    other = device.answer("config-history", {"id": "c-3", "args": {"text": "0" * 64}})
    assert other["reason"] == "no such text is in the history"


def test_answer_that_no_message_can_hold_says_so(device: Device) -> None:
    device.desk.store.refuse(b'"' * 200_000, None, "is not JSON")
    (entry,) = device.answer("config-history", {"id": "c-1"})["result"]["history"]
    body = device.answer("config-history", {"id": "c-2", "args": {"text": entry["text"]}})
    assert body["state"] == "done"
    assert "more than mqtt.max_payload_bytes, 262144" in body["reason"]


# ---- calibrate ------------------------------------------------------------------------------------------------------


def test_calibration_is_accepted_goes_on_beside_and_is_answered_when_done(device: Device) -> None:
    args = {"models": ["ppocrv6-small-det"], "source": "camera", "camera": "left", "count": 12, "dry_run": True}
    assert device.answer("calibrate", {"id": "c-1", "args": args})["state"] == "accepted"
    (wish,) = device.wishes
    assert (wish.models, wish.source, wish.name, wish.count, wish.dry_run) == (
        ("ppocrv6-small-det",),
        "camera",
        "left",
        12,
        True,
    )
    device.control.attend(device.desk)
    assert device.answer("ping", {"id": "c-2"})["state"] == "done"
    busy = device.answer("calibrate", {"id": "c-3"})
    assert (busy["state"], busy["reason"]) == ("busy", "a calibration is under way")
    assert device.answer("calibrate", {"id": "c-1", "args": args})["first"]["state"] == "accepted"
    device.said.clear()
    (device.folder / "go").touch()
    wait_until(lambda: device.control.attend(device.desk) is None and bool(device.said), "the end of the calibration")
    ((_, body),) = device.said
    assert (body["id"], body["state"]) == ("c-1", "done")
    assert body["result"]["outcomes"] == [{"model": ["ppocrv6-small-det"], "verdict": "promoted"}]
    assert device.answer("calibrate", {"id": "c-3"})["state"] == "accepted"  # the busy one may come again


def test_calibration_that_fails_is_answered_with_the_reason(device: Device) -> None:
    (device.folder / "go").write_text("fail")
    device.send("calibrate", {"id": "c-1"})
    wait_until(lambda: device.control.attend(device.desk) is None and len(device.said) == 2, "the end")
    assert device.said[-1][1]["reason"] == "only 3 frames"


def test_calibration_whose_process_ended_is_answered_by_the_next_one(device: Device) -> None:
    device.send("calibrate", {"id": "c-1"})
    device.control.close(device.desk)
    device.said.clear()
    device.start()
    ((_, body),) = device.said
    assert (body["id"], body["state"]) == ("c-1", "failed")
    assert body["reason"] == "the process ended before it was done"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"models": ["../../etc/passwd"]}, "is no name"),
        ({"models": ["nowhere"]}, "there is no model 'nowhere'"),
        ({"source": "camera"}, "camera goes with source camera"),
        ({"camera": "left"}, "camera goes with source camera"),
        ({"source": "camera", "camera": "nowhere"}, "there is no camera 'nowhere'"),
    ],
)
def test_calibration_of_what_is_not_there_is_not_begun(device: Device, args: dict[str, Any], says: str) -> None:
    assert says in device.answer("calibrate", {"id": "c-1", "args": args})["reason"]
    assert device.wishes == []
