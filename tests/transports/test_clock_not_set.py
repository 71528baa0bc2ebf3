"""A device whose clock is not set (field case CLK-2): libfaketime moves a process into the past, and out of it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker import DEADLINE_S, Broker, wait_until
from tests.certificates import make_authority, make_certificate
from tests.conftest import ROOT

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))

DEVICE = """
import logging, signal, sys
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
from pathlib import Path
from edge_agent.settings.mqtt import MqttConfig
from edge_agent.records import Message
from edge_agent.transports.mqtt import MqttTransport
settings = MqttConfig(
    port=int(sys.argv[1]), tls=True, ca_file=Path(sys.argv[2]), reconnect_min_s=0.05, reconnect_max_s=0.2
)
MqttTransport(settings, "dev-1", Message("status", b"{}", retain=True)).open(lambda: None)
signal.pause()  # libfaketime makes time.sleep fail
"""


@pytest.fixture
def said(make_broker: Callable[..., Broker], tmp_path: Path) -> Iterator[list[str]]:
    """What a device says that believes the time in the file `now`."""
    if not LIBRARIES:
        pytest.skip("needs libfaketime: apt-get install faketime")
    authority = make_authority(tmp_path)
    server = make_certificate(tmp_path, "server", authority, "IP:127.0.0.1")  # valid from 2020 on
    broker = make_broker(f"allow_anonymous true\ncertfile {server.cert}\nkeyfile {server.key}").start()
    (tmp_path / "now").write_text("@2000-01-01 00:00:00\n")
    faked = {
        "FAKETIME_TIMESTAMP_FILE": str(tmp_path / "now"),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    environ = {**os.environ, **faked, "LD_PRELOAD": str(LIBRARIES[0]), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", DEVICE, str(broker.port), str(authority.cert)]
    lines: list[str] = []
    with subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reader = threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, "")))  # type: ignore[union-attr]
        reader.start()
        yield lines
        process.kill()
        reader.join(DEADLINE_S)


def test_clock_is_named_not_the_certificate_and_all_goes_on_by_itself_once_it_is_set(
    said: list[str], tmp_path: Path
) -> None:
    wait_until(lambda: any("not connected after" in line for line in said), "the cause")
    assert "the clock of this device says 2000-01-01, before the certificate" in said[0]
    assert "waiting for the clock to be set (time synchronisation)" in said[0]
    (tmp_path / "now").write_text("+0\n")
    wait_until(lambda: any("connected to 127.0.0.1" in line for line in said), "the connection")
    assert len(said) == 2, "the cause is said once"
