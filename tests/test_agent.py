"""Agent: the whole process against a real broker with real models; and its loop against made engines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import cv2
import numpy as np
import numpy.typing as npt
import psutil
import pytest

from edge_agent.agent import Agent, expecting, running
from edge_agent.agent_links import Links
from edge_agent.agent_report import figures, precision_of
from edge_agent.agent_site import AgentSite
from edge_agent.backends.base import Array, Condition, Feed, Profile, TensorSpec
from edge_agent.backends.ort import OrtBackend
from edge_agent.board import Board
from edge_agent.cameras.base import Camera
from edge_agent.cameras.capture import CaptureThread
from edge_agent.cameras.status import CameraStatus
from edge_agent.clock import DeviceClock
from edge_agent.config import Config, patched
from edge_agent.demo.labels import render_label, sample_labels
from edge_agent.errors import EdgeAgentError, EngineError, FrameError
from edge_agent.mailbox import Mailbox
from edge_agent.no_text import NoTextLimit
from edge_agent.outbox.memory import MemoryOutbox
from edge_agent.pipeline import Pipeline
from edge_agent.publisher import Publisher
from edge_agent.records import Frame, Message
from edge_agent.results import Results
from edge_agent.service import Notifier
from edge_agent.settings.cameras import CameraConfig
from edge_agent.settings.catalogue import CatalogueConfig
from edge_agent.settings.fields import FieldsConfig
from edge_agent.stages.field_extractor import OUT_OF_ORDER, FieldExtractor
from edge_agent.stages.text_detector import DetectorSettings, TextDetector
from edge_agent.stages.text_encoder import TextEncoder
from edge_agent.stages.text_recogniser import RecogniserSettings, TextRecogniser
from edge_agent.telemetry.vitals import Vitals
from tests.backends.small_models import echo_and_total
from tests.broker import DEADLINE_S, Broker, Observer, wait_until
from tests.fakes import FakeCamera, FakeEngine, FakeTransport
from tests.light import LIGHT
from tests.stages.labels import column
from tests.stages.test_field_extractor_sources import MINILM, Failing
from tests.test_messages import documented, strict

# ---- the whole process ----------------------------------------------------------------------------------------------


def label_folder(folder: Path, count: int) -> Path:
    folder.mkdir()
    for n, label in enumerate(sample_labels(time.gmtime().tm_year + 1)[:count]):
        cv2.imwrite(str(folder / f"{n}.png"), render_label(label, 640).image)
    return folder


def config_file(folder: Path, port: int, cameras: dict[str, Any], **sections: dict[str, Any]) -> Path:
    path = folder / "config.yaml"
    settings = {
        "device_id": "press7",
        "mqtt": {"port": port},
        "backend": {"threads": 1},  # several that wait for one another on busy cores cost twice the time
        "pipeline": LIGHT,
        "cameras": cameras,
        "telemetry": {"interval_s": 0.5},
        "outbox": {"path": "outbox.db"},
        **sections,
    }
    path.write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML
    return path


@contextmanager
def agent_process(config: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_AGENT_")}
    command = [sys.executable, "-m", "edge_agent", "run", "--config", str(config), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ) as process:
        try:
            yield process
        finally:
            process.kill()


def last(observer: Observer, topic: str) -> dict[str, Any]:
    payloads = observer.payloads(f"edge/press7/{topic}")
    return dict(json.loads(payloads[-1])) if payloads else {}


def codes(observer: Observer) -> list[int]:
    """Of all that was reported of configurations."""
    return [int(json.loads(payload)["code"]) for payload in observer.payloads("edge/press7/config/reported")]


def test_readings_states_and_farewell_reach_the_broker(broker: Broker, tmp_path: Path) -> None:
    cameras = {
        "left": {"kind": "folder", "source": str(label_folder(tmp_path / "left", 2)), "pace": "every_frame"},
        "right": {"kind": "folder", "source": str(label_folder(tmp_path / "right", 3)), "pace": "every_frame"},
        "spare": {"kind": "folder", "source": str(tmp_path / "left"), "enabled": False},
    }
    config = config_file(tmp_path, broker.port, cameras)
    with Observer(broker.port, "edge/#") as observer, agent_process(config) as process:
        wait_until(
            lambda: all(
                len(observer.payloads(f"edge/press7/{camera}/result")) == count
                for camera, count in (("left", 2), ("right", 3))
            ),
            "five results",
            60,
        )
        wait_until(lambda: bool(last(observer, "telemetry")), "telemetry")
        # field case SEC-4: nobody can connect to it
        assert [each for each in psutil.Process(process.pid).net_connections("all") if each.status == "LISTEN"] == []
        assert last(observer, "health")["pipeline"] == "running"
        assert last(observer, "health")["backend"] == "onnxruntime"
        assert last(observer, "status")["state"] == "online"
        assert last(observer, "spare/status")["state"] == "disabled"
        readings = [json.loads(payload) for payload in observer.payloads("edge/press7/right/result")]
        assert [reading["seq"] for reading in readings] == [0, 1, 2]
        labels = sample_labels(time.gmtime().tm_year + 1)
        for reading, label in zip(readings, labels, strict=False):
            fields = {field["name"]: field["value"] for field in reading["fields"]}
            assert fields["lot"] == label.lot
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
        wait_until(lambda: last(observer, "status")["state"] == "stopped", "the farewell")
        assert last(observer, "status")["reason"] == "shutdown"
    with Observer(broker.port, "edge/press7/status") as late:
        wait_until(lambda: last(late, "status").get("state") == "stopped", "the retained farewell")


OF_THE_BOARD = ("temp_c", "power_w", "over_current", "gpu_", "fan_", "energy_j")  # what a machine has, or has not


def members(topic: str, body: dict[str, Any]) -> dict[str, set[str]]:
    """Where in the message -> the names there; those that are a camera's, a stage's or a sensor's own left out."""
    found = {topic: {name for name in body if not name.startswith(OF_THE_BOARD)}}
    for name in ("frame", "outbox", "publisher", "clock", "ledger", "remote"):
        found |= {name: set(body[name])} if name in body else {}
    for name in ("lines", "fields"):
        found |= {name: set(body[name][0])} if body.get(name) else {}
    for name in ("fps", "frames", "cameras", "latency_ms"):
        found |= {name: set(next(iter(body[name].values())))} if body.get(name) else {}
    return found


