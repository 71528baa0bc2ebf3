"""The door and the reading: whatever becomes of the one leaves the other alone."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from edge_agent.config import Config, load
from edge_agent.errors import ConfigError
from edge_agent.settings.web import WebConfig
from edge_agent.web import server
from edge_agent.web.history import Charts
from edge_agent.web.locks import Locks
from edge_agent.web.passwords import write_password
from edge_agent.web.server import Server, check_certificate, serving
from tests.broker import DEADLINE_S, free_port, wait_until
from tests.certificates import make_authority, make_certificate
from tests.web.doors import PASSWORD, opened, settings


class Site:
    """As much of an agent as an open door needs."""

    device = "press7"
    config = Config()

    def __init__(self) -> None:
        self.watched: list[Any] = []

    def watch(self, changed: Any) -> None:
        self.watched.append(changed)

    def reports(self, since_at: float) -> Any:
        return iter(())


def made_server(port: int, site: Any, told: list[tuple[str, str]], **web: Any) -> Server:
    config = WebConfig(enabled=True, port=port, **web)
    return Server(config, site, Locks(config, None), Charts(), lambda kind, text: told.append((kind, text)))


def answers(port: int, scheme: str = "http", **options: Any) -> bool:
    try:
        return httpx.get(f"{scheme}://127.0.0.1:{port}/v1/session", timeout=DEADLINE_S, **options).status_code == 200
    except httpx.TransportError:
        return False


def test_door_opens_again_after_its_loop_has_died(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "AGAIN_MIN_S", 0.05)
    died = threading.Event()
    real = server.make_app

    def dies_once(door: Any) -> Any:
        if not died.is_set():
            died.set()
            raise RuntimeError("something nobody foresaw")
        return real(door)

    monkeypatch.setattr(server, "make_app", dies_once)
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    port, told, site = free_port(), [], Site()
    door = made_server(port, site, told)
    door.start()
    try:
        wait_until(lambda: answers(port), "the door is open again")
        assert [kind for kind, _ in told] == ["door"]
        assert "is not served" in told[0][1]
        assert None in site.watched  # the agent told nobody meanwhile
    finally:
        door.stop()
    assert not answers(port)


def test_port_that_is_taken_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "AGAIN_MIN_S", 0.05)
    monkeypatch.setattr(server, "AGAIN_MAX_S", 0.1)
    port, told = free_port(), []
    with socket.create_server(("127.0.0.1", port)):
        door = made_server(port, Site(), told)
        door.start()
        wait_until(lambda: bool(told), "it is said")
    try:
        wait_until(lambda: answers(port), "the door is open")
    finally:
        door.stop()


def test_door_that_is_looked_through_closes_in_time() -> None:
    port = free_port()
    door = made_server(port, Site(), [])
    door.start()
    wait_until(lambda: answers(port), "the door is open")
    with socket.create_connection(("127.0.0.1", port)) as idle:
        idle.sendall(b"GET /v1/session HTTP/1.1\r\nHost: localhost\r\n")  # and no end of it
        began = time.monotonic()
        door.stop()
        assert time.monotonic() - began < server.STOP_S + 5
    assert not door._thread.is_alive()


def test_agent_whose_port_is_taken_reads_all_the_same(tmp_path: Path) -> None:
    port = free_port()
    config = settings(tmp_path, port, cameras={}, transport="jsonl")
    with socket.create_server(("127.0.0.1", port)), (tmp_path / "log").open("wb") as log:
        command = [sys.executable, "-m", "edge_agent", "run", "--config", str(config)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            wait_until(lambda: '"pipeline":"running"' in process.stdout.readline(), "it runs", 60)
            said = "cannot be listened on: Address already in use"
            wait_until(lambda: said in (tmp_path / "log").read_text(), "why nobody is let in")
        finally:
            process.terminate()
            assert process.wait(DEADLINE_S) == 0


@pytest.mark.parametrize(
    ("web", "message"),
    [
        ({"host": "0.0.0.0"}, "web.password_file: is missing; with host 0.0.0.0 other machines can ask"),
        (
            {"host": "0.0.0.0"},
            "web.cert_file: is missing; with host 0.0.0.0 passwords would cross the network readable",
        ),
        ({"host": "192.0.2.1", "allow_insecure": True}, "web.password_file: is missing"),
        ({"host": "::", "password_file": "p"}, "web.cert_file: is missing"),
        ({"host": "press7", "token_file": "t"}, "web.cert_file: is missing"),
        ({"cert_file": "c"}, "web.key_file: is missing; cert_file and key_file go together"),
    ],
)
def test_door_to_other_machines_is_not_opened_by_oversight(tmp_path: Path, web: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(settings(tmp_path, 8480, web=web), {})
    assert message in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_door_to_this_device_alone_needs_nothing(tmp_path: Path, host: str) -> None:
    assert load(settings(tmp_path, 8480, web={"host": host}), {}).web.loopback


def test_insecure_door_is_opened_where_that_is_said_aloud(tmp_path: Path) -> None:
    web = {"host": "0.0.0.0", "password_file": "p", "allow_insecure": True}
    assert not load(settings(tmp_path, 8480, web=web), {}).web.loopback


def test_agent_with_an_unusable_password_file_ends_with_78_and_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("correct horse")
    (tmp_path / "p").chmod(0o644)
    config = settings(tmp_path, free_port(), web={"password_file": "p"})
    command = [sys.executable, "-m", "edge_agent", "run", "--config", str(config)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 78
    assert ended.stderr.splitlines()[-1].endswith(f"run: chmod 600 {tmp_path / 'p'}")
    assert "horse" not in ended.stderr


def test_missing_library_is_named_with_its_cure(tmp_path: Path) -> None:
    program = "import sys; sys.modules['starlette'] = None; from edge_agent.__main__ import main; sys.exit(main())"
    config = settings(tmp_path, free_port())
    command = [sys.executable, "-c", program, "run", "--config", str(config)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 78
    assert "needs the Python package starlette: pip install 'edge-agent[web]'" in ended.stderr
    without = "import sys; sys.modules['starlette'] = sys.modules['uvicorn'] = None; import edge_agent.agent"
    assert subprocess.run([sys.executable, "-c", without], timeout=60, check=False).returncode == 0


def test_page_is_served_by_tls(tmp_path: Path) -> None:
    authority = make_authority(tmp_path)
    pair = make_certificate(tmp_path, "press7", authority, "IP:127.0.0.1")
    port = free_port()
    write_password(tmp_path / "p", PASSWORD)
    config = WebConfig(
        enabled=True, host="0.0.0.0", port=port, password_file=tmp_path / "p", cert_file=pair.cert, key_file=pair.key
    )
    site: Any = Site()
    with serving(config, site, Charts(), tmp_path / "sessions", lambda kind, text: None):
        trusted = ssl.create_default_context(cafile=str(authority.cert))
        wait_until(lambda: answers(port, "https", verify=trusted), "the door is open")
        with httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=trusted) as client:
            answer = client.post("/v1/login", json={"password": PASSWORD})
            assert "Secure" in answer.headers["set-cookie"]
            assert answer.headers["strict-transport-security"].startswith("max-age=")
            assert client.get("/v1/session").json()["authenticated"]
        assert not answers(port)


def test_certificate_and_key_that_do_not_belong_together_are_named(tmp_path: Path) -> None:
    first = make_authority(tmp_path)
    second = make_certificate(tmp_path, "press7", first, "IP:127.0.0.1")
    with pytest.raises(ConfigError, match="cannot be used together: KEY_VALUES_MISMATCH"):
        check_certificate(WebConfig(cert_file=first.cert, key_file=second.key))


def test_door_is_open_while_start_up_goes_on(tmp_path: Path) -> None:
    mark = tmp_path / "warming-up"
    with opened(tmp_path, ready=False, module=["tests.blocked", "warm-up", str(mark)]) as door:
        wait_until(mark.exists, "the warm-up")
        assert door.http.get("/v1/ready").json() == {"ready": False, "reason": "starting"}
        assert door.get("/v1/cameras")["cameras"][0]["state"] == "starting"
        assert door.http.post("/v1/read", content=b"\x89PNG", headers={"Content-Type": "image/png"}).status_code == 503
        assert door.http.patch("/v1/config", json={}).status_code == 503
        mark.with_suffix(".go").touch()
