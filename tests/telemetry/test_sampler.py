"""Sampler: one message an interval; a sensor that fails costs its own value and nothing else."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable
from queue import Queue
from threading import Event
from typing import Any

import pytest

from edge_agent.errors import SensorError
from edge_agent.records import Message
from edge_agent.telemetry.base import Sensor
from edge_agent.telemetry.host import probe
from edge_agent.telemetry.sampler import Sampler
from edge_agent.telemetry.vitals import Vitals
from tests.broker import DEADLINE_S


def strict(message: Message) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in {message.payload!r}")

    return json.loads(message.payload.decode("utf-8"), parse_constant=refuse)


def raising(error: Exception) -> Callable[[], float]:
    def read() -> float:
        raise error

    return read


def make(rows: list[Sensor], **sections: Callable[[], Any]) -> Sampler:
    return Sampler([lambda: rows], sections, 10.0, lambda message: None, lambda: 1_800_000_000.0)


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (raising(SensorError("N/A")), "SensorError: N/A"),
        (raising(OSError(11, "Resource temporarily unavailable")), "Resource temporarily unavailable"),
        (raising(ValueError("could not convert string to float: 'N/A'")), "N/A"),
        (raising(KeyError("rail")), "KeyError: 'rail'"),
        (raising(ZeroDivisionError()), "ZeroDivisionError"),
        (raising(NotImplementedError("not on this kernel")), "not on this kernel"),  # so does psutil
        (lambda: math.nan, "not a finite number: nan"),
        (lambda: math.inf, "not a finite number: inf"),
    ],
    ids=["own", "os", "text", "lookup", "arithmetic", "runtime", "nan", "inf"],
)
def test_failing_sensor_is_null_with_a_reason_and_the_others_are_sent(
    read: Callable[[], float], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    sampler = make([Sensor("power_w.VDD_IN", "w", read), Sensor("cpu_percent", "percent", lambda: 7.5)])
    body = strict(sampler.sample())
    sampler.sample()
    assert body["power_w"] == {"VDD_IN": None}
    assert body["cpu_percent"] == 7.5
    assert reason in body["absent"]["power_w.VDD_IN"]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]  # once, not at each sample


def test_sensor_that_works_again_is_warned_of_anew(caplog: pytest.LogCaptureFixture) -> None:
    values = iter([None, 1.0, None])

    def read() -> float:
        value = next(values)
        if value is None:
            raise SensorError("gone")
        return value

    sampler = make([Sensor("x_w", "w", read)])
    assert [strict(sampler.sample())["x_w"] for _ in range(3)] == [None, 1.0, None]
    assert len(caplog.records) == 2


def test_sensor_that_is_not_expected_is_missed_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    sampler = make([Sensor("temp_c.cv0", "c", raising(SensorError("gated")), expected=False)])
    assert strict(sampler.sample())["absent"] == {"temp_c.cv0": "SensorError: gated"}
    assert caplog.records == []


def test_sensors_that_come_and_go_are_looked_for_at_each_sample() -> None:
    looks = iter([[], [Sensor("gpu_load_percent", "percent", lambda: 12.5)], []])
    sampler = Sampler([lambda: next(looks)], {}, 10.0, lambda message: None)
    assert ["gpu_load_percent" in strict(sampler.sample()) for _ in range(3)] == [False, True, False]


def test_beat_comes_however_seldom_messages_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edge_agent.telemetry.sampler.BEAT_S", 0.02)
    beats: Queue[int] = Queue()
    with Sampler([], {}, 3600.0, lambda message: None, beat=lambda: beats.put(1)):
        for _ in range(3):
            beats.get(timeout=DEADLINE_S)


def test_sections_are_asked_at_each_sample_and_stay_strict() -> None:
    vitals = Vitals()
    vitals.count("cam", "offered")
    calls: list[int] = []

    def latency_ms() -> dict[str, Any]:
        calls.append(1)
        return {"detect": {"p50": len(calls), "p95": math.nan, "p99": math.inf}}

    sampler = make([], fps=vitals.fps, latency_ms=latency_ms)
    assert [strict(sampler.sample())["latency_ms"]["detect"]["p50"] for _ in range(2)] == [1, 2]
    body = strict(sampler.sample())
    assert body["fps"] == {"cam": {"offered": None, "processed": None, "dropped": None, "failed": None}}
    assert body["latency_ms"]["detect"] == {"p50": 3, "p95": None, "p99": None}


def test_thread_sends_one_message_an_interval_until_the_block_ends() -> None:
    sent: Queue[Message] = Queue()
    began = time.monotonic()
    with Sampler([probe()], {}, 0.05, sent.put):
        bodies = [strict(sent.get(timeout=DEADLINE_S)) for _ in range(3)]
    assert time.monotonic() - began >= 0.15
    assert all(body["process_rss_bytes"] > 0 for body in bodies)
    left = sent.qsize()
    time.sleep(0.12)
    assert sent.qsize() == left


def test_hanging_sensor_does_not_hold_up_the_end() -> None:
    started, released, ended = Event(), Event(), Event()

    def hang() -> float:
        started.set()
        released.wait(DEADLINE_S)
        ended.set()
        return 0.0

    with Sampler([lambda: [Sensor("x_w", "w", hang)]], {}, 0.01, lambda message: None):
        assert started.wait(DEADLINE_S)
    assert not ended.is_set()
    released.set()


def test_shorter_interval_is_taken_up_at_once_and_not_after_the_long_one() -> None:
    heard: Queue[Message] = Queue()
    with Sampler([], {}, 3600.0, heard.put) as sampler:
        sampler.every(0.02)
        for _ in range(3):
            heard.get(timeout=DEADLINE_S)
        sampler.every(3600.0)
        told = heard.qsize()
        time.sleep(0.2)
        assert heard.qsize() <= told + 1, "one may have been under way"
