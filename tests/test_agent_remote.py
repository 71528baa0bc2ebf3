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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from edge_agent.remote.config_store import ConfigStore
from tests.broker import DEADLINE_S, Broker, Observer, Proxy, free_port, wait_until
from tests.light import LIGHT
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


def said_since(observer: Observer, topic: str, count: int) -> list[dict[str, Any]]:
    """What the device has said there after so many messages, oldest first: of a state that passes the last one may be
    another by now."""
    return [json.loads(payload) for payload in observer.payloads(f"edge/press7/{topic}")[count:]]


class Device:
    """A device `press7` with one camera `left`, and the operator who looks on."""

    def __init__(
        self,
        folder: Path,
        port: int,
        observer: Observer,
        more_cameras: dict[str, Any] | None = None,
        trial_s: float = 3.6,
        **sections: Any,
    ) -> None:
        self.folder = folder
        self.observer = observer
        self.config = folder / "config.yaml"
        # as little work as does: the tests share the processor with it
        left = {"kind": "folder", "source": str(label_folder(folder / "left", 2)), "loop": True, "max_fps": 5}
        allowed = ["backend", "cameras", "catalogue.names", "fields", "log", "pipeline", "telemetry"]
        self.catalogue = folder / "products.txt"
        self.catalogue.write_text("Rye Crisps\n", encoding="utf-8")
        settings = {
            "device_id": "press7",
            "mqtt": {"port": port, "reconnect_min_s": 0.2},
            "backend": {"threads": 1},
            "pipeline": LIGHT,
            "cameras": {"left": left, **(more_cameras or {})},
            "catalogue": {"file": str(self.catalogue)},
            "telemetry": {"interval_s": 0.5},
            "outbox": {"path": str(folder / "outbox.db")},
            # how fast frames are read depends on what else this machine does: the pace is judged elsewhere, and two
            # frames in the trial must be enough to be sure that text has gone
            "remote": {
                "trial_s": trial_s,
                "trial_starts": 2,
                "allowed_keys": allowed,
                "min_fps_share": 0.01,
                "min_read_share": 0.95,
            },
        }
        self.config.write_text(json.dumps({**settings, **sections}), encoding="utf-8")
        self.store = ConfigStore(folder / "state" / "config")
        self._version = 0
        self._looked_at = 0  # so many of what was heard
        self._results: list[dict[str, Any]] = []

    def next_version(self) -> int:
        """One that no wish has had."""
        self._version += 1
        return self._version

    def active_version(self) -> int | None:
        """What is in force for good."""
        active = self.store.state().active
        return None if active is None else active.version

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

    def reports(self, *versions: int) -> list[tuple[Any, ...]]:
        """Code, version, token and active version of every report on these versions, repetitions at a birth left
        out."""
        said = said_since(self.observer, "config/reported", 0)
        found = [(each["code"], each["version"], each["token"], each["active_version"]) for each in said]
        return [each for n, each in enumerate(found) if each[1] in versions and (n == 0 or found[n - 1] != each)]

    def wait_report(self, code: int, version: int) -> dict[str, Any]:
        """The last one like it: another may have followed by now."""

        def found() -> list[dict[str, Any]]:
            said = said_since(self.observer, "config/reported", 0)
            return [each for each in said if (each["code"], each["version"]) == (code, version)]

        wait_until(lambda: bool(found()), f"report {code} of version {version}; had {self.reports(version)}")
        return found()[-1]

    def results(self) -> list[dict[str, Any]]:
        """All readings that were heard."""
        heard = self.observer.heard[self._looked_at :]
        self._looked_at += len(heard)
        self._results += [json.loads(each.payload) for each in heard if each.topic == "edge/press7/left/result"]
        return self._results

    def wait_results(self, more: int = 1) -> dict[str, Any]:
        """The last one, once so many came from now on."""
        count = len(self.results())
        wait_until(lambda: len(self.results()) >= count + more, f"{more} more readings", 60)
        return self.results()[-1]

    def wait_reading(self, version: int | None, count: int = 1) -> None:
        wait_until(
            lambda: sum(each["config_version"] == version for each in self.results()) >= count,
            f"{count} readings under version {version}",
            60,
        )

    def wait_return(self, version: int | None) -> None:
        """Until what comes from now on was read under that one."""
        wait_until(lambda: bool(self.wait_results()["config_version"] == version), f"readings under version {version}")

    def wait_figures(self) -> None:
        """Until the agent has seen enough of what is in force to compare a trial with it, on a busy machine too."""
        began = self.wait_results()["captured_mono"]
        wait_until(lambda: bool(self.results()[-1]["captured_mono"] - began > 3.5), "readings to compare with", 60)

    def wait_health(self, pipeline: str, reason: str = "") -> None:
        wait_until(
            lambda: (
                (health := last(self.observer, "health"))["pipeline"] == pipeline and reason in str(health["reason"])
            ),
            f"{pipeline} {reason}",
            60,
        )

    def started_at(self) -> str:
        """When the process that is online began."""
        wait_until(lambda: last(self.observer, "status").get("state") == "online", "online", 60)
        return str(last(self.observer, "status")["started_at"])