def test_everything_that_is_sent_is_as_the_contract_shows_it(broker: Broker, tmp_path: Path) -> None:
    folder = {"kind": "folder", "source": str(label_folder(tmp_path / "left", 1)), "loop": True, "max_fps": 4}
    left = {**folder, "pace": "live", "items": "still"}
    items = {"publish_readings": True, "decide_within_ms": 600_000, "min_reads": 100}
    config = config_file(tmp_path, broker.port, {"left": left}, items=items)
    (tmp_path / "outbox.db").write_text("no database: it is moved aside, and an event says so")
    examples = {topic: members(topic, body) for topic, body in documented().items()}
    with Observer(broker.port, "edge/#") as observer, agent_process(config) as process:
        wait_until(lambda: bool(observer.payloads("edge/press7/left/result")), "a result", 60)
        observer.publish("edge/press7/left/trigger", b"{}")  # nobody waits for one: it is heard, and that is all
        observer.publish("edge/press7/left/expected", b'{"id": "job-7", "expected": [{"field": "lot"}]}')
        wait_until(lambda: last(observer, "left/expected/reported").get("id") == "job-7", "the job")
        read = len(observer.payloads("edge/press7/left/result"))
        wait_until(lambda: len(observer.payloads("edge/press7/left/result")) > read + 1, "a reading under the job")
        observer.publish("edge/press7/command/ping", b'{"id": "c-1"}')
        observer.publish("edge/press7/config/desired", b'{"version": 1, "patch": {"log": {"level": "warning"}}}')
        wait_until(lambda: 202 in codes(observer), "a trial")
        told = len(observer.payloads("edge/press7/telemetry"))
        wait_until(lambda: len(observer.payloads("edge/press7/telemetry")) > told, "telemetry after them")
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
    topics = set()
    for heard in observer.heard:
        topic = heard.topic.removeprefix("edge/press7/").replace("left/", "line-1/")
        if topic in ("command/ping", "config/desired"):
            continue  # what was sent to it
        topics.add(topic)
        if topic in ("line-1/expected", "line-1/trigger"):
            continue
        found = members(topic, strict(Message(topic, heard.payload)))
        assert found.items() <= examples[topic].items(), heard
    assert topics == set(examples)
    item = last(observer, "left/item")  # it was open when the agent was told to stop
    assert (item["decided_by"], item["verdict"], item["expectation_id"]) == ("stop", "NO_READ", "job-7")
    assert [reason["why"] for reason in item["reasons"]] == [None, "few_reads"]


