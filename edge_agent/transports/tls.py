"""TLS: what the device demands to see of a broker, and what it shows."""

from __future__ import annotations

import ssl

from edge_agent.errors import ConfigError
from edge_agent.settings.mqtt import MqttConfig


def tls_context(config: MqttConfig) -> ssl.SSLContext:
    """Verifies the broker's certificate and its name, always; TLS 1.2 or newer."""
    try:
        context = ssl.create_default_context(cafile=config.ca_file)
    except (OSError, ssl.SSLError) as exc:
        raise ConfigError(f"mqtt.ca_file {config.ca_file} cannot be used: {exc.strerror or exc}") from exc
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if config.cert_file is not None:
        try:
            context.load_cert_chain(config.cert_file, config.key_file, password="")  # "": never ask at a terminal
        except (OSError, ssl.SSLError) as exc:
            pair = f"mqtt.cert_file {config.cert_file} with mqtt.key_file {config.key_file}"
            raise ConfigError(f"{pair} cannot be used: {exc.strerror or exc}") from exc
    return context
