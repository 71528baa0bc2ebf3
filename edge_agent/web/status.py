"""Status: how the device is: health, cameras, figures, events."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from edge_agent.config import plain
from edge_agent.records import rfc3339
from edge_agent.schema.payloads import Event, Health
from edge_agent.telemetry.metrics import flattened
from edge_agent.web.endpoint import Call, Endpoint, Query, Said, answered
from edge_agent.web.history import DAY_S
from edge_agent.web.site import CameraNow, Refused, WebSite

PROMETHEUS = "text/plain"
READING_STATES = ("running", "degraded", "calibrating")


class Ready(Said):
    """Whether frames are read."""

    ready: bool
    reason: str | None = None
    """Why not."""


class Camera(Said):
    """A camera."""

    name: str
    state: str
    """starting, online, stalled, offline, disabled or ended."""
    reason: str | None
    """Why it gives no frames."""
    fps: float | None
    """Frames that it gives a second; null before the first."""
    read_fps: float | None
    """Frames of it that are read a second; null before the first."""
    last_frame_at: str | None
    """RFC 3339; null before the first."""
    width_px: int | None
    height_px: int | None
    rois: dict[str, Any]
    """The regions in force: `cameras.<name>.rois` of config.yaml."""
    expected: list[Any]
    """What an item must say: `cameras.<name>.expected` of config.yaml."""


class LastExit(Said):
    """How the process before this one ended."""

    kind: str
    """A kind of event."""
    cause: str


class Broker(Said):
    """The connection to the broker."""

    connected: bool
    cause: str | None
    """Why it is not."""


class DeviceHealth(Health):
    """How the reading goes, and since when."""

    started_at: str
    uptime_s: float
    last_exit: LastExit | None
    """Null where there was none."""
    broker: Broker


class Cameras(Said):
    """All cameras."""

    cameras: list[Camera]


class Telemetry(Said):
    """The newest figures: `telemetry` of docs/mqtt.md."""

    v: int


class Series(Said):
    """Figures over time."""

    at: list[str]
    """When, RFC 3339."""
    series: dict[str, list[float | None]]
    """By name, a value for each time; null where it was absent."""


class Events(Said):
    """What happened to the device, newest first."""

    events: list[Event]


async def health(call: Call) -> Response:
    """How the reading goes."""
    return answered(health_of(call.site))


def health_of(site: WebSite) -> dict[str, Any]:
    """The newest health, with what goes beyond the message."""
    return {**site.health(), **site.run()}


async def ready(call: Call) -> Response:
    """Whether frames are read, for whoever waits for it."""
    said = call.site.health()
    state = said.get("pipeline", "starting")
    if state in READING_STATES:
        return answered(Ready(ready=True))
    return answered(Ready(ready=False, reason=state), 503, {"Retry-After": "5"})


async def cameras(call: Call) -> Cameras:
    """Every camera with its regions and expectations."""
    return Cameras(cameras=camera_rows(call.site))


def camera_rows(site: WebSite) -> list[Camera]:
    """Every camera as it is answered."""
    settings = plain(site.config)["cameras"]
    return [camera_of(now, settings.get(now.name, {})) for now in site.cameras()]


def camera_of(now: CameraNow, settings: Mapping[str, Any]) -> Camera:
    """A camera as it is answered."""
    return Camera(
        name=now.name,
        state=now.state,
        reason=now.reason,
        fps=None if now.fps is None else round(now.fps, 2),
        read_fps=now.read_fps,
        last_frame_at=None if now.last_frame_at is None else rfc3339(now.last_frame_at),
        width_px=now.width_px,
        height_px=now.height_px,
        rois=settings.get("rois", {}),
        expected=settings.get("expected", []),
    )


async def telemetry(call: Call) -> Response:
    """The newest figures."""
    said = call.site.telemetry()
    if said is None:
        raise Refused(503, "no_telemetry", "no figures yet: the first come after telemetry.interval_s")
    return answered(said)


async def history(call: Call) -> Any:
    """Figures over time, for charts."""
    prefixes = tuple((call.query["names"] or "").split(","))
    charts, wanted = call.door.charts, call.query
    return await call.door.aside(charts.over, wanted["seconds"], wanted["points"], time.time(), prefixes)


async def events(call: Call) -> Response:
    """What happened, newest first."""
    entries, _ = call.site.events.before(None, None, call.query["limit"])
    return answered(b'{"events":[%s]}' % b",".join(entry.payload for entry in entries))


async def metrics(call: Call) -> Response:
    """The newest figures as Prometheus text."""
    said = call.site.telemetry()
    text = "" if said is None else exposition(json.loads(said))
    return Response(text, 200, media_type=f"{PROMETHEUS}; version=0.0.4; charset=utf-8")


def exposition(report: Mapping[str, Any]) -> str:
    """A telemetry message in Prometheus' text format, version 0.0.4: gauges; one name has one set of labels."""
    lines: list[str] = []
    families: dict[str, tuple[tuple[str, ...], list[str]]] = {}
    for name, labels, value in flattened(report):
        kinds, samples = families.setdefault(name, (tuple(label for label, _ in labels), []))
        if kinds == tuple(label for label, _ in labels):
            said = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
            samples.append(f"{name}{{{said}}} {value!r}" if said else f"{name} {value!r}")
    for name, (_, samples) in families.items():
        lines += [f"# TYPE {name} gauge", *samples]
    return "".join(f"{line}\n" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


HISTORY = (
    Query("seconds", "integer", "How far back, s; above 960 s values are means of 2 minutes.", 900, 10, int(DAY_S)),
    Query("points", "integer", "Points at most; each is the mean of what lies between.", 180, 2, 1000),
    Query("names", "string", "Beginnings of the names wanted, with commas between; none: all.", None, 0, 500),
)

ENDPOINTS = (
    Endpoint("GET", "/v1/health", health, "How the reading goes", {200: DeviceHealth}),
    Endpoint("GET", "/v1/ready", ready, "200 once frames are read, 503 before", {200: Ready, 503: Ready}, free=True),
    Endpoint("GET", "/v1/cameras", cameras, "The cameras, their regions and expectations", {200: Cameras}),
    Endpoint("GET", "/v1/telemetry", telemetry, "The newest figures", {200: Telemetry}, refusals=(503,)),
    Endpoint("GET", "/v1/telemetry/history", history, "Figures over time", {200: Series}, query=HISTORY),
    Endpoint(
        "GET",
        "/v1/events",
        events,
        "What happened to the device, newest first",
        {200: Events},
        query=(Query("limit", "integer", "So many at most.", 50, 1, 200),),
    ),
    Endpoint("GET", "/metrics", metrics, "The newest figures for Prometheus", {200: PROMETHEUS}),
)