def test_pipeline_reads_by_the_patterns_that_are_expected() -> None:
    rules = [{"field": "lot", "pattern": "L9999A"}]
    camera = {"kind": "folder", "source": "x", "expected": rules}
    config = patched(Config(), {"cameras": {"left": camera}})
    pipeline = made_pipeline(no_text)
    nothing = cast(Any, None)
    links = Links(DeviceClock(), nothing, nothing, nothing, Board(nothing), nothing, None, None)
    expectations = expecting(config, links, None, pipeline)
    expectation = pipeline.expected("left")
    assert expectation is not None
    assert {name: mask.text for name, mask in expectation.masks(None).items()} == {"lot": "L9999A"}
    expectations.tune(patched(config, {"cameras": {"left": {"expected": []}}}))
    assert pipeline.expected("left") is None


def test_killed_agent_is_shown_offline_by_its_will(broker: Broker, tmp_path: Path) -> None:
    source = label_folder(tmp_path / "left", 1)
    config = config_file(tmp_path, broker.port, {"left": {"kind": "folder", "source": str(source)}})
    with Observer(broker.port, "edge/press7/status") as observer, agent_process(config) as process:
        wait_until(lambda: last(observer, "status").get("state") == "online", "online", 60)
        process.kill()
        wait_until(lambda: last(observer, "status")["state"] == "offline", "the will")
        assert last(observer, "status")["reason"] == "lost"


def test_agent_that_cannot_start_says_why_before_it_goes(broker: Broker, tmp_path: Path) -> None:
    config = config_file(tmp_path, broker.port, {})
    settings = json.loads(config.read_text("utf-8"))
    settings["pipeline"]["detector"] = "no-such-model"
    config.write_text(json.dumps(settings), encoding="utf-8")
    with Observer(broker.port, "edge/#") as observer:
        # the broker is here and near: the connection comes in the time that a stop leaves, or with the next start
        for _ in range(5):
            with agent_process(config) as process:
                assert process.wait(60) == 78
            if last(observer, "status"):
                break
        wait_until(lambda: last(observer, "status").get("state") == "stopped", "the farewell")
        assert last(observer, "status")["reason"] == "fault"
        assert last(observer, "health")["pipeline"] == "fault"
        assert "there is no model 'no-such-model'" in last(observer, "health")["reason"]


def test_run_until_end_stops_by_itself(broker: Broker, tmp_path: Path) -> None:
    source = label_folder(tmp_path / "left", 2)
    left = {"kind": "folder", "source": str(source), "pace": "every_frame"}
    config = config_file(tmp_path, broker.port, {"left": left})
    with Observer(broker.port, "edge/#") as observer, agent_process(config, "--until-end") as process:
        assert process.wait(60) == 0
        wait_until(lambda: len(observer.payloads("edge/press7/left/result")) == 2, "both results")


