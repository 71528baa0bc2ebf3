"""`edge-agent bench outbox`: small runs through a real Mosquitto."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edge_agent.__main__ import main
from tests.broker import MOSQUITTO, Broker

pytestmark = pytest.mark.skipif(MOSQUITTO is None, reason="needs Mosquitto: apt-get install mosquitto")


def test_every_reading_is_delivered_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "outbox", "--seconds", "0.3", "--backlog", "500", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["paced"]["readings"] == 9
    assert figures["sustained"]["readings"] > 100
    assert figures["backlog"]["draining"]["readings"] == 500
    assert figures["payload_bytes"] > 1000
    assert list(tmp_path.iterdir()) == []  # what it made is gone


def test_a_broker_that_is_named_is_used(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    host = f"127.0.0.1:{broker.port}"
    assert main(["bench", "outbox", "--seconds", "0.1", "--backlog", "50", "--host", host]) == 0
    assert "draining it" in capsys.readouterr().out
    assert "edge-agent-bench" in broker.log()
    assert main(["bench", "outbox", "--host", "mqtt://nowhere"]) == 78
