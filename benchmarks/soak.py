"""Trouble for some minutes, and the account of it: is every reading delivered or counted, and does nothing grow?

    python benchmarks/soak.py --minutes 10

A real `edge-agent run` reads rendered labels from three cameras and publishes to a real Mosquitto, while brokers are
killed, frozen and stopped, a camera is lost and comes back, settings are changed from afar (live, by a restart, and
such as have to be rolled back) and commands are given. A subscriber with a session of its own, to which the broker owes
what came while it was away, notes everything. The broker keeps its own state on disk after each change; what it has
confirmed and not written when it is killed is lost by the broker, and would be counted here as not heard.

In the last part of the time no process is replaced, so that memory, threads and open files of one can be compared.
Needs Mosquitto. Prints a table, and one JSON object with --json; exits with 1 where something is not in order.
"""

from __future__ import annotations

import argparse
import getpass
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import paho.mqtt.client as paho
import psutil
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from edge_agent.demo.broker import HOST, free_port, mosquitto
from edge_agent.demo.child import Child, started
from edge_agent.demo.labels import render_label, sample_labels
from edge_agent.outbox.accounts import read_ledger
from tests.light import LIGHT

DEVICE = "soak"
BASE = f"edge/{DEVICE}"
CAMERAS = ("belt", "left", "right")
FRAME_HEIGHT_PX, FRAME_WIDTH_PX, LABEL_WIDTH_PX = 480, 640, 560
MAX_FPS = 4.0
TRIAL_S = 9.0
SAMPLE_S = 1.0
SETTLE_S = 45.0  # of a process, before its memory counts
RESTARTS_SHARE = 0.4  # of the time, at its beginning, in which the process may be replaced
DEADLINE_S = 90.0
RSS_GROWTH_PERCENT = 5.0
THREADS_GROWTH = 2
FILES_GROWTH = 3


class GaveUp(Exception):
    """Something that was to come did not."""


def wait_for(true: Callable[[], bool], what: str, timeout_s: float = DEADLINE_S) -> None:
    """Polls until `true()`; GaveUp, naming `what`, where it does not come."""
    deadline = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > deadline:
            raise GaveUp(f"waited {timeout_s:g} s for {what}")
        time.sleep(0.02)