def test_broker_that_is_not_there_stops_nothing(make_broker: Callable[..., Broker], tmp_path: Path) -> None:
    late = make_broker()
    source = label_folder(tmp_path / "left", 2)
    left = {"kind": "folder", "source": str(source), "pace": "every_frame"}
    config = config_file(tmp_path, late.port, {"left": left})
    with agent_process(config) as process:
        assert process.stderr is not None
        assert any("connection refused" in line for line in process.stderr)
        late.start()
        with Observer(late.port, "edge/press7/left/result") as observer:
            wait_until(lambda: len(observer.payloads("edge/press7/left/result")) == 2, "both results", 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0


def test_agent_that_writes_to_a_reader_who_has_gone_leaves_quietly(tmp_path: Path) -> None:
    source = label_folder(tmp_path / "left", 2)
    config = config_file(tmp_path, 9, {"left": {"kind": "folder", "source": str(source), "loop": True, "max_fps": 5}})
    environ = {**os.environ, "EDGE_AGENT_TRANSPORT": "jsonl"}
    command = [sys.executable, "-m", "edge_agent", "run", "--config", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert json.loads(process.stdout.readline())["topic"] == "edge/press7/status"
            process.stdout.close()
            assert process.wait(60) == 0
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"cameras": {"a": {"kind": "folder", "source": "x", "fsp": 3}}}, "fsp"),
        ({"pipeline": {"detector": "no-such-model"}}, "no-such-model"),
        ({"backend": {"kind": "tensorrt"}}, "tensorrt"),
    ],
)
def test_wrong_setting_ends_the_start_with_78_and_one_clear_line(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps({"mqtt": {"port": 9}, "outbox": {"path": "outbox.db"}, **change}), encoding="utf-8")
    with agent_process(path) as process:
        assert process.stderr is not None
        text = process.stderr.read()
        assert process.wait(60) == 78
    assert says in text
    assert "Traceback" not in text


# ---- the loop -------------------------------------------------------------------------------------------------------


SILENT = Notifier({}, time.monotonic)


def no_text(feed: Feed) -> dict[str, Array]:
    return {"probability": np.zeros(feed["image"].shape[:3], np.uint8)}


def made_pipeline(answer: Callable[[Feed], dict[str, Array]]) -> Pipeline:
    """A pipeline whose detector is `answer`; the recogniser is never asked unless the detector finds something."""
    finds = FakeEngine(answer, (TensorSpec("image", "uint8", (1, None, None, 3)),))
    reads = FakeEngine(no_text, (TensorSpec("image", "uint8", (None, 48, None, 3)),))
    return Pipeline(
        TextDetector(finds, DetectorSettings(min_side_px=32)),
        TextRecogniser(reads, ["", "a"], RecogniserSettings()),
        FieldExtractor(FieldsConfig()),
        {"detect": finds},
        OrtBackend(1),
    )


class EndlessCamera:
    """Gives a small black picture each time `interval_s` has passed."""

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s

    def open(self) -> None:
        pass

    def read(self) -> npt.NDArray[np.uint8]:
        time.sleep(self.interval_s)
        return np.zeros((32, 32, 3), np.uint8)

    def close(self) -> None:
        pass


PUBLISHERS: list[Publisher] = []


@pytest.fixture(autouse=True)
def no_publisher_is_left() -> Iterator[None]:
    yield
    while PUBLISHERS:
        PUBLISHERS.pop().stop(None, 0.5)


def made_agent(
    pipeline: Pipeline,
    intervals_s: dict[str, float],
    outbox: MemoryOutbox,
    make: Callable[[str, CameraConfig], Camera] | None = None,
    transport: FakeTransport | None = None,
) -> Agent:
    """An agent whose transport is not connected: what is read stays in the outbox."""
    mailbox = Mailbox()
    config = CameraConfig(kind="folder", source="made")
    cameras = [
        CaptureThread(
            name, config, mailbox.put, make=make or (lambda _n, _c, interval_s=interval_s: EndlessCamera(interval_s))
        )
        for name, interval_s in intervals_s.items()
    ]
    results = Results(outbox.put, DeviceClock(), NoTextLimit(0.0))
    PUBLISHERS.append(Publisher(outbox, transport or FakeTransport()))
    PUBLISHERS[-1].start()
    return Agent(pipeline, mailbox, cameras, outbox, Board(outbox), Vitals(), results, PUBLISHERS[-1])


