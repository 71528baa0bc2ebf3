"""Metrics: the newest telemetry as Prometheus text, asked for over a real socket."""

from __future__ import annotations

import json
import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from edge_agent.errors import ConfigError
from edge_agent.records import Message
from edge_agent.telemetry.metrics import flattened, serving
from tests.broker import DEADLINE_S

pytest.importorskip("prometheus_client", reason="needs prometheus-client: pip install 'edge-agent[metrics]'")

BODY = {
    "v": 1,
    "at": "2026-11-30T12:00:00.000Z",
    "backend": "onnxruntime",
    "power_w": {"VDD_IN": 15.2, "total": None},
    "fps": {"line-1": {"offered": 30.0, "processed": 11.2}},
    "latency_ms": {"detect": {"p50": 52.1}},
    "cameras": {'odd"name\n': {"state": "online", "frames": 7, "last_frame_at": None}},
    "items": {"line-1": {"items": 9, "pass": 7}},
    "outbox": {"depth": 3, "dropped": {"too_old": 2}},
    "publisher": {"connected": True},
    "throttled": None,
    "cpu_percent": 61.5,
    "absent": {"power_w.total": "gone"},
}


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def scraped(port: int) -> dict[str, float]:
    from prometheus_client.parser import text_string_to_metric_families

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE_S) as answer:
        text = answer.read().decode()
    return {
        sample.name + "".join(f"|{value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_numbers_of_the_newest_message_are_scraped_and_null_is_no_sample(port: int) -> None:
    with serving("127.0.0.1", port) as take:
        assert scraped(port) == {}
        take(Message("telemetry", json.dumps(BODY).encode()))
        assert scraped(port) == {
            "edge_agent_power_w|VDD_IN": 15.2,
            "edge_agent_fps|line-1|offered": 30.0,
            "edge_agent_fps|line-1|processed": 11.2,
            "edge_agent_latency_ms|p50|detect": 52.1,
            'edge_agent_cameras_frames|odd"name\n': 7.0,
            "edge_agent_items_items|line-1": 9.0,
            "edge_agent_items_pass|line-1": 7.0,
            "edge_agent_outbox_depth": 3.0,
            "edge_agent_outbox_dropped_too_old": 2.0,
            "edge_agent_publisher_connected": 1.0,
            "edge_agent_cpu_percent": 61.5,
        }
        take(Message("telemetry", b'{"cpu_percent": 2.0}'))
        assert scraped(port) == {"edge_agent_cpu_percent": 2.0}
    with pytest.raises(OSError, match="refused"):
        scraped(port)


def test_port_is_open_on_the_named_address_alone(port: int) -> None:
    with serving("127.0.0.1", port), socket.socket() as elsewhere:
        assert elsewhere.connect_ex(("127.0.0.2", port)) != 0


def test_port_that_is_taken_costs_a_warning_and_nothing_else(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        with serving("127.0.0.1", port) as take:
            take(Message("telemetry", b"{}"))
    assert f"metrics are not served at 127.0.0.1:{port}: Address already in use" in caplog.text


def test_missing_library_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigError, match=r"pip install 'edge-agent\[metrics\]'"), serving("127.0.0.1", 9):
        pass


def test_documented_example_has_a_metric_for_each_of_its_numbers() -> None:
    text = (Path(__file__).parents[2] / "docs/mqtt.md").read_text("utf-8")
    example = json.loads(text.partition("## telemetry")[2].partition("```json\n")[2].partition("```")[0])
    found = [(name, labels) for name, labels, _ in flattened(example)]
    assert len(set(found)) == len(found) > 40
    by_name: dict[str, set[tuple[str, ...]]] = {}
    for name, labels in found:
        by_name.setdefault(name, set()).add(tuple(label for label, _ in labels))
    assert all(len(names) == 1 for names in by_name.values()), "a name with two sets of labels"
