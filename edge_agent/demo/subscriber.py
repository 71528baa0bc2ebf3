"""Subscriber: what a plant's own program would do: connect to the broker, subscribe, take messages as they come."""

from __future__ import annotations

import queue
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from edge_agent.errors import TransportError

CONNECT_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Arrival:
    """One message: its whole topic, its payload, and when it came (monotonic s)."""

    topic: str
    payload: bytes
    arrived_mono: float


class Subscriber:
    """Receives everything below `prefix`. The constructor returns once the broker has confirmed the subscription.

    A context manager; `take` is called by one thread; `dropped` counts what did not fit its queue.
    Raises TransportError when the broker does not answer.
    """

    def __init__(self, host: str, port: int, prefix: str, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
        self._arrivals: queue.Queue[Arrival] = queue.Queue(maxsize=10_000)
        self._confirmed: queue.Queue[bool] = queue.Queue()
        self._prefix = prefix
        self.dropped = 0
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message
        try:
            self._client.connect(host, port, keepalive=30)
            self._client.loop_start()
            granted = self._confirmed.get(timeout=timeout_s)
        except (OSError, queue.Empty) as exc:
            self.close()
            raise TransportError(f"the broker at {host}:{port} did not answer within {timeout_s:g} s") from exc
        if not granted:
            self.close()
            raise TransportError(f"the broker at {host}:{port} refused the subscription to {prefix}/#")

    def take(self, timeout_s: float) -> Arrival | None:
        """The next message, or None when none came in time."""
        try:
            return self._arrivals.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Disconnects; calling it again does nothing."""
        self._client.disconnect()
        self._client.loop_stop()

    def _on_connect(self, client: mqtt.Client, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if not reason.is_failure:
            client.subscribe(f"{self._prefix}/#", qos=1)

    def _on_subscribe(self, client: mqtt.Client, userdata: Any, mid: int, reasons: Any, properties: Any) -> None:
        self._confirmed.put(not any(reason.is_failure for reason in reasons))

    def _on_message(self, client: mqtt.Client, userdata: Any, message: mqtt.MQTTMessage) -> None:
        arrival = Arrival(message.topic, bytes(message.payload), time.monotonic())
        try:
            self._arrivals.put_nowait(arrival)
        except queue.Full:  # whoever cannot keep up sees fewer messages; memory must not grow
            self.dropped += 1

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