class Broker:
    """Mosquitto, which writes its sessions and queues down after each change; `forgetful`: not at all."""

    def __init__(self, folder: Path, *, forgetful: bool) -> None:
        self.port = free_port()
        self._log = (folder / "mosquitto.log").open("ab")
        self._settings = folder / "mosquitto.conf"
        self._settings.write_text(
            f"listener {self.port} {HOST}\nallow_anonymous true\nuser {getpass.getuser()}\n"
            f"persistence {'false' if forgetful else 'true'}\npersistence_location {folder}/\n"
            "autosave_on_changes true\nautosave_interval 1\n"
            "max_queued_messages 0\nlog_type error\nlog_type warning\nlog_type notice\n",
            encoding="utf-8",
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it; returns when it listens."""
        program = mosquitto()
        if program is None:
            raise SystemExit("needs Mosquitto: apt-get install mosquitto")
        self._process = subprocess.Popen([program, "-c", str(self._settings)], stdout=self._log, stderr=self._log)
        wait_for(self._answers, "Mosquitto", 20)

    def send(self, number: signal.Signals) -> None:
        """A signal; after one that ends it, it has ended."""
        if self._process is None:
            return
        self._process.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self._process.wait(20)

    def close(self) -> None:
        """Ends it."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self.send(signal.SIGTERM)
        self._log.close()

    def _answers(self) -> bool:
        import socket

        with suppress(OSError), socket.create_connection((HOST, self.port), timeout=1):
            return True
        return False


@dataclass(frozen=True)
class Heard:
    """A reading as it came."""

    id: str
    camera: str
    seq: int
    historical: bool
    at_mono: float


class Operator:
    """Subscribes with a session that outlives its connections, notes what came, and asks for changes."""

    def __init__(self, port: int) -> None:
        self.readings: list[Heard] = []
        self.states: dict[str, dict[str, Any]] = {}
        self.reports: list[dict[str, Any]] = []
        self.replies: defaultdict[str, list[str]] = defaultdict(list)
        self.events: Counter[str] = Counter()
        self.unreadable = 0
        self._subscribed = threading.Event()
        self._client = paho.Client(
            CallbackAPIVersion.VERSION2, client_id="soak-operator", protocol=MQTTProtocolVersion.MQTTv5
        )
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        self._client.on_message = self._on_message
        self._client.reconnect_delay_set(1, 2)
        session = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        session.SessionExpiryInterval = 86_400
        self._client.connect(HOST, port, keepalive=10, clean_start=False, properties=session)
        self._client.loop_start()
        if not self._subscribed.wait(20):
            raise GaveUp("the subscription was not confirmed")

    def close(self) -> None:
        """Disconnects."""
        self._client.disconnect()
        self._client.loop_stop()

    def publish(self, topic: str, body: Mapping[str, Any], *, retain: bool = False) -> None:
        """At QoS 1; returns when the broker has it."""
        self._client.publish(f"{BASE}/{topic}", json.dumps(body), qos=1, retain=retain).wait_for_publish(DEADLINE_S)

    def terminal(self, command_id: str) -> list[str]:
        """How a command ended, as often as that was said."""
        return [state for state in self.replies[command_id] if state != "accepted"]

    def _on_connect(self, client: paho.Client, *_: Any) -> None:
        client.subscribe(f"{BASE}/#", qos=1)

    def _on_message(self, _client: paho.Client, _userdata: Any, message: paho.MQTTMessage) -> None:
        topic = message.topic.removeprefix(f"{BASE}/")
        if topic == "config/desired" or (topic.startswith("command/") and not topic.endswith("/reply")):
            return
        try:
            body = json.loads(message.payload)
        except ValueError:
            self.unreadable += 1
            return
        if topic.endswith("/result"):
            heard = Heard(body["id"], body["camera"], body["seq"], body["historical"], time.monotonic())
            self.readings.append(heard)
        elif topic == "config/reported":
            self.reports.append(body)
        elif topic.endswith("/reply"):
            self.replies[body["id"]].append(body["state"])
        elif topic == "event":
            self.events[body["kind"]] += 1
        else:
            self.states[topic] = body


@dataclass
class Footprint:
    """What one process (pid and start under it) took, second by second."""

    began_mono: float
    rss_mb: list[float] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)


class Meter(threading.Thread):
    """Looks at the agent once in SAMPLE_S; a process that starts afresh under the same id begins another footprint."""

    def __init__(self, pid: int, life: Callable[[], object]) -> None:
        super().__init__(name="meter", daemon=True)
        self.lives: list[Footprint] = []
        self._process = psutil.Process(pid)
        self._life = life
        self._seen: object = None
        self._done = threading.Event()

    def run(self) -> None:
        """Until `stop`, or the process has ended."""
        with suppress(psutil.Error):
            while not self._done.wait(SAMPLE_S):
                life = self._life()
                if life is not None and life != self._seen:
                    self._seen = life
                    self.lives.append(Footprint(time.monotonic()))
                if self.lives:
                    now = self.lives[-1]
                    now.rss_mb.append(self._process.memory_info().rss / 1e6)
                    now.threads.append(self._process.num_threads())
                    now.files.append(self._process.num_fds())

    def stop(self) -> None:
        """Ends the looking."""
        self._done.set()
        self.join(5)


def render(folder: Path) -> None:
    """Frames of labels: folders `left` and `right` of 12 each, and the same as a film, `belt.avi`."""
    frames = []
    for n, label in enumerate(sample_labels(time.gmtime().tm_year + 1) * 4):
        picture = render_label(label, LABEL_WIDTH_PX).image
        frame = np.full((FRAME_HEIGHT_PX, FRAME_WIDTH_PX, 3), 90 + n % 7 * 10, np.uint8)
        top, left = 5 + n % 11 * 8, 5 + n % 13 * 5
        frame[top : top + picture.shape[0], left : left + picture.shape[1]] = picture[: FRAME_HEIGHT_PX - top]
        frames.append(frame)
    for name in ("left", "right"):
        (folder / name).mkdir()
        for n, frame in enumerate(frames[:12]):
            cv2.imwrite(str(folder / name / f"{n:03}.jpg"), frame)
    film = cv2.VideoWriter(
        str(folder / "belt.avi"), cv2.VideoWriter.fourcc(*"MJPG"), MAX_FPS, (FRAME_WIDTH_PX, FRAME_HEIGHT_PX)
    )
    for frame in frames:
        film.write(frame)
    film.release()


