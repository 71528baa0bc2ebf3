"""MQTT library: paho, of the version that we know; the one file that imports it."""

from __future__ import annotations

from paho.mqtt import __version__ as paho_version

from edge_agent.errors import ConfigError

try:
    import paho.mqtt.client as paho
    from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
    from paho.mqtt.properties import Properties
    from paho.mqtt.reasoncodes import ReasonCode
    from paho.mqtt.subscribeoptions import SubscribeOptions
except ImportError as exc:  # 1.6 has other callbacks and reason codes, and one kind of them is enough to keep right
    raise ConfigError(
        f"paho-mqtt {paho_version} is installed and version 2 is needed; run: pip install 'paho-mqtt>=2.0,<3'"
    ) from exc

__all__ = [
    "CallbackAPIVersion",
    "MQTTErrorCode",
    "MQTTProtocolVersion",
    "Properties",
    "ReasonCode",
    "SubscribeOptions",
    "paho",
]
