"""Status: what the agent says of itself, over HTTP."""

from __future__ import annotations

import re

from edge_agent.web.status import exposition
from tests.broker import wait_until
from tests.web.doors import Door


def test_ready_and_health_tell_that_frames_are_read(door: Door) -> None:
    assert door.get("/v1/ready") == {"ready": True, "reason": None}
    health = door.get("/v1/health")
    assert (health["pipeline"], health["backend"], health["last_exit"]) == ("running", "onnxruntime", None)
    assert health["broker"]["connected"] is True
    assert health["uptime_s"] > 0


def test_camera_is_shown_with_its_size_and_rates(door: Door) -> None:
    def rates() -> bool:
        (camera,) = door.get("/v1/cameras")["cameras"]
        return camera["read_fps"] is not None and camera["fps"] > 0

    wait_until(rates, "rates")
    (camera,) = door.get("/v1/cameras")["cameras"]
    assert (camera["name"], camera["state"], camera["width_px"]) == ("left", "online", 640)
    assert (camera["rois"], camera["expected"]) == ({}, [])


def test_figures_come_as_they_are_and_as_series(door: Door) -> None:
    wait_until(lambda: len(door.get("/v1/telemetry/history", seconds=60)["at"]) >= 3, "three reports")
    history = door.get("/v1/telemetry/history", seconds=60, points=2, names="fps.,latency_ms.total")
    assert 1 <= len(history["at"]) <= 2
    assert {"fps.left.processed", "latency_ms.total.p50"} <= set(history["series"])
    assert all(name.startswith(("fps.", "latency_ms.total")) for name in history["series"])
    assert all(len(values) == len(history["at"]) for values in history["series"].values())
    assert door.get("/v1/telemetry")["frames"]["left"]["processed"] > 0


def test_metrics_are_prometheus_text(door: Door) -> None:
    wait_until(lambda: "edge_agent_fps" in door.http.get("/metrics").text, "metrics")
    answer = door.http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    sample = re.compile(r'[a-z_0-9]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? -?[0-9.e+-]+')
    lines = answer.text.splitlines()
    assert all(line.startswith("# TYPE ") or sample.fullmatch(line) for line in lines), lines
    assert len({line for line in lines if line.startswith("# TYPE ")}) == sum(line.startswith("#") for line in lines)


def test_metrics_escape_what_a_name_may_hold() -> None:
    assert exposition({"temp_c": {'a"b\\c\nd': 1.5}}) == (
        '# TYPE edge_agent_temp_c gauge\nedge_agent_temp_c{zone="a\\"b\\\\c\\nd"} 1.5\n'
    )


def test_events_are_told_newest_first(door: Door) -> None:
    assert door.get("/v1/events", limit=5)["events"] == []