def results(outbox: MemoryOutbox) -> Counter[str]:
    entries = outbox.claim(10_000)
    return Counter(e.message.topic.partition("/")[0] for e in entries if e.message.topic.endswith("/result"))


def test_slow_camera_is_not_starved_by_one_that_is_twenty_times_too_fast() -> None:
    stop = threading.Event()
    turns = 0
    black = np.zeros((32, 32, 3), np.uint8)

    def passing(feed: Feed) -> dict[str, Array]:
        """What the cameras offer while a frame is read."""
        nonlocal turns
        turns += 1
        for n in range(20):
            agent.mailbox.put(Frame("fast", 20 * turns + n, 0.0, 0.0, black))
        if turns % 3:
            agent.mailbox.put(Frame("slow", turns, 0.0, 0.0, black))
        if turns == 60:
            stop.set()
        return no_text(feed)

    outbox = MemoryOutbox(10_000_000, 3600)
    agent = made_agent(made_pipeline(passing), {}, outbox)
    agent.mailbox.put(Frame("fast", 0, 0.0, 0.0, black))
    agent.main_loop(stop, SILENT)
    counts = results(outbox)
    assert counts["fast"] + counts["slow"] == 60
    assert counts["slow"] >= 20  # it offers a frame in two turns of three, and each second turn is its own
    assert agent.mailbox.drops["fast"] > 10 * counts["fast"]


def test_frame_taken_early_is_the_next_one_read_and_none_is_lost() -> None:
    stop = threading.Event()
    seen: list[int] = []

    def note(feed: Feed) -> dict[str, Array]:
        seen.append(int(feed["image"][0, 0, 0, 0]))
        if len(seen) == 5:
            stop.set()
        return no_text(feed)

    outbox = MemoryOutbox(10_000_000, 3600)
    agent = made_agent(made_pipeline(note), {}, outbox)
    agent.pipeline.backend.overlaps = True
    for n in range(6):
        agent.mailbox.put(Frame(f"camera{n}", n, 0.0, 0.0, np.full((32, 32, 3), n * 10, np.uint8)))
    agent.main_loop(stop, SILENT)
    assert seen == [0, 10, 20, 30, 40]
    assert sorted(results(outbox)) == [f"camera{n}" for n in range(5)]


def test_frame_error_costs_one_frame() -> None:
    stop = threading.Event()
    seen = 0

    def first_fails(feed: Feed) -> dict[str, Array]:
        nonlocal seen
        seen += 1
        if seen == 1:
            raise FrameError("made to fail")
        if seen == 4:
            stop.set()
        return no_text(feed)

    outbox = MemoryOutbox(10_000_000, 3600)
    agent = made_agent(made_pipeline(first_fails), {"one": 0.001}, outbox)
    agent.cameras[0].start()
    agent.main_loop(stop, SILENT)
    agent.cameras[0].stop(5)
    assert results(outbox)["one"] == 3
    assert agent.vitals.frames()["one"]["failed"] == 1


def test_every_frame_failing_is_said_a_few_times_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    stop = threading.Event()
    seen = 0

    def always_fails(feed: Feed) -> dict[str, Array]:
        nonlocal seen
        seen += 1
        if seen == 200:
            stop.set()
        raise FrameError("made to fail")

    agent = made_agent(made_pipeline(always_fails), {"one": 0.0005}, MemoryOutbox(10_000_000, 3600))
    agent.cameras[0].start()
    agent.main_loop(stop, SILENT)
    agent.cameras[0].stop(5)
    assert agent.vitals.frames()["one"]["failed"] == 200
    assert 1 <= sum("made to fail" in record.message for record in caplog.records) < 30


def test_engine_error_ends_the_loop_after_saying_so() -> None:
    def broken(feed: Feed) -> dict[str, Array]:
        raise EngineError("an illegal memory access was encountered")

    outbox = MemoryOutbox(10_000_000, 3600)
    agent = made_agent(made_pipeline(broken), {"one": 0.001}, outbox)
    agent.cameras[0].start()
    with pytest.raises(EngineError):
        agent.main_loop(threading.Event(), SILENT)
    agent.cameras[0].stop(5)
    health = [json.loads(e.message.payload) for e in outbox.claim(100) if e.message.topic == "health"]
    assert health[-1]["pipeline"] == "fault"
    assert "illegal memory access" in health[-1]["reason"]