def settings(folder: Path, port: int) -> dict[str, Any]:
    """What the agent is started with: light models, so that a small machine has time for trouble."""
    cameras: dict[str, Any] = {
        name: {"kind": "folder", "source": str(folder / name), "loop": True, "max_fps": MAX_FPS}
        for name in ("left", "right")
    }
    cameras["belt"] = {"kind": "video", "source": str(folder / "belt.avi"), "loop": True, "max_fps": MAX_FPS}
    for camera in cameras.values():
        camera |= {"stalled_after_s": 2.0, "reconnect_max_s": 2.0}
    cameras["ghost"] = {"kind": "rtsp", "source": f"rtsp://{HOST}:{free_port()}/live", "enabled": False}
    return {
        "device_id": DEVICE,
        "mqtt": {"host": HOST, "port": port, "keepalive_s": 5, "reconnect_min_s": 0.5, "reconnect_max_s": 3.0},
        "outbox": {"path": str(folder / "outbox.db"), "historical_after_s": 3.0},
        "pipeline": {**LIGHT, "no_text_interval_s": 0.001},
        "cameras": cameras,
        "telemetry": {"interval_s": 2.0},
        "remote": {
            "allowed_keys": ["cameras", "fields", "log", "pipeline", "telemetry"],
            "trial_s": TRIAL_S,
            "min_fps_share": 0.05,  # what else this machine does meanwhile is no fault of a configuration
        },
    }