@dataclass
class Press:
    """A device that is running all the time, for tests that leave it reading."""

    device: Device
    broker: Broker
    process: subprocess.Popen[bytes]
    log: Path


@pytest.fixture(scope="module")
def press(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Press]:
    folder = tmp_path_factory.mktemp("press7")
    secret = folder / "secret"
    secret.write_text("S3cr#t@pw\n", encoding="utf-8")
    secret.chmod(0o600)
    door = {"kind": "rtsp", "source": f"rtsp://viewer@127.0.0.1:{free_port()}/live", "password_file": str(secret)}
    gate = {"kind": "rtsp", "source": f"rtsp://admin:S3cret%21pw@127.0.0.1:{free_port()}/live"}
    closed = {"door": {**door, "enabled": False}, "gate": {**gate, "enabled": False}}
    broker, log = Broker(folder).start(), folder / "agent.log"
    mqtt = {"port": broker.port, "reconnect_min_s": 0.2, "username": "press7", "password_file": str(secret)}
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_AGENT_")}
    environ |= {"OPENCV_LOG_LEVEL": "DEBUG", "OPENCV_VIDEOIO_DEBUG": "1"}  # it would print the whole address
    with Observer(broker.port, "edge/#") as observer, log.open("wb") as stderr:
        device = Device(folder, broker.port, observer, more_cameras=closed, mqtt=mqtt)
        device.command("restart", "c-retained", retain=True)
        command = [sys.executable, "-m", "edge_agent", "run", "--config", str(device.config)]
        with subprocess.Popen(command, env=environ, stderr=stderr) as process:
            try:
                device.wait_reading(None, 1)
                yield Press(device, broker, process, log)
                process.send_signal(signal.SIGTERM)
                assert process.wait(DEADLINE_S) == 0
                wait_until(lambda: last(observer, "status")["reason"] == "shutdown", "the last farewell")
            finally:
                process.kill()
    broker.stop()


@contextmanager
def damaged(file: Path) -> Iterator[None]:
    """Inside, it is no text."""
    text = file.read_bytes()
    file.write_bytes(b"\xff\xfe")
    try:
        yield
    finally:
        file.write_bytes(text)


@pytest.fixture
def device(press: Press) -> Iterator[Device]:
    """Reading; under the same process id after the test."""
    press.device.wait_results()
    yield press.device
    assert press.process.poll() is None


# ---- commands -------------------------------------------------------------------------------------------------------


def test_retained_command_is_not_carried_out_at_a_connect_and_answers_come_after_an_outage(
    press: Press, device: Device
) -> None:
    began = device.started_at()
    device.command("ping", "c-20")
    wait_until(lambda: device.states("ping", "c-20") == ["done"], "the answer")

    def ignored() -> int:
        section = last(device.observer, "telemetry").get("remote", {})
        return int(section.get("commands", {}).get("ignored_retained", 0))

    device.command("restart", "c-21", retain=True)  # while it listens: no other case
    wait_until(lambda: ignored() == 2, "the count of both")
    assert device.states("restart", "c-retained") + device.states("restart", "c-21") == []
    told = len(device.observer.payloads("edge/press7/status"))
    press.broker.kill()  # what it had retained is gone with it
    press.broker.start()
    # it says so once it hears commands again
    wait_until(lambda: bool(said_since(device.observer, "status", told)), "the device, online again")
    device.wait_results(3)
    device.command("ping", "c-22")
    wait_until(lambda: device.states("ping", "c-22") == ["done"], "the answer")
    assert device.started_at() == began


def test_commands_are_answered_once_each_also_over_a_restart(device: Device) -> None:
    device.command("ping", "c-1")
    wait_until(lambda: device.states("ping", "c-1") == ["done"], "the answer")
    device.command("snapshot", "c-2", {"camera": "left"})
    wait_until(lambda: device.states("snapshot", "c-2") == ["done"], "the picture")
    jpeg = base64.b64decode(device.replies("snapshot", "c-2")[0]["result"]["jpeg_base64"])
    picture = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert picture.shape[1] == device.results()[-1]["frame"]["width_px"]
    device.command("restart", "c-3")
    wait_until(lambda: device.states("restart", "c-3") == ["accepted", "done"], "the restart", 60)
    device.command("restart", "c-3")
    device.command("ping", "c-1")
    wait_until(lambda: device.states("ping", "c-1") == ["done", "duplicate"], "the second ping", 60)
    assert device.states("restart", "c-3") == ["accepted", "done", "duplicate"]
    device.command("reboot", "c-4")
    wait_until(lambda: device.states("reboot", "c-4") == ["failed"], "that it is unknown")
    device.command("ledger", "c-5")
    wait_until(lambda: device.states("ledger", "c-5") == ["done"], "the ledger")
    assert device.replies("ledger", "c-5")[0]["result"]["all"]["left"]["produced"] > 0