def test_what_the_encoder_and_the_catalogue_lack_is_degraded_until_they_have_it(tmp_path: Path) -> None:
    products = tmp_path / "products.txt"
    products.write_text("\n".join(f"Widget TD-{n}" for n in range(3000)), encoding="utf-8")
    engine = Failing()
    outbox = MemoryOutbox(10_000_000, 3600)
    agent = made_agent(made_pipeline(no_text), {}, outbox)
    pipeline = agent.pipeline
    pipeline.extractor = FieldExtractor(FieldsConfig(), TextEncoder(engine, MINILM / "tokenizer.json"))

    def health() -> tuple[str, str]:
        agent.attend(SILENT)
        told = [json.loads(e.message.payload) for e in outbox.claim(100) if e.message.topic == "health"]
        return told[-1]["pipeline"], str(told[-1]["reason"])

    assert health() == ("running", "None")
    engine.works = False
    pipeline.extractor.extract(column("flour, sugar, palm oil, salt"))
    state, reason = health()
    assert (state, reason) == ("degraded", f"{OUT_OF_ORDER}: out of order (try 1)")
    engine.works = True
    pipeline.extractor.extract(())
    assert health() == ("running", "None")
    pipeline.tune(Config(catalogue=CatalogueConfig(file=products)))
    agent.told = ("degraded", 0.0)
    assert AgentSite(agent).look().pipeline == "running", "that one is being made ready is no fault of a trial"
    pipeline.catalogue.attend(wait=True)
    assert AgentSite(agent).look().pipeline == "degraded"
    agent.attend(SILENT)
    match = pipeline.extractor.catalogue.match("WIDGET TD-2999")
    assert match is not None and match.product.name == "Widget TD-2999"


class BrokenTransport(FakeTransport):
    @property
    def room(self) -> int:
        raise TypeError("a bug")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_agent_whose_publisher_died_ends_instead_of_reading_for_nobody() -> None:
    outbox = MemoryOutbox(10_000_000, 3600)
    agent = made_agent(made_pipeline(no_text), {"one": 0.001}, outbox, transport=BrokenTransport())
    agent.cameras[0].start()
    with pytest.raises(EdgeAgentError, match="the publisher has ended") as caught:
        agent.main_loop(threading.Event(), SILENT)
    agent.cameras[0].stop(5)
    assert caught.value.exit_code == 70


class HangingCapture:
    """A capture that does not end: what it is told, and how long it may take."""

    def __init__(self, told: list[tuple[str, float]]) -> None:
        self.told = told

    def start(self) -> None:
        self.told.append(("start", 0.0))

    def ask_to_stop(self) -> None:
        self.told.append(("ask", 0.0))

    def stop(self, timeout_s: float) -> bool:
        self.told.append(("stop", timeout_s))
        time.sleep(timeout_s)
        return False


def test_many_hanging_cameras_take_no_longer_to_leave_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edge_agent.agent.STOP_CAMERA_S", 1.0)
    told: list[tuple[str, float]] = []
    with running([HangingCapture(told) for _ in range(4)]):  # type: ignore[list-item]
        pass
    assert [what for what, _ in told] == ["start"] * 4 + ["ask"] * 4 + ["stop"] * 4
    assert 0.0 < told[8][1] <= 1.0
    assert [timeout_s for _, timeout_s in told[9:]] == [0.0, 0.0, 0.0]


def test_loop_ends_with_the_last_source_whatever_is_disabled() -> None:
    outbox = MemoryOutbox(10_000_000, 3600)
    agent = made_agent(made_pipeline(no_text), {"one": 0.0}, outbox, make=lambda _n, _c: FakeCamera(lambda: None))
    spare = CameraConfig(kind="folder", source="made", enabled=False)
    agent.cameras.append(CaptureThread("spare", spare, agent.mailbox.put))
    agent.cameras[0].start()
    agent.main_loop(threading.Event(), SILENT, until_end=True)
    assert [camera.status().state for camera in agent.cameras] == ["ended", "disabled"]


