"""SIGKILL at any moment, offline, more than once: what is older than the flush window arrives at a real broker."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edge_agent import messages
from edge_agent.clock import DeviceClock
from edge_agent.outbox.accounts import read_ledger
from edge_agent.outbox.disk import DiskOutbox, Limits
from edge_agent.publisher import Publisher
from edge_agent.settings.mqtt import MqttConfig
from edge_agent.transports.mqtt import MqttTransport
from tests.broker import Broker, Observer, wait_until
from tests.conftest import ROOT

SLACK_S = 0.25  # beyond the flush window: a write takes its time on a busy machine


def killed_after(path: Path, first: int, flush_ms: int, seconds: float) -> tuple[list[int], float, dict[int, float]]:
    """Runs a process that puts readings from `first` on and kills it; the numbers it put, and when it was killed."""
    command = [sys.executable, "-m", "tests.outbox.put_on", str(path), str(first), str(flush_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        time.sleep(seconds)
        killed_mono = time.monotonic()
        process.kill()
        lines += process.stdout.readlines()
    put = {int(n): float(mono) for n, mono in (line.split() for line in lines if line.endswith("\n"))}
    return list(put), killed_mono, put


def deliver(path: Path, port: int, until: Callable[[], bool]) -> DiskOutbox:
    """Sends what waits in the file to a broker."""
    outbox = DiskOutbox(path, DeviceClock(), lambda kind, text: None, Limits())
    will = messages.status("offline", reason="lost", at=None, started_at=1.0)
    publisher = Publisher(outbox, MqttTransport(MqttConfig(port=port), "dev-1", will))
    publisher.start()
    try:
        wait_until(until, "every reading")
    finally:
        publisher.stop(None, 2.0)
        outbox.close()
    return outbox


@pytest.mark.parametrize("flush_ms", [200, 0])
def test_readings_older_than_the_flush_window_survive_two_kills_and_arrive_in_order(
    broker: Broker, tmp_path: Path, flush_ms: int
) -> None:
    path, owed, first = tmp_path / "outbox.db", set[int](), 0
    for _ in range(2):
        numbers, killed_mono, put = killed_after(path, first, flush_ms, random.uniform(0.5, 1.0))
        window_s = flush_ms / 1000 + SLACK_S if flush_ms else 0.0
        owed |= {n for n in numbers if put[n] <= killed_mono - window_s}
        first = numbers[-1] + 100
    assert len(owed) > 20
    for row in read_ledger(path).rows():
        assert row.produced == row.queued
    with Observer(broker.port, "edge/dev-1/+/result", made_up=True) as observer:

        def arrived() -> list[int]:
            return [int(heard.payload) for heard in list(observer.heard)]

        deliver(path, broker.port, lambda: owed <= set(arrived()))
        for line in (0, 1):
            numbers = [n for n in arrived() if n % 2 == line]
            assert numbers == sorted(numbers)
    ledger = read_ledger(path)
    assert ledger.queued == 0
    assert sum(row.delivered for row in ledger.rows()) >= len(owed)


def test_reading_whose_confirmation_was_not_written_before_a_kill_arrives_again_under_its_id(
    broker: Broker, tmp_path: Path
) -> None:
    path = tmp_path / "outbox.db"
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from tests.outbox.test_kill import *\n"
        "from edge_agent.records import Reading\n"
        "outbox = DiskOutbox(Path(sys.argv[1]), DeviceClock(), print, Limits(flush_s=0))\n"
        "outbox.put(messages.result(Reading('cam', 7, 5.0, 64, 48)))\n"
        "time.sleep(0.1)\n"
        "will = messages.status('offline', reason='lost', at=None, started_at=1.0)\n"
        "Publisher(outbox, MqttTransport(MqttConfig(port=int(sys.argv[2])), 'dev-1', will)).start()\n"
        "time.sleep(60)\n"
    )
    with Observer(broker.port, "edge/dev-1/+/result", made_up=True) as observer:
        command = [sys.executable, "-c", code, str(path), str(broker.port)]
        with subprocess.Popen(command, cwd=ROOT) as process:
            wait_until(lambda: len(observer.heard) == 1, "the first time")
            process.kill()
        again = len(observer.heard)
        if read_ledger(path).queued:
            deliver(path, broker.port, lambda: len(observer.heard) > again)
        assert len({json.loads(heard.payload)["id"] for heard in observer.heard}) == 1
        assert read_ledger(path).totals()["cam"] == {"produced": 1, "delivered": 1, "queued": 0, "dropped": {}}
