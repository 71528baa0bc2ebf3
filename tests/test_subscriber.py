"""Subscribers written only from docs/mqtt: they understand what a real agent sends through a real broker."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from jsonschema import Draft202012Validator
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from edge_agent.demo.labels import sample_labels
from edge_agent.outbox.store import open_reader
from tests.broker import DEADLINE_S, Broker, Proxy, wait_until
from tests.conftest import ROOT
from tests.test_agent import agent_process, config_file, label_folder

DOCUMENTS = ROOT / "docs" / "mqtt"
LABELS = 3


def code_block(language: str) -> str:
    (block,) = re.findall(rf"```{language}\n(.*?)```", (DOCUMENTS / "README.md").read_text("utf-8"), re.DOTALL)
    return str(block)


def lots() -> list[str]:
    return [label.lot for label in sample_labels(time.gmtime().tm_year + 1)[:LABELS]]


@pytest.fixture
def config(broker: Broker, tmp_path: Path) -> Path:
    source = str(label_folder(tmp_path / "labels", LABELS))
    return config_file(tmp_path, broker.port, {"line1": {"kind": "folder", "source": source, "pace": "every_frame"}})


@contextmanager
def lines_of(command: list[str]) -> Iterator[list[str]]:
    """What a program prints, line by line, while it runs."""
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        reader = threading.Thread(target=lambda stdout: lines.extend(map(str.strip, stdout)), args=(process.stdout,))
        reader.start()
        try:
            yield lines
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # a pipe of several
            reader.join(DEADLINE_S)


def test_python_subscriber_of_the_document_prints_each_reading_once(
    broker: Broker, config: Path, tmp_path: Path
) -> None:
    program = tmp_path / "subscriber.py"
    program.write_text(code_block("python"), encoding="utf-8")
    command = [sys.executable, "-I", str(program), "127.0.0.1", str(broker.port)]
    with lines_of(command) as lines:
        wait_until(lambda: "connected" in lines, "the subscriber")
        with agent_process(config) as process:
            wait_until(lambda: len(readings(lines)) >= LABELS, "the readings", 60)
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_S) == 0
        wait_until(lambda: "press7 is stopped shutdown" in lines, "the farewell")
        assert [fields["lot"] for fields in readings(lines)] == lots()
    with agent_process(config, "--until-end") as process:  # while the subscriber is away
        assert process.wait(60) == 0
    with lines_of(command) as lines:
        wait_until(lambda: len(readings(lines)) >= LABELS, "what the broker kept")
        assert "press7 is stopped shutdown" in lines
        assert [fields["lot"] for fields in readings(lines)] == lots()


def readings(lines: list[str]) -> list[dict[str, Any]]:
    """The fields of each line that tells of a reading."""
    found = [re.fullmatch(r"press7 line1 \S+Z (?:live|late) (\{.*\})", line) for line in list(lines)]
    return [json.loads(match[1]) for match in found if match]


@pytest.mark.skipif(
    not (shutil.which("mosquitto_sub") and shutil.which("jq")),
    reason="needs mosquitto_sub and jq (mosquitto-clients, jq)",
)
def test_shell_subscriber_of_the_document_prints_the_lots(broker: Broker, config: Path) -> None:
    line = code_block("sh").strip().replace("-h 192.0.2.5 -p 1883", f"-h 127.0.0.1 -p {broker.port}")
    with lines_of(["bash", "-c", line]) as lines:
        wait_until(lambda: "Received SUBSCRIBE" in broker.log(), "the subscriber")
        with agent_process(config, "--until-end") as process:
            wait_until(lambda: len(lines) >= LABELS, "the lots", 60)
            process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE_S)
        assert lines == lots()


class FromAsyncApi:
    """A subscriber that knows of the device what asyncapi.json and the schemas beside it say, and nothing else."""

    def __init__(self, port: int) -> None:
        self.document = json.loads((DOCUMENTS / "asyncapi.json").read_text("utf-8"))
        self.heard: queue.Queue[tuple[str, bool, bytes]] = queue.Queue()
        self.counts: dict[str, int] = {}
        self.readings: dict[str, dict[str, Any]] = {}  # by id, in the order of their first arrival
        self.came_again = 0
        self.client = paho.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        self.client.on_message = lambda _c, _u, m: self.heard.put((m.topic, m.retain, bytes(m.payload)))
        subscribed = threading.Event()
        self.client.on_subscribe = lambda *_: subscribed.set()
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        self.client.subscribe([(re.sub(r"\{\w+\}", "+", self.channel(name)["address"]), 1) for name in self.said()])
        assert subscribed.wait(DEADLINE_S)

    def said(self) -> list[str]:
        """The names of what the device sends."""
        return [name for name, operation in self.document["operations"].items() if operation["action"] == "send"]

    def channel(self, operation: str) -> dict[str, Any]:
        reference = self.document["operations"][operation]["channel"]["$ref"]
        return dict(self.document["channels"][reference.rpartition("/")[2]])

    def name_of(self, topic: str) -> str:
        """Which of the messages a topic is; one with fewer open levels goes first."""
        fitting = [
            (len(self.channel(name)["parameters"]), name)
            for name in self.said()
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", self.channel(name)["address"]), topic)
        ]
        return min(fitting)[1]

    def take(self, wanted: str, timeout_s: float = 60.0) -> dict[str, Any]:
        """The next message of that name; all before it are validated as well."""
        deadline = time.monotonic() + timeout_s
        while True:
            topic, _, payload = self.heard.get(timeout=max(0.1, deadline - time.monotonic()))
            name = self.name_of(topic)
            schema = json.loads((DOCUMENTS / f"{name}.schema.json").read_text("utf-8"))
            body = json.loads(payload, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
            Draft202012Validator(schema).validate(body)
            self.counts[name] = self.counts.get(name, 0) + 1
            if name == "result":
                self.came_again += body["id"] in self.readings
                self.readings.setdefault(body["id"], body)
            if name == wanted:
                return dict(body)

    def take_readings(self, more: int, *, historical: bool) -> None:
        """Until so many more came for the first time, of those that waited or of those that did not."""

        def count() -> int:
            return sum(body["historical"] is historical for body in self.readings.values())

        enough = count() + more
        while count() < enough:
            self.take("result")

    def numbers(self, *, historical: bool) -> list[int]:
        """The frame numbers of one of the two streams of its camera, in the order of arrival."""
        return [body["seq"] for body in self.readings.values() if body["historical"] is historical]

    def send(self, operation: str, body: Any) -> None:
        """Sends what the device hears, as the document says it is sent."""
        schema = json.loads((DOCUMENTS / f"{operation}.schema.json").read_text("utf-8"))
        Draft202012Validator(schema).validate(body)
        address = self.channel(operation)["address"].replace("{base}", "edge").replace("{device}", "press7")
        binding = self.document["operations"][operation]["bindings"]["mqtt"]
        self.client.publish(address, json.dumps(body), binding["qos"], binding["retain"]).wait_for_publish(10)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def test_subscriber_made_of_asyncapi_understands_all_that_a_device_says_and_is_understood(
    broker: Broker, tmp_path: Path
) -> None:
    source = str(label_folder(tmp_path / "labels", LABELS))
    with Proxy(broker.port) as proxy:
        proxy.shut()
        line1 = {"kind": "folder", "source": source, "loop": True, "max_fps": 5}
        config = config_file(tmp_path, proxy.port, {"line1": line1})
        settings = json.loads(config.read_text("utf-8"))
        settings["mqtt"] |= {"reconnect_min_s": 0.1, "reconnect_max_s": 0.2}
        settings["outbox"]["historical_after_s"] = 1
        config.write_text(json.dumps(settings), encoding="utf-8")
        subscriber = FromAsyncApi(broker.port)
        try:
            with agent_process(config) as process:
                read_over_an_outage(subscriber, proxy, tmp_path / "outbox.db")
                be_understood(subscriber)
                process.send_signal(signal.SIGTERM)
                assert process.wait(DEADLINE_S) == 0
            farewell = subscriber.take("status")
            while farewell["state"] != "stopped":
                farewell = subscriber.take("status")
            assert {"status", "health", "camera-status", "result", "telemetry"} <= set(subscriber.counts)
        finally:
            subscriber.close()


def read_over_an_outage(subscriber: FromAsyncApi, proxy: Proxy, database: Path) -> None:
    """The device begins without a broker, and loses it again: each reading counts once, both streams are in order."""
    wait_until(lambda: waiting(database) >= 12, "readings that wait", 60)
    proxy.reopen()
    subscriber.take_readings(5, historical=True)
    subscriber.take_readings(3, historical=False)
    proxy.swallow_answers = True  # what arrives now is not confirmed, and comes again
    subscriber.take_readings(2, historical=False)
    proxy.cut()
    proxy.swallow_answers = False
    while subscriber.came_again == 0:
        subscriber.take("result")
    subscriber.take_readings(3, historical=False)
    for historical in (True, False):
        numbers = subscriber.numbers(historical=historical)
        assert numbers == sorted(numbers)
    read = sorted(subscriber.readings.values(), key=lambda body: int(body["seq"]))
    assert len({body["seq"] for body in read}) == len(read)
    assert [body["captured_at"] for body in read] == sorted(body["captured_at"] for body in read)
    lots_read = {field["value"] for body in read for field in body["fields"] if field["name"] == "lot"}
    assert lots_read == set(lots())


def waiting(database: Path) -> int:
    if not database.exists():
        return 0
    with closing(open_reader(database)) as connection:
        return int(connection.execute("SELECT count(*) FROM waiting WHERE camera = 'line1'").fetchone()[0])


def be_understood(subscriber: FromAsyncApi) -> None:
    subscriber.send("command-ping", {"id": "c-1"})
    answer = subscriber.take("command-ping-reply")
    assert (answer["id"], answer["state"]) == ("c-1", "done")
    subscriber.send("command-snapshot", {"id": "c-2", "args": {"camera": "line1", "max_side_px": 64}})
    assert subscriber.take("command-snapshot-reply")["result"]["camera"] == "line1"
    subscriber.send("config-desired", {"version": 1, "token": "t", "patch": {"fields": {"max_fields": 50}}})
    report = subscriber.take("config-reported")
    assert (report["version"], report["code"], report["token"]) == (1, 202, "t")
    subscriber.take("telemetry")