def test_health_names_what_engines_compute_in() -> None:
    assert precision_of(["onnxruntime-1.32.0:0011:fp32", "onnxruntime-1.32.0:2233:fp32"]) == "fp32"
    assert precision_of(["tensorrt-10.3.0:0011:int8:44556677", "tensorrt-10.3.0:2233:fp16:8899aabb"]) == "fp16+int8"
    assert precision_of(["fake"]) is None


def test_telemetry_of_a_camera_is_plain_finite_and_without_its_source() -> None:
    config = CameraConfig(kind="rtsp", source="rtsp://admin:S3cret@127.0.0.1:1/live")
    told = figures(CaptureThread("door", config, lambda frame: True).status())
    assert told["last_frame_at"] is None
    seen = figures(CameraStatus("door", "online", None, 1_796_040_000.25, 9, 0, 0, 0, 0, 0, 640, 480, 29.97002997))
    assert seen["last_frame_at"] == "2026-11-30T12:00:00.250Z"
    assert seen["fps"] == 29.97
    assert set(seen) == set(told) == {field.name for field in fields(CameraStatus)} - {"camera"}
    assert "admin" not in json.dumps(told)


# ---- while plans are built (field cases ENG-1, ENG-7) ---------------------------------------------------------------


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """Where a slow builder writes its process id; it goes on when `<mark>.go` is there."""
    return tmp_path / "builder"


def under_way(mark: Path) -> bool:
    return mark.exists() and bool(mark.read_text())


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "Z"
    except OSError:
        return True


