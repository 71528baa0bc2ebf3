"""Is the broker there, and does it let this device in?"""

from __future__ import annotations

from collections.abc import Iterator

from edge_agent.doctor.base import Patient, Row
from edge_agent.errors import ConfigError, TransportError
from edge_agent.transports.login import log_in


def check(patient: Patient) -> Iterator[Row]:
    if patient.config is None or patient.config.transport != "mqtt":
        yield Row("broker", "ok", "not looked for: nothing is to be sent there")
        return
    try:
        yield Row("broker", "ok", log_in(patient.config.mqtt))
    except (TransportError, ConfigError) as exc:
        yield Row("broker", "fail", str(exc), "mqtt.host, port, tls, username and password_file; is it running?")
