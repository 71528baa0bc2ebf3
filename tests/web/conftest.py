"""Doors of real agents, each opened once for all tests that change nothing in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edge_agent.web.passwords import add_token, write_password
from tests.web.doors import PASSWORD, Door, opened


@pytest.fixture(scope="session")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """For this device alone, without a password."""
    with opened(tmp_path_factory.mktemp("door"), web={"max_waiting_reads": 2}) as door:
        yield door


@pytest.fixture(scope="session")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """For every machine, with a password and a token `mes`; full of secrets that nobody may see."""
    folder = tmp_path_factory.mktemp("locked")
    write_password(folder / "web_password", PASSWORD)
    (folder / "mes_token").write_text(add_token(folder / "web_tokens", "mes"))
    (folder / "mqtt_password").touch(0o600)
    (folder / "mqtt_password").write_text("S3cr#t@pw\n")
    hidden = {"kind": "rtsp", "source": "rtsp://admin:S3cret%21pw@127.0.0.1:1/live"}
    web = {
        "host": "0.0.0.0",
        "allow_insecure": True,
        "password_file": "web_password",
        "token_file": "web_tokens",
        "hostnames": ["press7.plant.example"],
    }
    mqtt = {"username": "press7", "password_file": "mqtt_password"}
    left = {"kind": "folder", "source": str(folder / "labels"), "loop": True, "max_fps": 0.5}
    with opened(folder, web=web, mqtt=mqtt, cameras={"left": left, "hidden": hidden}) as door:
        door.http.headers["Authorization"] = f"Bearer {(folder / 'mes_token').read_text()}"
        yield door