@contextmanager
def building_agent(config: Path, how: str, plans_dir: Path, mark: Path) -> Iterator[subprocess.Popen[str]]:
    """The agent as a process, with a backend that builds slowly and serves meanwhile, or waits."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_AGENT_")}
    command = [sys.executable, "-m", "tests.building", how, str(plans_dir), str(mark), "run", "--config", str(config)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_frames_are_read_while_plans_are_built_and_readings_say_by_what(
    broker: Broker, tmp_path: Path, mark: Path
) -> None:
    source = label_folder(tmp_path / "left", 1)
    left = {"kind": "folder", "source": str(source), "pace": "every_frame", "loop": True}
    config = config_file(tmp_path, broker.port, {"left": left})
    lot = sample_labels(time.gmtime().tm_year + 1)[0].lot
    readings: list[dict[str, Any]] = []

    def read_by(backend: str) -> bool:
        readings[:] = [json.loads(payload) for payload in observer.payloads("edge/press7/left/result")]
        return sum(reading["backend"] == backend for reading in readings) >= 3

    with (
        Observer(broker.port, "edge/#") as observer,
        building_agent(config, "serve", tmp_path / "plans", mark) as process,
    ):
        wait_until(lambda: read_by("onnxruntime"), "readings by the CPU", 60)
        wait_until(lambda: under_way(mark), "the builder")
        wait_until(lambda: "Building 1/2" in str(last(observer, "health").get("reason")), "progress as health")
        health = last(observer, "health")
        assert (health["pipeline"], health["backend"], health["precision"]) == ("building", "onnxruntime", "fp32")
        assert health["reason"].startswith("ppocrv4-mobile-det")
        assert ", then ppocrv4-mobile-rec" in health["reason"]
        assert "reading meanwhile with onnxruntime-" in health["reason"]
        mark.with_suffix(".go").touch()
        wait_until(lambda: read_by("tensorrt"), "readings by the plans", 60)
        wait_until(lambda: last(observer, "health")["pipeline"] == "running", "running")
        health = last(observer, "health")
        assert (health["backend"], health["precision"], health["reason"]) == ("tensorrt", "fp16", None)
        wait_until(lambda: last(observer, "telemetry").get("backend") == "tensorrt", "telemetry")
        assert last(observer, "telemetry")["engines"]["detect"].startswith("tensorrt-10.3.0:")
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
    by = {"onnxruntime": "onnxruntime-", "tensorrt": "tensorrt-"}
    for reading in readings:
        assert {field["name"]: field["value"] for field in reading["fields"]}["lot"] == lot
        if reading["backend"] in by:
            assert all(engine.startswith(by[reading["backend"]]) for engine in reading["engines"].values())
        else:
            assert reading["backend"] == "onnxruntime+tensorrt"
    # every frame counts for this source, and none was lost at a swap
    assert [reading["seq"] for reading in readings] == list(range(len(readings)))


@pytest.mark.parametrize("how", ["serve", "wait"])
def test_sigterm_during_a_build_ends_the_child_and_leaves_nothing_half_written(
    broker: Broker, tmp_path: Path, mark: Path, how: str
) -> None:
    source = label_folder(tmp_path / "left", 1)
    config = config_file(tmp_path, broker.port, {"left": {"kind": "folder", "source": str(source)}})
    with Observer(broker.port, "edge/#") as observer, building_agent(config, how, tmp_path / "plans", mark) as process:
        wait_until(lambda: under_way(mark), "the builder", 60)
        wait_until(lambda: last(observer, "health").get("pipeline") == "building", "health")
        pid = int(mark.read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
        wait_until(lambda: last(observer, "status").get("state") == "stopped", "the farewell")
    assert ended(pid)
    assert [path.name for path in (tmp_path / "plans").iterdir()] == ["build.lock"], "no count of a failed try either"


def test_failed_build_is_degraded_and_frames_go_on(tmp_path: Path) -> None:
    from tests.building import BuildingBackend

    backend = BuildingBackend(tmp_path / "plans", "no implementation")
    pipeline = made_pipeline(no_text)
    pipeline.backend = backend
    onnx_path = echo_and_total(tmp_path / "net.onnx")
    image = Profile({"image": (1, 8, 8, 3)}, {"image": (1, 8, 8, 3)}, {"image": (1, 8, 8, 3)})
    backend.load(onnx_path, (image,))
    outbox = MemoryOutbox(10_000_000, 3600)
    stop = threading.Event()
    agent = made_agent(pipeline, {"one": 0.005}, outbox)
    agent.cameras[0].start()

    def health() -> list[dict[str, Any]]:
        waiting = outbox.claim(10_000)
        said.extend(json.loads(e.message.payload) for e in waiting if e.message.topic == "health")
        frames.extend(1 for e in waiting if e.message.topic == "one/result")
        return said

    said: list[dict[str, Any]] = []
    frames: list[int] = []

    def watch() -> None:
        try:
            wait_until(lambda: any(each["pipeline"] == "degraded" for each in health()), "degraded")
            count = len(frames)
            wait_until(lambda: bool(health()) and len(frames) > count + 3, "frames after it")
        finally:
            stop.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    agent.main_loop(stop, SILENT)
    watcher.join()
    agent.cameras[0].stop(5)
    backend.close()
    assert said[-1]["pipeline"] == "degraded"
    assert "building net failed" in said[-1]["reason"]
    assert "free memory" in said[-1]["reason"]
    assert "reading on with onnxruntime-" in said[-1]["reason"]


class Dying(OrtBackend):
    """Has nothing left to go on with."""

    def attend(self) -> Condition:
        raise EngineError("neither plan loads")


def test_engine_that_is_lost_at_the_swap_ends_the_loop_after_saying_so() -> None:
    outbox = MemoryOutbox(10_000_000, 3600)
    agent = made_agent(made_pipeline(no_text), {}, outbox)
    agent.pipeline.backend = Dying(1)
    with pytest.raises(EngineError):
        agent.main_loop(threading.Event(), SILENT)
    (health,) = [json.loads(e.message.payload) for e in outbox.claim(100) if e.message.topic == "health"]
    assert (health["pipeline"], health["reason"]) == ("fault", "neither plan loads")