class Trouble:
    """What is done to the agent. Each method is one thing, and returns when its end has been seen."""

    def __init__(self, folder: Path, broker: Broker, operator: Operator, rng: random.Random) -> None:
        self._folder = folder
        self._broker = broker
        self._operator = operator
        self._rng = rng
        self._version = 0
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.outages_mono: list[tuple[float, float]] = []
        self.expected_replies: dict[str, tuple[str, ...]] = {}

    def turn(self, *, restarts: bool) -> Iterator[Callable[[], None]]:
        """Everything once, in some order; `restarts`: also what replaces the process."""
        steps = [
            self.broker_killed,
            self.broker_killed,
            self.broker_frozen,
            self.broker_stopped,
            self.camera_lost,
            self.live_change,
            self.change_rolled_back,
            self.asked,
            self.refused_change,
        ]
        if restarts:
            steps += [self.change_by_restart, self.camera_that_does_not_come, self.restarted]
        self._rng.shuffle(steps)
        yield from steps

    def do(self, step: Callable[[], None]) -> None:
        """Does one thing; what does not come is noted."""
        name = step.__name__.replace("_", " ")
        self.counts[name] += 1
        try:
            step()
            self.readings_come()
        except GaveUp as exc:
            self.faults.append(f"{name}: {exc}")

    def readings_come(self, count: int = 5) -> None:
        """Waits for readings that are live."""
        began = len(self._operator.readings)

        def live() -> int:
            return sum(not heard.historical for heard in self._operator.readings[began:])

        wait_for(lambda: live() >= count, "live readings")

    def broker_killed(self) -> None:
        """SIGKILL at any moment, and a while without."""
        time.sleep(self._rng.uniform(0.0, 1.0))
        self._away(signal.SIGKILL, self._rng.uniform(0.2, 8.0))

    def broker_stopped(self) -> None:
        """A clean restart."""
        self._away(signal.SIGTERM, self._rng.uniform(0.2, 8.0))

    def broker_frozen(self) -> None:
        """SIGSTOP for longer than the keep-alive."""
        began = time.monotonic()
        self._broker.send(signal.SIGSTOP)
        time.sleep(self._rng.uniform(8.0, 14.0))
        self._broker.send(signal.SIGCONT)
        self.outages_mono.append((began, time.monotonic()))

    def _away(self, how: signal.Signals, gone_s: float) -> None:
        began = time.monotonic()
        self._broker.send(how)
        time.sleep(gone_s)
        self._broker.start()
        self.outages_mono.append((began, time.monotonic()))

    def camera_lost(self) -> None:
        """A camera's folder vanishes, is noticed, and comes back."""
        here, away = self._folder / "left", self._folder / "left.away"
        here.rename(away)
        try:
            wait_for(lambda: self._camera("left") != "online", "the loss of camera left to be said")
            time.sleep(self._rng.uniform(0.0, 4.0))
        finally:
            away.rename(here)
        wait_for(lambda: self._camera("left") == "online", "the return of camera left to be said")

    def _camera(self, name: str) -> str:
        return str(self._operator.states.get(f"{name}/status", {}).get("state"))

    def live_change(self) -> None:
        """Settings that need no restart."""
        confidence = round(self._rng.uniform(0.3, 0.6), 3)
        self._desire({"pipeline": {"min_confidence": confidence}, "telemetry": {"interval_s": 1.5}}, 200)

    def change_by_restart(self) -> None:
        """Settings for which the process starts afresh."""
        side_px = self._rng.choice((544, 576, 608))
        self._desire({"pipeline": {"detector_max_side_px": side_px, "max_boxes": self._rng.randint(50, 90)}}, 200)

    def change_rolled_back(self) -> None:
        """Settings under which no text is found any more: the trial ends them."""
        time.sleep(4.0)  # there must be something to compare with
        self._desire({"pipeline": {"min_confidence": 1.0 - self._rng.uniform(0, 1e-6)}}, 500)

    def camera_that_does_not_come(self) -> None:
        """Settings that take two restarts: to be tried, and to be taken back."""
        self._desire({"cameras": {"ghost": {"enabled": True}}, "pipeline": {"max_boxes": self._version + 100}}, 500)

    def refused_change(self) -> None:
        """Settings that may not come from afar."""
        self._desire({"mqtt": {"host": "elsewhere.example"}}, 400)

    def _desire(self, patch: Mapping[str, Any], code: int) -> None:
        self._version += 1
        version, token = self._version, f"t-{self._version}"
        self._operator.publish("config/desired", {"version": version, "token": token, "patch": patch}, retain=True)

        def ended() -> list[int]:
            codes = [each["code"] for each in self._operator.reports if each["version"] == version]
            return [code for code in codes if code != 202]

        wait_for(lambda: bool(ended()), f"the end of version {version}")
        if ended()[0] != code:
            raise GaveUp(f"version {version} ended with {self._operator.reports[-1]}; expected {code}")

    def asked(self) -> None:
        """Commands, one of them twice."""
        wanted = {"ping": "done", "ledger": "done", "snapshot": "done", "replay": "done", "no-such": "failed"}
        for name, state in wanted.items():
            self._command(name, (state,), {"camera": "belt"} if name == "snapshot" else {})
        self._command("ping", ("done", "duplicate"), {}, times=2)

    def restarted(self) -> None:
        """A restart by command."""
        self._command("restart", ("done",), {})

    def _command(self, name: str, states: tuple[str, ...], args: Mapping[str, Any], times: int = 1) -> None:
        command_id = f"{name}-{len(self.expected_replies)}"
        self.expected_replies[command_id] = states
        for _ in range(times):
            self._operator.publish(f"command/{name}", {"id": command_id, "args": args})
        wait_for(lambda: len(self._operator.terminal(command_id)) >= len(states), f"the answer to {command_id}")


def soak(folder: Path, minutes: float, rng: random.Random, *, forgetful: bool) -> dict[str, Any]:
    """Runs it; the figures, with what is not in order under `faults`."""
    render(folder)
    broker = Broker(folder, forgetful=forgetful)
    broker.start()
    try:
        config = folder / "config.yaml"
        config.write_text(json.dumps(settings(folder, broker.port)), encoding="utf-8")
        operator = Operator(broker.port)
        try:
            command = [sys.executable, "-m", "edge_agent", "run", "--config", str(config)]
            with started("agent", command, folder / "agent.log", grace_s=20) as agent:
                trouble = Trouble(folder, broker, operator, rng)
                meter = watched(agent, operator)
                make_trouble(trouble, agent, minutes)
                meter.stop()
                exit_code = tidy_end(agent, operator, trouble)
            time.sleep(2.0)  # what the broker still owes the subscriber
            return account(folder, operator, trouble, meter, exit_code)
        finally:
            operator.close()
    finally:
        broker.close()


