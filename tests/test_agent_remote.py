"""Agent, from afar: the whole process against a real broker: configurations tried, kept, rolled back; commands."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from edge_agent.remote.config_store import ConfigStore
from tests.broker import Broker, Observer, Proxy, free_port, wait_until
from tests.test_agent import agent_process, label_folder, last

# `edge-agent ...` whose calibrations are a child that waits for a file; no other change
CALIBRATING = """
import functools, sys
from edge_agent.calibrate.job import CalibrationJob
from edge_agent.remote import control

CHILD = '''
import json, pathlib, sys, time
json.load(sys.stdin)
print(json.dumps({"event": "progress", "step": "ranges", "share": 0.4}), flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
print(json.dumps({"event": "outcome", "outcome": {"verdict": "promoted"}}), flush=True)
print(json.dumps({"event": "done"}), flush=True)
'''
command = [sys.executable, "-c", CHILD, sys.argv.pop(1)]
control.Desk = functools.partial(control.Desk, start_calibration=lambda wish: CalibrationJob(wish, command))
from edge_agent.__main__ import main

sys.exit(main())
"""


class Device:
    """A device `press7` with one camera `left`, and the operator who looks on."""

    def __init__(
        self,
        folder: Path,
        port: int,
        observer: Observer,
        more_cameras: dict[str, Any] | None = None,
        **sections: Any,
    ) -> None:
        self.folder = folder
        self.observer = observer
        self.config = folder / "config.yaml"
        left = {"kind": "folder", "source": str(label_folder(folder / "left", 2)), "loop": True, "max_fps": 20}
        light: dict[str, Any] = {"detector": "ppocrv4-mobile-det", "recogniser": "ppocrv4-mobile-rec", "encoder": None}
        light |= {"detector_min_side_px": 320, "detector_max_side_px": 640}
        allowed = ["backend", "cameras", "fields", "log", "pipeline", "telemetry"]
        settings = {
            "device_id": "press7",
            "mqtt": {"port": port, "reconnect_min_s": 0.2},
            "pipeline": light,
            "cameras": {"left": left, **(more_cameras or {})},
            "telemetry": {"interval_s": 0.5},
            "outbox": {"path": str(folder / "outbox.db")},
            # how fast frames are read depends on what else this machine does: the pace is judged elsewhere, and two
            # frames in the trial must be enough to be sure that text has gone
            "remote": {
                "trial_s": 3.6,
                "trial_starts": 2,
                "allowed_keys": allowed,
                "min_fps_share": 0.01,
                "min_read_share": 0.95,
            },
        }
        self.config.write_text(json.dumps({**settings, **sections}), encoding="utf-8")
        self.store = ConfigStore(folder / "state" / "config")

    def desire(self, version: int, token: str | None = None, **patch: Any) -> None:
        wish = {"version": version, "token": token, "patch": patch}
        self.observer.publish("edge/press7/config/desired", json.dumps(wish).encode(), retain=True)

    def command(self, name: str, command_id: str, args: dict[str, Any] | None = None, *, retain: bool = False) -> None:
        payload = json.dumps({"id": command_id, "args": args or {}}).encode()
        self.observer.publish(f"edge/press7/command/{name}", payload, retain=retain)

    def replies(self, name: str, command_id: str) -> list[dict[str, Any]]:
        said = [json.loads(payload) for payload in self.observer.payloads(f"edge/press7/command/{name}/reply")]
        return [each for each in said if each["id"] == command_id]

    def states(self, name: str, command_id: str) -> list[str]:
        return [each["state"] for each in self.replies(name, command_id)]

    def reports(self) -> list[tuple[Any, ...]]:
        """Code, version, token and active version of every report, repetitions at a birth left out."""
        said = [json.loads(payload) for payload in self.observer.payloads("edge/press7/config/reported")]
        found = [(each["code"], each["version"], each["token"], each["active_version"]) for each in said]
        return [each for n, each in enumerate(found) if n == 0 or found[n - 1] != each]

    def wait_report(self, code: int, version: int, timeout_s: float = 60.0) -> dict[str, Any]:
        wait_until(
            lambda: any(each[:2] == (code, version) for each in self.reports()),
            f"report {code} of version {version}; had {self.reports()}",
            timeout_s,
        )
        return last(self.observer, "config/reported")

    def results(self) -> list[dict[str, Any]]:
        return [json.loads(payload) for payload in self.observer.payloads("edge/press7/left/result")]

    def wait_reading(self, version: int | None, count: int = 1) -> None:
        wait_until(
            lambda: sum(each["config_version"] == version for each in self.results()) >= count,
            f"{count} readings under version {version}",
            60,
        )

    def wait_figures(self) -> None:
        """Until the agent has seen enough of what is in force to compare a trial with it, on a busy machine too."""

        def seen_s() -> float:
            captured = [each["captured_mono"] for each in self.results()]
            return float(captured[-1] - captured[0]) if len(captured) >= 12 else 0.0

        wait_until(lambda: seen_s() > 4.0, "readings to compare with", 60)


@pytest.fixture
def observer(broker: Broker) -> Iterator[Observer]:
    with Observer(broker.port, "edge/#") as observer:
        yield observer


@pytest.fixture
def device(tmp_path: Path, broker: Broker, observer: Observer) -> Device:
    return Device(tmp_path, broker.port, observer)


@contextmanager
def running(device: Device) -> Iterator[subprocess.Popen[str]]:
    """The agent, reading."""
    with agent_process(device.config) as process:
        device.wait_reading(None, 8)
        yield process


def test_live_configuration_is_applied_without_a_restart_and_kept_for_the_next_one(device: Device) -> None:
    with running(device) as process:
        wait_until(lambda: last(device.observer, "status")["state"] == "online", "online")
        began = last(device.observer, "status")["started_at"]
        device.wait_figures()
        device.desire(5, "t-5", pipeline={"min_confidence": 0.9999, "no_text_interval_s": 0.01})
        device.wait_report(202, 5)
        device.wait_reading(5, 3)
        assert [each for each in device.results() if each["config_version"] == 5][-1]["lines"] == []
        # text is gone, as it was wished for, and that is what the trial notices
        assert "text was found in 0% of the frames" in device.wait_report(500, 5)["detail"]
        device.desire(6, "t-6", pipeline={"min_confidence": 0.4})
        device.wait_report(200, 6)
        assert last(device.observer, "status")["started_at"] == began
        assert device.reports() == [
            (202, 5, "t-5", None),
            (500, 5, "t-5", None),
            (202, 6, "t-6", None),
            (200, 6, "t-6", 6),
        ]
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    with agent_process(device.config):
        wait_until(lambda: device.reports()[-1] == (200, 6, None, 6), "the report of the next process", 60)
        count = len(device.results())
        wait_until(lambda: len(device.results()) > count, "readings of the next process", 60)
        assert device.results()[-1]["config_version"] == 6


def test_other_configuration_is_tried_by_a_restart_under_the_same_process_id(device: Device) -> None:
    with running(device) as process:
        device.desire(5, "t-5", pipeline={"detector_max_side_px": 608})
        device.wait_report(202, 5)
        wait_until(lambda: last(device.observer, "status").get("reason") == "restarting", "the farewell")
        device.wait_reading(5, 2)
        device.wait_report(200, 5)
        assert process.poll() is None
        assert last(device.observer, "health")["pipeline"] == "running"
        seqs = [each["seq"] for each in device.results()]
        assert seqs == sorted(set(seqs)), "numbers go on over the restart"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        wait_until(lambda: last(device.observer, "status")["reason"] == "shutdown", "the last farewell")


def test_configuration_whose_camera_does_not_come_is_rolled_back_and_no_password_is_told(
    tmp_path: Path, broker: Broker, observer: Observer
) -> None:
    """Field case SEC-1 as well: the password is read only once the camera was switched on from afar."""
    secret = tmp_path / "secret"
    secret.write_text("S3cr#t@pw\n", encoding="utf-8")
    secret.chmod(0o600)
    source = f"rtsp://viewer@127.0.0.1:{free_port()}/live"
    door = {"kind": "rtsp", "source": source, "password_file": str(secret), "enabled": False}
    device = Device(tmp_path, broker.port, observer, more_cameras={"door": door})
    with running(device) as process:
        device.desire(5, "t-5", cameras={"door": {"enabled": True}}, log={"level": "debug"})
        report = device.wait_report(500, 5)
        assert report["detail"] == "camera door is not online"
        assert report["rolled_back_from"] == 5
        count = len(device.results())
        wait_until(lambda: len(device.results()) > count + 3, "readings under the last good one", 60)
        assert device.results()[-1]["config_version"] is None
        assert process.poll() is None
        # the retained wish is still there, and is not tried again
        assert [each[0] for each in device.reports()].count(202) == 1
        process.kill()
        assert process.stderr is not None
        log = process.stderr.read()
    assert "camera door is offline" in log
    told = log + repr(observer.heard)
    assert not [form for form in ("S3cr", "S3cr%23t%40pw") if form in told]
    (past,) = device.store.state().past
    assert json.loads(device.store.text(str(past.text)))["version"] == 5


def test_configuration_whose_start_fails_is_rolled_back_at_once(device: Device) -> None:
    """An exit with 78 would keep the service manager from starting it again."""
    with running(device) as process:
        device.desire(5, "t-5", backend={"kind": "tensorrt"})
        report = device.wait_report(500, 5)
        assert report["detail"].startswith("ConfigError: ")
        assert "tensorrt" in report["detail"]
        assert (report["token"], report["rolled_back_from"]) == ("t-5", 5)
        count = len(device.results())
        wait_until(lambda: len(device.results()) > count, "readings go on", 60)
        assert device.results()[-1]["config_version"] is None
        assert process.poll() is None


@pytest.mark.parametrize("when", ["before the trial's first frame", "during the trial"])
def test_process_that_is_killed_again_and_again_under_trial_returns_to_the_last_good_one(
    device: Device, when: str
) -> None:
    with running(device):
        device.desire(5, "t-5", pipeline={"detector_max_side_px": 608})
        device.wait_report(202, 5)
        wait_until(lambda: device.store.state().trial is not None, "the trial on disk")
    for start in range(1, 3):
        with agent_process(device.config):  # leaving kills it
            wait_until(lambda start=start: starts(device.store) >= start, "the start is counted", 60)
            if when == "during the trial":
                count = len(device.results())
                wait_until(lambda count=count: len(device.results()) > count, "a reading", 60)
            if device.store.state().trial is None:
                break
    with agent_process(device.config):
        report = device.wait_report(500, 5)
        assert "processes ended untidily" in report["detail"]
        count = len(device.results())
        wait_until(lambda: len(device.results()) > count, "readings under the file's settings", 60)
        assert device.results()[-1]["config_version"] is None


def starts(store: ConfigStore) -> int:
    trial = store.state().trial
    return 99 if trial is None else trial.starts


def test_nonsense_and_forbidden_things_change_nothing(device: Device) -> None:
    with running(device) as process:
        for payload in (b"\xff" * 70_000, b'{"version": 1, "patch": {"fields": {"max_fields": NaN}}}', b"[" * 60_000):
            told = len(device.observer.payloads("edge/press7/config/reported"))
            device.observer.publish("edge/press7/config/desired", payload)
            wait_until(
                lambda told=told: len(device.observer.payloads("edge/press7/config/reported")) > told, "its report"
            )
            assert last(device.observer, "config/reported")["code"] == 400
        device.desire(7, "t", mqtt={"host": "evil.example"}, state_dir="/tmp", cameras={"left": {"source": "/etc"}})
        refused = device.wait_report(400, 7)["refused"]
        assert {each["key"] for each in refused} == {"mqtt.host", "state_dir"}
        device.desire(8, None, cameras={"left": {"source": "/etc"}})
        why = device.wait_report(400, 8)["refused"][0]["why"]
        assert why == "is a path, and file is not among remote.camera_schemes"
        assert process.poll() is None
        count = len(device.results())
        wait_until(lambda: len(device.results()) > count, "readings go on")


def test_rollback_by_hand_is_noticed_by_the_running_agent(device: Device) -> None:
    with running(device) as process:
        device.desire(5, None, pipeline={"min_confidence": 0.4})
        device.wait_report(200, 5)
        command = [sys.executable, "-m", "edge_agent", "config", "rollback", str(device.config)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert "version 5 of" in done.stdout
        wait_until(lambda: last(device.observer, "status").get("reason") == "restarting", "the restart")
        device.wait_report(500, 5)
        count = len(device.results())
        wait_until(lambda: len(device.results()) > count, "readings", 60)
        assert device.results()[-1]["config_version"] is None
        assert process.poll() is None


# ---- commands -------------------------------------------------------------------------------------------------------


def test_commands_are_answered_once_each_also_over_a_restart(device: Device) -> None:
    with running(device) as process:
        device.command("ping", "c-1")
        wait_until(lambda: device.states("ping", "c-1") == ["done"], "the answer", 2)
        device.command("snapshot", "c-2", {"camera": "left"})
        wait_until(lambda: device.states("snapshot", "c-2") == ["done"], "the picture", 5)
        jpeg = base64.b64decode(device.replies("snapshot", "c-2")[0]["result"]["jpeg_base64"])
        picture = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
        assert picture.shape[1] == device.results()[-1]["frame"]["width_px"]
        device.command("restart", "c-3")
        wait_until(lambda: device.states("restart", "c-3") == ["accepted", "done"], "the restart", 60)
        assert process.poll() is None
        device.command("restart", "c-3")
        device.command("ping", "c-1")
        wait_until(lambda: device.states("ping", "c-1") == ["done", "duplicate"], "the second ping", 60)
        assert device.states("restart", "c-3") == ["accepted", "done", "duplicate"]
        device.command("reboot", "c-4")
        wait_until(lambda: device.states("reboot", "c-4") == ["failed"], "that it is unknown")
        device.command("ledger", "c-5")
        wait_until(lambda: device.states("ledger", "c-5") == ["done"], "the ledger")
        assert device.replies("ledger", "c-5")[0]["result"]["all"]["left"]["produced"] > 0


def test_command_that_the_network_delivers_again_runs_once(device: Device, broker: Broker) -> None:
    """Field case MQ-6 (b): the connection is cut before the ack, so whoever sent the command sends it again."""
    with running(device), Proxy(broker.port) as proxy:
        sender = paho.Client(CallbackAPIVersion.VERSION2, "sender", clean_session=False)
        sender.reconnect_delay_set(1, 1)
        sender.connect("127.0.0.1", proxy.port)
        sender.loop_start()
        try:
            wait_until(sender.is_connected, "the sender's connection")
            proxy.swallow_answers = True
            sent = sender.publish("edge/press7/command/replay", b'{"id": "c-1"}', qos=1)
            wait_until(lambda: device.states("replay", "c-1") == ["done"], "the answer")
            assert not sent.is_published()
            proxy.swallow_answers = False
            proxy.cut()
            wait_until(lambda: device.states("replay", "c-1") == ["done", "duplicate"], "the answer to the second copy")
            wait_until(sent.is_published, "the ack")
        finally:
            sender.disconnect()
            sender.loop_stop()


def test_retained_command_is_not_carried_out_at_a_connect_and_answers_come_after_an_outage(
    device: Device, broker: Broker
) -> None:
    device.command("restart", "c-1", retain=True)
    with running(device):
        began = last(device.observer, "status")["started_at"]
        device.command("ping", "c-2")
        wait_until(lambda: device.states("ping", "c-2") == ["done"], "the answer")

        def ignored() -> int:
            section = last(device.observer, "telemetry").get("remote", {})
            return int(section.get("commands", {}).get("ignored_retained", 0))

        device.command("restart", "c-7", retain=True)  # while it listens: no other case
        wait_until(lambda: ignored() == 2, "the count of both")
        assert device.states("restart", "c-1") + device.states("restart", "c-7") == []
        broker.kill()
        broker.start()
        wait_until(lambda: device.observer.subscribed, "the observer")
        count = len(device.results())
        wait_until(lambda: len(device.results()) > count + 3, "readings again", 60)
        device.command("ping", "c-9")
        wait_until(lambda: device.states("ping", "c-9") == ["done"], "the answer", 5)
        assert last(device.observer, "status")["started_at"] == began


@contextmanager
def calibrating_agent(device: Device, go: Path) -> Iterator[subprocess.Popen[str]]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_AGENT_")}
    command = [sys.executable, "-c", CALIBRATING, str(go), "run", "--config", str(device.config)]
    with subprocess.Popen(command, env=environ, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("keepalive_s", "for_s"), [(5, 9), pytest.param(10, 60, marks=pytest.mark.slow)])
def test_long_command_lets_others_through_and_keeps_the_connection(
    make_broker: Callable[..., Broker], tmp_path: Path, keepalive_s: int, for_s: int
) -> None:
    """Field case MQ-8: `for_s` is longer than one and a half keep-alives, after which a broker drops who is silent."""
    broker = make_broker("allow_anonymous true").start()
    with Observer(broker.port, "edge/#") as observer:
        device = Device(tmp_path, broker.port, observer, mqtt={"port": broker.port, "keepalive_s": keepalive_s})
        go = tmp_path / "go"
        with calibrating_agent(device, go):
            device.wait_reading(None, 2)
            device.command("calibrate", "c-2")
            wait_until(lambda: device.states("calibrate", "c-2") == ["accepted"], "that it is accepted", 2)
            device.command("ping", "c-3")
            wait_until(lambda: device.states("ping", "c-3") == ["done"], "the ping's answer", 2)
            device.command("calibrate", "c-4")
            wait_until(lambda: device.states("calibrate", "c-4") == ["busy"], "that it is busy", 2)
            device.command("calibrate", "c-2")
            wait_until(lambda: device.states("calibrate", "c-2") == ["accepted", "duplicate"], "a duplicate", 2)
            began, count = time.monotonic(), len(device.results())
            wait_until(
                lambda: time.monotonic() - began > for_s and len(device.results()) > count + for_s,
                "reading",
                for_s + 60,
            )
            assert device.states("calibrate", "c-2") == ["accepted", "duplicate"]
            go.touch()
            wait_until(lambda: device.states("calibrate", "c-2")[-1] == "done", "the end of the calibration")
            done = device.replies("calibrate", "c-2")[-1]
            assert done["result"]["outcomes"] == [{"verdict": "promoted"}]
            said = [json.loads(payload)["state"] for payload in observer.payloads("edge/press7/status")]
            assert said == ["online"]
    assert "edge-agent-press7 has exceeded timeout" not in broker.log()
