"""Mqtt: the broker, and how to reach it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr, model_validator
from pydantic.json_schema import SkipJsonSchema

from edge_agent.secrets import read_password_file
from edge_agent.settings.environment import variable_of
from edge_agent.settings.scalars import Host, LocalPath, Name, Port, Seconds, number_as_text
from edge_agent.settings.section import Section, minimum_above_maximum, one_without_other, refuse


class MqttConfig(Section):
    """The broker and how to reach it."""

    host: Host = "127.0.0.1"
    """The broker's name or IP address."""
    port: Port = 1883
    """The broker's port; 8883 is usual with tls."""
    base_topic: Name = "edge"
    """First level of every topic: base_topic/device_id/..."""
    client_id: Name | None = None
    """MQTT client id, one to each client; null: edge-agent and the device id."""
    protocol: Annotated[Literal["5", "3.1.1"], BeforeValidator(number_as_text)] = "5"
    """MQTT version: 5 or 3.1.1."""
    username: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """User at the broker; null: none."""
    password: SkipJsonSchema[SecretStr | None] = None
    """The user's password; comes by the environment only, never by a file of settings or from afar."""
    password_file: LocalPath | None = None
    """A file with the user's password, one line, readable by the owner alone."""
    tls: bool = False
    """Encrypts the connection and checks the broker's certificate and name."""
    ca_file: LocalPath | None = None
    """Certificates (PEM) that may have signed the broker's; null: those that the system trusts."""
    cert_file: LocalPath | None = None
    """The device's own certificate (PEM), together with key_file."""
    key_file: LocalPath | None = None
    """The key (PEM, no passphrase) of cert_file."""
    keepalive_s: Annotated[int, Field(ge=5, le=3600)] = 30
    """Silence, s, after which the broker is asked whether it is still there."""
    connect_timeout_s: Seconds = 5.0
    """How long connecting may take, s."""
    reconnect_min_s: Seconds = 1.0
    """First wait before connecting again, s; it doubles up to reconnect_max_s."""
    reconnect_max_s: Seconds = 60.0
    """Longest wait before connecting again, s."""
    conflict_backoff_s: Seconds = 300.0
    """Wait, s, after another client took over this client id."""
    max_inflight: Annotated[int, Field(ge=1, le=1000)] = 20
    """Messages under way to the broker at once without its confirmation."""
    max_payload_bytes: Annotated[int, Field(ge=1024, le=268_435_455)] = 262_144
    """Largest message sent or taken, bytes."""
    home_assistant: Name | None = None
    """Home Assistant's discovery prefix, homeassistant unless changed there; null: the device is not announced."""

    @model_validator(mode="after")
    def _keys_agree(self) -> MqttConfig:
        problems = list(minimum_above_maximum(self, "reconnect_min_s", "reconnect_max_s"))
        if not self.tls:
            given = [key for key in ("ca_file", "cert_file", "key_file") if getattr(self, key) is not None]
            problems += [(key, "is for an encrypted connection; write tls: true as well") for key in given]
        problems += one_without_other(self, "cert_file", "key_file")
        if self.username is None and (self.password is not None or self.password_file is not None):
            problems.append(("username", "is missing; a password needs one"))
        if self.password is not None and self.password_file is not None:
            problems.append(("password_file", f"and {variable_of(('mqtt', 'password'))} both give a password"))
        refuse(problems)
        return self

    def read_password(self) -> str | None:
        """The password from the environment or password_file, read anew each time; None where neither is set.

        Raises ConfigError for a file that cannot be used.
        """
        if self.password is not None:
            return self.password.get_secret_value()
        return None if self.password_file is None else read_password_file(self.password_file)
