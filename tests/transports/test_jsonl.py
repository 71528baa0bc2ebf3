"""JsonlTransport: one strict line a message, on a real file and a real pipe."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from edge_agent.errors import ConfigError, TransportError
from edge_agent.outbox.memory import MemoryOutbox
from edge_agent.publisher import Publisher
from edge_agent.records import Message
from edge_agent.transports.base import Backoff, Outcome
from edge_agent.transports.jsonl import JsonlTransport
from tests.broker import DEADLINE_S, wait_until

PREFIX = "edge/dev-1/"


def outcomes(transport: JsonlTransport, *offered: Message) -> list[Outcome]:
    settled: list[Outcome] = []
    for message in offered:
        transport.send(message, lambda outcome, reason: settled.append(outcome))
    return settled


def test_each_message_is_one_line_with_its_whole_topic(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    transport = JsonlTransport(PREFIX, path, lambda: [Message("status", b'{"state":"online"}', retain=True)])
    ready: list[int] = []
    transport.open(lambda: ready.append(1))
    sent = [Message("cam/result", '{"text":"Ä\\n€"}'.encode()), Message("telemetry", b'{ "a":\n1.50 }', qos=0)]
    assert outcomes(transport, *sent) == [Outcome.DELIVERED, Outcome.DELIVERED]
    transport.close(Message("status", b'{"state":"stopped"}'), 1.0)
    transport.close(None, 1.0)
    assert ready == [1]
    assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == [
        {"topic": PREFIX + "status", "payload": {"state": "online"}},
        {"topic": PREFIX + "cam/result", "payload": {"text": "Ä\n€"}},
        {"topic": PREFIX + "telemetry", "payload": {"a": 1.5}},
        {"topic": PREFIX + "status", "payload": {"state": "stopped"}},
    ]
    assert path.stat().st_mode & 0o077 == 0


def test_stdout_is_the_default(capfd: pytest.CaptureFixture[str]) -> None:
    transport = JsonlTransport(PREFIX)
    transport.open(lambda: None)
    outcomes(transport, Message("cam/result", b"{}"))
    transport.close(None, 1.0)
    assert capfd.readouterr().out == '{"topic":"edge/dev-1/cam/result","payload":{}}\n'
    os.write(1, b"")  # stdout is still open


def test_payload_that_is_not_json_is_refused_and_leaves_no_line(tmp_path: Path) -> None:
    transport = JsonlTransport(PREFIX, tmp_path / "out.jsonl")
    assert outcomes(transport, Message("cam/result", b"\xff{"), Message("cam/result", b"[" * 100_000)) == [
        Outcome.REFUSED,
        Outcome.REFUSED,
    ]
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_file_that_cannot_be_opened_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be opened"):
        JsonlTransport(PREFIX, tmp_path / "missing" / "out.jsonl")


def test_full_disk_keeps_the_message_and_says_why() -> None:
    transport = JsonlTransport(PREFIX, Path("/dev/full"))
    with pytest.raises(TransportError, match="No space left"):
        outcomes(transport, Message("cam/result", b"{}"))
    assert "No space left" in str(transport.cause)
    transport.close(Message("status", b"{}"), 1.0)


def test_reader_that_comes_back_gets_every_message_through_the_publisher(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    transport = JsonlTransport(PREFIX, path)
    os.close(reader)  # nobody reads: EPIPE
    outbox = MemoryOutbox(max_bytes=1_000_000, max_age_s=60)
    publisher = Publisher(outbox, transport, backoff=Backoff(0.001, 0.01))
    publisher.start()
    for n in range(3):
        outbox.put(Message("cam/result", b"%d" % n))
    wait_until(lambda: publisher.stats().failed > 2, "failed tries")
    got: list[str] = []

    def read() -> None:
        with path.open(encoding="utf-8") as file:
            got.extend(file)

    thread = threading.Thread(target=read)
    thread.start()
    wait_until(lambda: outbox.stats().depth == 0, "delivery")
    publisher.stop(None, 5.0)
    thread.join(DEADLINE_S)
    assert [json.loads(line)["payload"] for line in got] == [0, 1, 2]