def watched(agent: Child, operator: Operator) -> Meter:
    """The meter of an agent that has begun to read."""
    wait_for(lambda: len(operator.readings) > 10, f"the first readings, see {agent.log}")
    meter = Meter(agent.pid, lambda: operator.states.get("status", {}).get("started_at"))
    meter.start()
    return meter


def make_trouble(trouble: Trouble, agent: Child, minutes: float) -> None:
    """Turn after turn until the time is up."""
    began, until_s = time.monotonic(), minutes * 60

    def elapsed_s() -> float:
        return time.monotonic() - began

    while elapsed_s() < until_s:
        restarts = elapsed_s() < RESTARTS_SHARE * until_s
        for step in trouble.turn(restarts=restarts):
            if elapsed_s() >= until_s or (restarts and elapsed_s() >= RESTARTS_SHARE * until_s):
                break
            print(f"\r{elapsed_s():5.0f} s  {step.__name__:30}", end="", file=sys.stderr, flush=True)
            trouble.do(step)
            if agent.exit_code() is not None:
                trouble.faults.append(f"the agent ended with {agent.exit_code()}")
                return
    print(file=sys.stderr)


def tidy_end(agent: Child, operator: Operator, trouble: Trouble) -> int | None:
    """SIGTERM once the backlog is gone; the exit code."""
    with suppress(GaveUp):
        wait_for(lambda: operator.states["telemetry"]["outbox"]["depth"] < 20, "the backlog to go")
    psutil.Process(agent.pid).send_signal(signal.SIGTERM)
    try:
        wait_for(lambda: agent.exit_code() is not None, "the agent to end", 20)
    except GaveUp as exc:
        trouble.faults.append(str(exc))
    return agent.exit_code()


def account(folder: Path, operator: Operator, trouble: Trouble, meter: Meter, exit_code: int | None) -> dict[str, Any]:
    """The figures of a run, and what of them is not as it should be."""
    faults = list(trouble.faults)
    if exit_code != 0:
        faults.append(f"the agent ended with {exit_code}")
    cameras, totals = {}, read_ledger(folder / "outbox.db").totals()
    for name in CAMERAS:
        figures = of_camera(name, operator, totals[name])
        cameras[name] = figures
        faults += camera_faults(name, figures)
    for command_id, states in trouble.expected_replies.items():
        if tuple(operator.terminal(command_id)) != states:
            faults.append(f"command {command_id} was answered {operator.replies[command_id]}; expected {states}")
    if operator.unreadable:
        faults.append(f"{operator.unreadable} payloads were no JSON")
    footprint = footprint_of(meter.lives[-1])
    faults += footprint_faults(footprint)
    return {
        "readings": cameras,
        "trouble": dict(sorted(trouble.counts.items())),
        "seconds_without_broker": round(sum(end - begin for begin, end in trouble.outages_mono)),
        "processes": len(meter.lives),
        "last_process": footprint,
        "commands": len(trouble.expected_replies),
        "reports": dict(Counter(str(each["code"]) for each in operator.reports)),
        "events": dict(operator.events),
        "faults": faults,
    }


def of_camera(name: str, operator: Operator, row: Mapping[str, Any]) -> dict[str, Any]:
    """One camera's ledger beside what the subscriber heard."""
    heard = [each for each in operator.readings if each.camera == name]
    first: dict[str, Heard] = {}
    for each in heard:
        first.setdefault(each.id, each)
    return {
        **row,
        "heard": len(first),
        "heard_again": len(heard) - len(first),
        "historical": sum(each.historical for each in first.values()),
        "out_of_order": sum(
            later.seq < earlier.seq
            for historical in (False, True)
            for stream in [[each for each in first.values() if each.historical is historical]]
            for earlier, later in pairwise(stream)
        ),
    }