def test_command_that_the_network_delivers_again_runs_once(press: Press, device: Device) -> None:
    """Field case MQ-6 (b): the connection is cut before the ack, so whoever sent the command sends it again."""
    with Proxy(press.broker.port) as proxy:
        sender = paho.Client(CallbackAPIVersion.VERSION2, "sender", clean_session=False)
        sender.reconnect_delay_set(1, 1)
        sender.connect("127.0.0.1", proxy.port)
        sender.loop_start()
        try:
            wait_until(sender.is_connected, "the sender's connection")
            proxy.swallow_answers = True
            sent = sender.publish("edge/press7/command/replay", b'{"id": "c-10"}', qos=1)
            wait_until(lambda: device.states("replay", "c-10") == ["done"], "the answer")
            assert not sent.is_published()
            proxy.cut()  # before an answer that was late
            proxy.swallow_answers = False
            wait_until(
                lambda: device.states("replay", "c-10") == ["done", "duplicate"], "the answer to the second copy"
            )
            wait_until(sent.is_published, "the ack")
        finally:
            sender.disconnect()
            sender.loop_stop()


# ---- configurations -------------------------------------------------------------------------------------------------


def test_nonsense_and_forbidden_things_change_nothing(device: Device) -> None:
    active, began = device.active_version(), device.started_at()
    for payload in (b"\xff" * 70_000, b'{"version": 1, "patch": {"fields": {"max_fields": NaN}}}', b"[" * 60_000):
        told = len(device.observer.payloads("edge/press7/config/reported"))
        device.observer.publish("edge/press7/config/desired", payload)
        reports = partial(said_since, device.observer, "config/reported", told)
        wait_until(lambda reports=reports: any(each["code"] == 400 for each in reports()), "its report")
    forbidden, source = device.next_version(), device.next_version()
    device.desire(forbidden, mqtt={"host": "evil.example"}, state_dir="/tmp", cameras={"left": {"source": "/etc"}})
    refused = device.wait_report(400, forbidden)["refused"]
    assert {each["key"] for each in refused} == {"mqtt.host", "state_dir"}
    device.desire(source, cameras={"left": {"source": "/etc"}})
    why = device.wait_report(400, source)["refused"][0]["why"]
    assert why == "is a path, and file is not among remote.camera_schemes"
    assert device.wait_results()["config_version"] == active
    assert (device.active_version(), device.started_at()) == (active, began)


def test_live_configuration_is_applied_without_a_restart_and_kept_for_the_next_one(device: Device) -> None:
    """Or taken back, even if the file of the catalogue that is to return was damaged meanwhile."""
    active, began = device.active_version(), device.started_at()
    harmful, good = device.next_version(), device.next_version()
    device.wait_figures()
    blind = {"min_confidence": 0.9999, "no_text_interval_s": 0.01}
    device.desire(harmful, "t-5", pipeline=blind, catalogue={"names": ["Oat Bar"]})
    device.wait_report(202, harmful)
    with damaged(device.catalogue):
        device.wait_reading(harmful)
        assert [each for each in device.results() if each["config_version"] == harmful][-1]["lines"] == []
        # text is gone, as it was wished for, and that is what the trial notices
        assert "text was found in 0% of the frames" in device.wait_report(500, harmful)["detail"]
        device.wait_health("degraded", "products.txt cannot be read")
    device.desire(good, "t-6", pipeline={"min_confidence": 0.4})
    device.wait_report(200, good)
    device.wait_health("running")
    assert device.started_at() == began
    assert device.reports(harmful, good) == [
        (202, harmful, "t-5", active),
        (500, harmful, "t-5", active),
        (202, good, "t-6", active),
        (200, good, "t-6", good),
    ]
    device.command("restart", "c-30")
    wait_until(lambda: device.reports(good)[-1] == (200, good, None, good), "the report of the next process", 60)
    wait_until(lambda: device.states("restart", "c-30")[-1] == "done", "the next process", 60)
    assert device.wait_results()["config_version"] == good


