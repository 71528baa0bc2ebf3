"""Broker: an MQTT broker for the demo on a free port of this machine, reachable from nowhere else.

Mosquitto where it is installed, else amqtt, a broker in pure Python (extra `demo`), in a process of its own.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edge_agent.demo.child import Child, started
from edge_agent.errors import ConfigError

HOST = "127.0.0.1"
START_TIMEOUT_S = 20.0
ATTEMPTS = 3  # another program may take the free port between our look and the broker's bind

Kind = Literal["mosquitto", "amqtt"]


@dataclass(frozen=True)
class Broker:
    """A broker that answers; `name` says which, with where it is."""

    kind: Kind
    name: str
    host: str
    port: int
    child: Child

    @property
    def protocol(self) -> str:
        """The newest MQTT version that it speaks; amqtt refuses an MQTT 5 connection without saying why."""
        return "3.1.1" if self.kind == "amqtt" else "5"


@contextmanager
def open_broker(folder: Path, kind: Kind | None = None) -> Iterator[Broker]:
    """A running broker whose log and settings lie in `folder`; it has ended when the block is left.

    Raises ConfigError when there is none to start or it does not come up.
    """
    chosen = kind or choose()
    folder.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, ATTEMPTS + 1):
        port = free_port()
        with started("broker", _command(chosen, folder, port), folder / f"{chosen}.log") as child:
            if _answers(child, port):
                yield Broker(chosen, _name(chosen), HOST, port, child)
                return
            if attempt == ATTEMPTS:
                lines = "\n  ".join(child.last_lines(8)) or "(it wrote nothing)"
                raise ConfigError(f"the broker {_name(chosen)} did not come up on {HOST}:{port}:\n  {lines}")


def choose() -> Kind:
    """Mosquitto, else amqtt. Raises ConfigError, saying what to install, where neither is."""
    if mosquitto() is not None:
        return "mosquitto"
    if importlib.util.find_spec("amqtt") is not None:
        return "amqtt"
    raise ConfigError(
        "the demo needs an MQTT broker and found none; run `apt install mosquitto`, "
        "or `pip install 'edge-agent[demo]'` for one in Python"
    )


def mosquitto() -> str | None:
    """Where Mosquitto is; Debian puts it in a folder that is not on everybody's PATH."""
    return shutil.which("mosquitto", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]))


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _command(kind: Kind, folder: Path, port: int) -> list[str]:
    if kind == "amqtt":
        return [sys.executable, "-m", "edge_agent.demo.amqtt_broker", HOST, str(port)]
    settings = folder / "mosquitto.conf"
    settings.write_text(
        f"# written by edge-agent demo\nlistener {port} {HOST}\nallow_anonymous true\npersistence false\n",
        encoding="utf-8",
    )
    return [mosquitto() or "mosquitto", "-c", str(settings)]


def _name(kind: Kind) -> str:
    return f"Mosquitto ({mosquitto()})" if kind == "mosquitto" else "amqtt (Python)"


def _answers(child: Child, port: int) -> bool:
    """Whether somebody accepts connections before the child ends or the time is up."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while child.exit_code() is None and time.monotonic() < deadline:
        try:
            with socket.create_connection((HOST, port), timeout=1.0):
                return child.exit_code() is None
        except OSError:
            time.sleep(0.05)
    return False