def camera_faults(name: str, figures: Mapping[str, Any]) -> Iterator[str]:
    """What of a camera's account is not in order."""
    accounted = figures["delivered"] + figures["queued"] + sum(figures["dropped"].values())
    if figures["produced"] != accounted:
        yield f"{name}: {figures['produced']} readings were produced, {accounted} are accounted for"
    # a reading whose confirmation was lost with the connection is still queued, and was heard all the same
    if not figures["delivered"] <= figures["heard"] <= figures["delivered"] + figures["queued"]:
        yield f"{name}: {figures['delivered']} readings were confirmed, {figures['heard']} were heard"
    if figures["out_of_order"]:
        yield f"{name}: {figures['out_of_order']} readings came out of order"
    if not figures["produced"]:
        yield f"{name}: nothing was read"


def footprint_of(life: Footprint) -> dict[str, Any]:
    """A process once it had settled: at first, at the end (the highest of 10 samples each), and at most."""
    settled = min(int(SETTLE_S / SAMPLE_S), len(life.rss_mb) // 2)
    figures: dict[str, Any] = {"seconds": round(len(life.rss_mb) * SAMPLE_S), "settled_after_s": settled * SAMPLE_S}
    for what in ("rss_mb", "threads", "files"):
        samples = getattr(life, what)[settled:]
        figures[what] = {"first": max(samples[:10]), "last": max(samples[-10:]), "most": max(samples)}
    figures["rss_mb"] = {when: round(value, 1) for when, value in figures["rss_mb"].items()}
    return figures


def footprint_faults(figures: Mapping[str, Any]) -> Iterator[str]:
    """What grew."""
    rss = figures["rss_mb"]
    if rss["last"] > rss["first"] * (1 + RSS_GROWTH_PERCENT / 100):
        yield f"memory grew from {rss['first']} to {rss['last']} MB"
    for what, limit in (("threads", THREADS_GROWTH), ("files", FILES_GROWTH)):
        if figures[what]["last"] > figures[what]["first"] + limit:
            yield f"{what} grew from {figures[what]['first']} to {figures[what]['last']}"


def table(figures: Mapping[str, Any]) -> str:
    """For people."""
    columns = ("produced", "delivered", "queued", "dropped", "heard", "heard_again", "historical", "out_of_order")
    rows = ["".join([f"{'camera':<8}", *(f"{column.replace('_', ' '):>14}" for column in columns)])]
    for name, row in figures["readings"].items():
        values = {**row, "dropped": sum(row["dropped"].values())}
        rows.append("".join([f"{name:<8}", *(f"{values[column]:>14}" for column in columns)]))
    rows += ["", "trouble: " + ", ".join(f"{count} x {name}" for name, count in figures["trouble"].items())]
    last = figures["last_process"]
    rows.append(f"{figures['seconds_without_broker']} s without a broker; {figures['processes']} processes in turn")
    rows.append(f"the last, {last['seconds']} s, after {last['settled_after_s']:.0f} s, at its end, and at most:")
    for what in ("rss_mb", "threads", "files"):
        rows.append(f"  {what:<8} {last[what]['first']:>8} {last[what]['last']:>8} {last[what]['most']:>8}")
    rows += ["", *(f"NOT IN ORDER: {fault}" for fault in figures["faults"])] if figures["faults"] else ["in order"]
    return "\n".join(rows)


@contextmanager
def working_folder(keep: Path | None) -> Iterator[Path]:
    """A folder that goes afterwards, or `keep`."""
    if keep is not None:
        keep.mkdir(parents=True)
        yield keep.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="edge-agent-soak-") as folder:
        yield Path(folder)


def main() -> int:
    """0 where everything is in order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the order and lengths of the trouble")
    parser.add_argument("--forgetful", action="store_true", help="a broker that keeps nothing on disk, to compare with")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder for logs and databases, which stays")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the figures are to be written too")
    args = parser.parse_args()
    with working_folder(args.keep) as folder:
        figures = soak(folder, args.minutes, random.Random(args.seed), forgetful=args.forgetful)
    print(table(figures))
    text = json.dumps({"minutes": args.minutes, "seed": args.seed, "forgetful": args.forgetful, **figures}, indent=2)
    if args.json is not None:
        args.json.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 1 if figures["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
