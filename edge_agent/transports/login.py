"""Login: whether the broker is there and lets this device in; one CONNECT under a name of its own, and gone again.

Written by hand because a client of its own would say a birth and a will. Packets: MQTT 3.1.1 and 5.0, section 3.1, 3.2.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct

from edge_agent.errors import TransportError
from edge_agent.settings.mqtt import MqttConfig
from edge_agent.transports.tls import tls_context

CONNACK = 0x20
DISCONNECT = b"\xe0\x00"
REFUSALS = {
    ("3.1.1", 1): "it does not speak this version; set mqtt.protocol",
    ("3.1.1", 2): "it refuses this client id",
    ("3.1.1", 3): "it is not available now",
    ("3.1.1", 4): "user or password is wrong",
    ("3.1.1", 5): "this user may not connect",
    ("5", 0x84): "it does not speak version 5; set mqtt.protocol",
    ("5", 0x85): "it refuses this client id",
    ("5", 0x86): "user or password is wrong",
    ("5", 0x87): "this user may not connect",
    ("5", 0x88): "it is not available now",
    ("5", 0x89): "it is busy",
    ("5", 0x8A): "this device is banned there",
}


def log_in(config: MqttConfig) -> str:
    """What was reached, in words. TransportError says what went wrong; ConfigError for files that cannot be used."""
    where = f"{config.host}:{config.port}"
    password = config.read_password()
    try:
        with socket.create_connection((config.host, config.port), config.connect_timeout_s) as plain:
            context = tls_context(config) if config.tls else None
            channel = plain if context is None else context.wrap_socket(plain, server_hostname=config.host)
            with channel:
                channel.sendall(connect_packet(config, password))
                code = answer(channel)
                channel.sendall(DISCONNECT)
    except ssl.SSLError as exc:
        raise TransportError(f"{where}: TLS fails: {exc.reason or exc}") from exc
    except OSError as exc:
        raise TransportError(f"{where} is not reached: {exc.strerror or exc}") from exc
    if code:
        raise TransportError(f"{where}: {REFUSALS.get((config.protocol, code), f'it refuses with code {code}')}")
    secure = "with TLS" if config.tls else "without TLS"
    return f"{where} lets in {'nobody by name' if config.username is None else config.username}, {secure}"


def connect_packet(config: MqttConfig, password: str | None) -> bytes:
    """CONNECT with a clean session, no will, and a client id that is nobody's."""
    flags = 0x02 | (0x80 if config.username is not None else 0) | (0x40 if password is not None else 0)
    level = 5 if config.protocol == "5" else 4
    body = _text("MQTT") + struct.pack(">BBH", level, flags, config.keepalive_s) + (b"\0" if level == 5 else b"")
    body += _text(f"edge-agent-doctor-{os.urandom(4).hex()}")
    for text in (config.username, password):
        body += b"" if text is None else _text(text)
    length, size = bytearray(), len(body)
    while True:
        size, low = divmod(size, 128)
        length.append(low | (0x80 if size else 0))
        if not size:
            return b"\x10" + bytes(length) + body


def answer(channel: socket.socket) -> int:
    """The code in CONNACK, 0 for yes. TransportError for anything else."""
    head = b""
    while len(head) < 4:
        more = channel.recv(4 - len(head))
        if not more:
            raise TransportError("the broker hung up; does this port speak MQTT, with or without TLS as mqtt.tls says?")
        head += more
    if head[0] != CONNACK:
        raise TransportError("what answers there does not speak MQTT")
    return head[3]


def _text(text: str) -> bytes:
    content = text.encode()
    return struct.pack(">H", len(content)) + content
