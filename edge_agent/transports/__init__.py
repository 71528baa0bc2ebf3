"""Transports: where messages go. A new one is a file here and a row in TRANSPORTS.

Each class has `from_config(config, device_id, will, birth)`; `load` calls it for the transport that is configured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from edge_agent import registry

if TYPE_CHECKING:
    from edge_agent.config import Config
    from edge_agent.records import Message
    from edge_agent.transports.base import Transport

TRANSPORTS = {
    "jsonl": "edge_agent.transports.jsonl:JsonlTransport",
    "mqtt": "edge_agent.transports.mqtt:MqttTransport",
}


def load(config: Config, device_id: str, will: Message, birth: Callable[[], list[Message]]) -> Transport:
    """The configured transport, not yet opened. Raises ConfigError where it cannot be made."""
    transport: Transport = registry.load(TRANSPORTS, config.transport, "transport").from_config(
        config, device_id, will, birth
    )
    return transport
