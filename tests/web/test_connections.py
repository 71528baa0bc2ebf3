"""Whoever only connects, drips, or takes nothing keeps no place: seen at a real door, with shorter times."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from edge_agent.web import connections, endpoint, server
from edge_agent.web.connections import Listener
from tests.broker import DEADLINE_S, free_port, wait_until
from tests.web.test_server import Site, answers, made_server

MOST = 8  # web.max_clients
ALL = MOST + server.TOLD_SO


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of an open door whose patience is short."""
    monkeypatch.setattr(connections, "HEAD_S", 0.4)
    monkeypatch.setattr(connections, "TAKEN_S", 0.4)
    port = free_port()
    door = made_server(port, Site(), [], max_clients=MOST)
    door.start()
    try:
        wait_until(lambda: answers(port), "the door is open")
        yield port
    finally:
        door.stop()


def connected(port: int, said: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
    connection.sendall(said)
    return connection


def ended(connection: socket.socket) -> bool:
    """Whether the door has ended it; what it said before is thrown away."""
    try:
        while connection.recv(65_536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET /v1/ready HTTP/1.1\r\nHost: local",
        b"GET /v1/session HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v1/ready HT",
    ],
    ids=["silent", "within the head", "within the second head"],
)
def test_connection_without_a_whole_request_is_ended(port: int, said: bytes) -> None:
    with connected(port, said) as connection:
        assert ended(connection)


def test_body_that_nobody_wants_is_not_taken_drop_by_drop(port: int) -> None:
    head = b"POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n"
    with connected(port, head) as connection:
        assert connection.recv(20).startswith(b"HTTP/1.1 404")

        def cut_off() -> bool:
            try:
                connection.sendall(b"1")
            except (ConnectionResetError, BrokenPipeError):
                return True
            return False

        wait_until(cut_off, "it is cut off")


def test_silent_connections_keep_nobody_out_for_long_and_are_bounded(port: int) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(port)) for _ in range(3 * ALL)]
        wait_until(lambda: answers(port), "others are answered again")
        assert all(ended(connection) for connection in silent)


def test_more_than_may_connect_are_told_so_in_json_and_let_go(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 30)
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(port)) for _ in range(MOST)]
        answer = httpx.get(f"http://127.0.0.1:{port}/v1/ready", timeout=DEADLINE_S)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "too_many_clients")
        assert answer.headers["connection"] == "close"
        assert answer.headers["x-frame-options"] == "DENY"
        silent.pop().close()
        wait_until(lambda: answers(port), "there is room")


def test_request_that_comes_in_pieces_is_answered(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 30)
    with connected(port) as connection:
        for piece in (b"GET /v1/session HTTP/1.1\r\n", b"Host: localhost\r\n", b"Connection: close\r\n\r\n"):
            connection.sendall(piece)
            time.sleep(0.02)
        assert connection.recv(20).startswith(b"HTTP/1.1 200")


def test_what_strangers_send_fills_no_log(port: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    for said in (b"\x16\x03\x01 hello\r\n\r\n", b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"):
        with connected(port, said) as connection:
            assert connection.recv(20).startswith(b"HTTP/1.1 4")
    assert caplog.messages == []


def test_answers_that_nobody_takes_are_given_up(port: int) -> None:
    wanted = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(port) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(0.1)

        def cut_off() -> bool:
            try:
                connection.sendall(wanted * 20)
            except TimeoutError:  # the door reads no further question meanwhile
                return False
            except (ConnectionResetError, BrokenPipeError):
                return True
            return False

        wait_until(cut_off, "it is cut off")


def test_body_that_drips_is_given_up(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "BODY_TIMEOUT_S", 0.4)

    def drops() -> Iterator[bytes]:
        for _ in range(100):
            yield b" "
            time.sleep(0.1)  # each well within the time from piece to piece

    answer = httpx.post(
        f"http://127.0.0.1:{port}/v1/login",
        content=drops(),
        headers={"Content-Type": "application/json"},
        timeout=DEADLINE_S,
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (408, "too_slow")


# ---- the listening socket by itself ---------------------------------------------------------------------------------


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener(socket.create_server(("127.0.0.1", 0)), 4) as listener:
        yield listener


def test_place_of_a_connection_that_has_ended_is_free(listener: Listener) -> None:
    with ExitStack() as stack:
        places = []
        for _ in range(4):
            stack.enter_context(connected(listener.getsockname()[1]))
            places.append(listener.accept()[0])
        refused = stack.enter_context(connected(listener.getsockname()[1]))
        with pytest.raises(ConnectionAbortedError, match="4 connections are open"):
            listener.accept()
        assert ended(refused)
        places.pop().close()
        stack.enter_context(connected(listener.getsockname()[1]))
        places.append(listener.accept()[0])
        for place in places:
            place.close()


def test_one_address_has_no_more_than_its_share(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "is_loopback", lambda address: False)
    with ExitStack() as stack:
        places: list[Any] = []
        for _ in range(2):
            stack.enter_context(connected(listener.getsockname()[1]))
            places.append(listener.accept()[0])
        stack.enter_context(connected(listener.getsockname()[1]))
        with pytest.raises(ConnectionAbortedError, match="2 of them from 127.0.0.1"):
            listener.accept()
        other = stack.enter_context(socket.socket())
        other.bind(("127.0.0.2", 0))
        other.connect(listener.getsockname())
        places.append(listener.accept()[0])
        for place in places:
            place.close()
