"""MQTT client: paho's, made as each connection of ours wants it."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

from edge_agent.records import Message
from edge_agent.settings.mqtt import MqttConfig
from edge_agent.transports.mqtt_library import CallbackAPIVersion, MQTTProtocolVersion, paho
from edge_agent.transports.tls import tls_context

PROTOCOLS = {"5": MQTTProtocolVersion.MQTTv5, "3.1.1": MQTTProtocolVersion.MQTTv311}


def new_client(
    config: MqttConfig, client_id: str, protocol: MQTTProtocolVersion, prefix: str, will: Message
) -> paho.Client:
    """A client that has never connected; `will`'s topic hangs below `prefix`.

    Files are read here, so renewed certificates and passwords are used; ConfigError for those that cannot be.
    """
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id, protocol=protocol, reconnect_on_failure=False)
    client.connect_timeout = config.connect_timeout_s
    client.max_inflight_messages_set(config.max_inflight)
    if config.username is not None:
        client.username_pw_set(config.username, config.read_password())
    if config.tls:
        client.tls_set_context(tls_context(config))
    client.will_set(prefix + will.topic, will.payload, will.qos, will.retain)
    client.on_socket_open = _send_at_once
    client.on_socket_register_write = _do_nothing  # else paho would write on the publisher's thread as well
    return client


def cut(client: paho.Client) -> None:
    """Ends the connection without a DISCONNECT, so that the broker sends the will; safe from any thread."""
    sock = client.socket()
    if isinstance(sock, socket.socket):
        with contextlib.suppress(OSError):  # it is gone already
            # not SSLSocket's own, which takes the encryption off under the feet of the network thread
            socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _send_at_once(_client: paho.Client, _userdata: Any, sock: Any) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small messages must not wait for one another


def _do_nothing(*_: Any) -> None:
    pass
