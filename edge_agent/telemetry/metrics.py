"""Metrics: the newest telemetry message as Prometheus text over HTTP, by prometheus-client (extra `metrics`).

Numbers become gauges, named by where they stand in the message: `edge_agent_power_w{rail="VDD_IN"}`. What a level's
members stand for is a row of LABELS; other levels become part of the name. Null is no sample: absent is not 0.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from edge_agent.errors import ConfigError
from edge_agent.records import Message

log = logging.getLogger(__name__)

PREFIX = "edge_agent"
LABELS: Mapping[str, tuple[str, ...]] = {
    "fps": ("camera", "event"),
    "frames": ("camera", "event"),
    "latency_ms": ("stage", "quantile"),
    "cameras": ("camera", ""),
    "items": ("camera", ""),
    "power_w": ("rail",),
    "temp_c": ("zone",),
    "over_current": ("counter",),
    "gpu_load_percent": ("gpu",),
    "gpu_clock_hz": ("gpu",),
    "gpu_memory_used_bytes": ("gpu",),
    "gpu_memory_total_bytes": ("gpu",),
    "withheld_no_text": ("camera",),
    "backend_counters": ("", "name"),
    "ledger": ("period", "camera"),
}
LEFT_OUT = frozenset({"v", "at", "absent", "engines", "calibration"})

Labels = tuple[tuple[str, str], ...]


def flattened(body: Mapping[str, Any]) -> Iterator[tuple[str, Labels, float]]:
    """Name, labels and value of each number in a telemetry message; booleans are 0 and 1."""
    for member, value in body.items():
        if member not in LEFT_OUT:
            yield from _below(f"{PREFIX}_{member}", value, LABELS.get(member, ()), ())


def _below(name: str, value: Any, labels: tuple[str, ...], said: Labels) -> Iterator[tuple[str, Labels, float]]:
    if isinstance(value, (bool, int, float)):
        yield name, said, float(value)
    elif isinstance(value, Mapping):
        for key, below in value.items():
            if labels and labels[0]:
                yield from _below(name, below, labels[1:], (*said, (labels[0], str(key))))
            else:
                yield from _below(f"{name}_{re.sub(r'[^a-zA-Z0-9_]', '_', str(key))}", below, labels[1:], said)


class Latest:
    """The newest message, as a collector that prometheus-client asks at each scrape."""

    def __init__(self, gauge: Callable[..., Any]) -> None:
        self._gauge = gauge
        self._lock = threading.Lock()
        self._payload = b"{}"

    def take(self, message: Message) -> None:
        """A newer message is there; any thread."""
        with self._lock:
            self._payload = message.payload

    def collect(self) -> Iterator[Any]:
        """One family a name."""
        with self._lock:
            payload = self._payload
        families: dict[str, tuple[list[str], Any]] = {}
        for name, labels, value in flattened(json.loads(payload)):
            names = [label for label, _ in labels]
            if name not in families:
                about = f"{name.removeprefix(PREFIX + '_')} of the newest telemetry message"
                families[name] = (names, self._gauge(name, about, labels=names))
            known, family = families[name]
            if names == known:  # one name has one set of labels
                family.add_metric([said for _, said in labels], value)
        for _, family in families.values():
            yield family


@contextmanager
def serving(host: str, port: int) -> Iterator[Callable[[Message], None]]:
    """Answers GET /metrics, inside; gives what takes each telemetry message.

    A port that is taken costs the metrics and a warning. ConfigError without prometheus-client.
    """
    try:
        from prometheus_client import CollectorRegistry, start_http_server
        from prometheus_client.core import GaugeMetricFamily
    except ImportError as exc:
        raise ConfigError(
            f"metrics.port is {port}, which needs the Python package prometheus-client: "
            "pip install 'edge-agent[metrics]', or write null"
        ) from exc
    latest = Latest(GaugeMetricFamily)
    registry = CollectorRegistry()
    registry.register(latest)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as exc:
        log.warning("metrics are not served at %s:%d: %s", host, port, exc.strerror or exc)
        yield lambda message: None
        return
    log.info("metrics are served at http://%s:%d/metrics", host, port)
    try:
        yield latest.take
    finally:
        server.shutdown()
        server.server_close()
        thread.join(1.0)