def test_rollback_by_hand_is_noticed_by_the_running_agent(device: Device) -> None:
    before, version, began = device.active_version(), device.next_version(), device.started_at()
    device.desire(version, pipeline={"min_confidence": 0.45})
    device.wait_report(200, version)
    command = [sys.executable, "-m", "edge_agent", "config", "rollback", str(device.config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert f"version {version} of" in done.stdout
    device.wait_report(500, version)
    device.wait_return(before)
    assert device.started_at() == began, "a key that changes between two frames needs no restart"


def test_other_configuration_is_tried_by_a_restart_under_the_same_process_id(device: Device) -> None:
    version, began = device.next_version(), len(device.results())
    told = len(device.observer.payloads("edge/press7/status"))
    device.desire(version, "t-5", pipeline={"detector_max_side_px": 608})
    device.wait_report(202, version)
    statuses = partial(said_since, device.observer, "status", told)
    wait_until(lambda: any(each["reason"] == "restarting" for each in statuses()), "the farewell")
    device.wait_reading(version, 2)
    device.wait_report(200, version)
    assert last(device.observer, "health")["pipeline"] == "running"
    seqs = [each["seq"] for each in device.results()[began:]]
    assert seqs == sorted(set(seqs)), "numbers go on over the restart"


def test_configuration_whose_camera_does_not_come_is_rolled_back_and_no_password_is_told(
    press: Press, device: Device
) -> None:
    """Field case SEC-1 as well: the password is read only once the camera was switched on from afar."""
    before, version = device.active_version(), device.next_version()
    opened = {"door": {"enabled": True}, "gate": {"enabled": True}}
    device.desire(version, "t-5", cameras=opened, log={"level": "debug"})
    report = device.wait_report(500, version)
    assert report["detail"] == "camera door is not online; camera gate is not online"
    assert report["rolled_back_from"] == version
    device.started_at()
    device.wait_return(before)
    device.wait_results(2)
    # the retained wish is still there, and is not tried again
    assert [each[0] for each in device.reports(version)].count(202) == 1
    log = press.log.read_text("utf-8")
    assert "camera door is offline" in log
    assert "rtsp://admin:***@127.0.0.1" in log
    shown = [sys.executable, "-m", "edge_agent", "config", "show", str(device.config)]
    config = subprocess.run(shown, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "rtsp://admin:***@127.0.0.1" in config
    told = log + config + repr(device.observer.heard)
    assert not [form for form in ("S3cr", "S3cr%23t%40pw", "S3cret%21pw", "S3cret!pw") if form in told]
    past = device.store.state().past[-1]
    assert json.loads(device.store.text(str(past.text)))["version"] == version


def test_configuration_whose_start_fails_is_rolled_back_at_once(device: Device) -> None:
    """An exit with 78 would keep the service manager from starting it again."""
    before, version = device.active_version(), device.next_version()
    device.desire(version, "t-5", backend={"kind": "tensorrt"})
    report = device.wait_report(500, version)
    assert report["detail"].startswith("ConfigError: ")
    assert "tensorrt" in report["detail"]
    assert (report["token"], report["rolled_back_from"]) == ("t-5", version)
    device.started_at()
    device.wait_return(before)


# ---- tests that need an agent of their own --------------------------------------------------------------------------


def test_process_that_is_killed_again_and_again_under_trial_returns_to_the_last_good_one(
    tmp_path: Path, broker: Broker
) -> None:
    with Observer(broker.port, "edge/#") as observer:
        device = Device(tmp_path, broker.port, observer, trial_s=600)  # none is over before its process is killed
        with agent_process(device.config):
            device.wait_reading(None, 1)
            device.desire(5, "t-5", pipeline={"detector_max_side_px": 608})
            device.wait_report(202, 5)
            wait_until(lambda: device.store.state().trial is not None, "the trial on disk")
        # leaving kills it: before the trial's first frame, unless it was quick, then during the trial
        for start in range(1, 3):
            with agent_process(device.config):
                wait_until(lambda start=start: starts(device.store) >= start, "the start is counted", 60)
                if start == 2:
                    device.wait_reading(5, 1)
        with agent_process(device.config):
            report = device.wait_report(500, 5)
            assert "2 processes ended untidily" in report["detail"]
            device.wait_return(None)


def starts(store: ConfigStore) -> int:
    trial = store.state().trial
    return 99 if trial is None else trial.starts


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
            wait_until(lambda: device.states("calibrate", "c-2") == ["accepted"], "that it is accepted")
            device.command("ping", "c-3")
            wait_until(lambda: device.states("ping", "c-3") == ["done"], "the ping's answer")
            device.command("calibrate", "c-4")
            wait_until(lambda: device.states("calibrate", "c-4") == ["busy"], "that it is busy")
            device.command("calibrate", "c-2")
            wait_until(lambda: device.states("calibrate", "c-2") == ["accepted", "duplicate"], "a duplicate")
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
