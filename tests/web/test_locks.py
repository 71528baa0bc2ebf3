"""Locks: who may ask (field cases SEC-1 and SEC-4)."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from starlette.datastructures import Headers

from edge_agent.settings.web import WebConfig
from edge_agent.web.app import ENDPOINTS
from edge_agent.web.locks import (
    COOKIE,
    FREE_FAILURES,
    LONGEST_WAIT_S,
    MOST_ADDRESSES,
    MOST_SESSIONS,
    SESSION_S,
    Failures,
    Locks,
    Sessions,
    csrf_of,
    is_own_host,
    own_names,
)
from edge_agent.web.passwords import write_password
from edge_agent.web.site import Refused
from tests.web.doors import PASSWORD, Door

SECRETS = ("S3cret!pw", "S3cret%21pw", "S3cr#t@pw", "S3cr%23t%40pw", PASSWORD)


def path_of(template: str) -> str:
    return re.sub(r"\{camera\}", "left", re.sub(r"\{(name|id|model)\}", "ping", template))


def asked(client: httpx.Client, method: str, path: str) -> httpx.Response:
    with client.stream(method, path, json={} if method != "GET" else None) as answer:
        if (
            "x-mixed-replace" not in answer.headers["content-type"]
            and "event-stream" not in answer.headers["content-type"]
        ):
            answer.read()
        return answer


@pytest.fixture
def stranger(locked: Door) -> httpx.Client:
    """Without session or token."""
    return locked.client()


def logged_in(locked: Door) -> httpx.Client:
    client = locked.client()
    assert client.post("/v1/login", json={"password": PASSWORD}).status_code == 200
    return client


# ---- SEC-4: nothing without a login --------------------------------------------------------------------------------


def test_nothing_is_listened_on_but_the_door(door: Door) -> None:
    listening = [
        (each.laddr.ip, each.laddr.port)
        for each in psutil.Process(door.process.pid).net_connections("all")
        if each.status == "LISTEN"
    ]
    assert listening == [("127.0.0.1", door.port)]


def test_no_picture_setting_or_figure_is_shown_without_a_login(stranger: httpx.Client) -> None:
    free = {"/v1/ready", "/v1/session", "/v1/login"}
    for endpoint in ENDPOINTS:
        answer = asked(stranger, endpoint.method, path_of(endpoint.path))
        if endpoint.path in free:
            assert answer.status_code in (200, 422), endpoint.path
        else:
            assert answer.status_code == 401, endpoint.path
            assert answer.json()["error"]["code"] == "login_needed"
    session = stranger.get("/v1/session").json()
    assert (session["authenticated"], session["password_needed"], session["csrf"]) == (False, True, "")
    assert (session["device"], session["version"]) == (None, None)


def test_no_debug_page_stands_behind_a_wrong_path(locked: Door) -> None:
    for path in ("/docs", "/redoc", "/openapi.json", "/debug", "/console", "/page/nothing.js"):
        answer = locked.http.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    "path", ["/page/../app.py", "/page/%2e%2e/app.py", "/page//etc/passwd", "/page/..%2fapp.py", "/%00"]
)
def test_no_file_but_the_pages_is_served(locked: Door, path: str) -> None:
    with locked.raw() as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        said = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert said.split(b" ")[1] in (b"400", b"404")
    assert b"import" not in said
    assert b"root:" not in said


# ---- SEC-1: no secret in any answer --------------------------------------------------------------------------------


def test_no_answer_holds_a_secret(locked: Door) -> None:
    said = {}
    for endpoint in ENDPOINTS:
        if endpoint.method == "GET" and "doctor" not in endpoint.path and "bundle" not in endpoint.path:
            answer = asked(locked.http, "GET", path_of(endpoint.path))
            said[endpoint.path] = "" if not hasattr(answer, "_content") else answer.text
    wrong = {
        "cameras": {"hidden": {"source": "rtsps://admin:S3cret%21pw@127.0.0.1:1/live"}},
        "mqtt": {"password": "S3cr#t@pw"},
    }
    said["patch"] = locked.http.patch("/v1/config", json=wrong).text
    said["log"] = locked.log()
    assert '"source":"rtsp://admin:***@127.0.0.1:1/live"' in said["/v1/config"]
    for where, text in said.items():
        for secret in SECRETS:
            assert secret not in text, where


# ---- the password ---------------------------------------------------------------------------------------------------


def test_login_gives_a_cookie_that_scripts_and_other_sites_do_not_get(locked: Door) -> None:
    client = locked.client()
    answer = client.post("/v1/login", json={"password": PASSWORD})
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert PASSWORD not in answer.text + cookie
    session = client.get("/v1/session").json()
    assert (session["authenticated"], session["device"]) == (True, "press7")
    assert client.get("/v1/cameras/left/frame.jpg").headers["content-type"] == "image/jpeg"


def test_change_needs_the_csrf_token_of_the_session(locked: Door) -> None:
    client = logged_in(locked)
    assert client.post("/v1/commands/ping", json={}).json()["error"]["code"] == "csrf"
    wrong = {"X-CSRF": csrf_of("another session")}
    assert client.post("/v1/commands/ping", json={}, headers=wrong).status_code == 403
    right = {"X-CSRF": client.get("/v1/session").json()["csrf"]}
    assert client.post("/v1/commands/ping", json={}, headers=right).status_code == 202


def test_logout_ends_the_session_for_whoever_has_the_cookie(locked: Door) -> None:
    client = logged_in(locked)
    cookies = dict(client.cookies)
    csrf = client.get("/v1/session").json()["csrf"]
    assert client.post("/v1/logout", headers={"X-CSRF": csrf}).status_code == 200
    assert locked.client(cookies=cookies).get("/v1/config").status_code == 401


def test_token_opens_without_csrf_and_a_wrong_one_does_not(locked: Door) -> None:
    assert locked.http.post("/v1/commands/ping", json={}).status_code == 202
    for value in ("Bearer x", "Bearer x y", "Basic eDp5", "bearer"):
        assert locked.client(headers={"Authorization": value}).get("/v1/config").status_code == 401


def test_wrong_passwords_lock_their_address_out_and_no_other_way_in(locked: Door) -> None:
    client = locked.client(transport=httpx.HTTPTransport(local_address="127.0.0.9"))
    codes = [client.post("/v1/login", json={"password": f"guess {n}"}).status_code for n in range(FREE_FAILURES + 1)]
    assert codes == [401] * FREE_FAILURES + [429]
    answer = client.post("/v1/login", json={"password": PASSWORD})  # the right one is not looked at either
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 6
    assert logged_in(locked).get("/v1/session").json()["authenticated"]
    assert "guess" not in locked.log()
    assert "127.0.0.9" in locked.log()


@pytest.mark.parametrize(
    "body",
    ["", "{}", '{"password": 5}', '{"password": "x", "y": 1}', "[]", '{"password": "' + "x" * 2000 + '"}', "\x00"],
)
def test_login_of_another_shape_is_refused_without_repeating_it(locked: Door, body: str) -> None:
    client = locked.client(transport=httpx.HTTPTransport(local_address="127.0.0.8"))
    answer = client.post("/v1/login", content=body.encode(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert "xxxx" not in answer.text
    assert client.post("/v1/login", data={"password": PASSWORD}).status_code == 415  # a form of another site


# ---- hosts and origins ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:8480", 200),
        ("localhost:1", 200),
        ("[::1]:8480", 200),
        ("press7.plant.example", 200),
        ("PRESS7.plant.example.:443", 200),
        ("192.0.2.7", 200),
        ("rebound.attacker.example", 421),
        ("rebound.attacker.example:8480", 421),
        ("localhost.attacker.example", 421),
        ("127.0.0.1.attacker.example", 421),
        ("", 421),
    ],
)
def test_name_that_is_not_this_devices_is_refused(locked: Door, host: str, status: int) -> None:
    assert locked.http.get("/v1/session", headers={"Host": host}).status_code == status


def test_request_without_a_host_is_refused(locked: Door) -> None:
    with locked.raw() as connection:
        connection.sendall(b"GET /v1/session HTTP/1.0\r\n\r\n")
        assert b" 421 " in connection.recv(100)


def test_loopback_door_is_asked_for_by_loopback_names_alone() -> None:
    names = own_names(WebConfig())
    assert is_own_host("127.0.0.1:8480", names, loopback=True)
    assert is_own_host("localhost", names, loopback=True)
    assert not is_own_host("192.0.2.7", names, loopback=True)
    assert not is_own_host(socket.gethostname() + ".evil", names, loopback=True)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://attacker.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
def test_page_of_another_site_gets_and_does_nothing(door: Door, headers: dict[str, str]) -> None:
    for answer in (
        door.http.get("/v1/cameras/left/frame.jpg", headers=headers),
        door.http.post("/v1/commands/restart", json={}, headers=headers),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "other_site")


def test_link_from_another_site_may_lead_here(door: Door) -> None:
    navigated = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert door.http.get("/", headers=navigated).status_code == 200


def test_browser_on_this_device_needs_the_csrf_token_though_no_password_is_set(door: Door) -> None:
    own = {"Origin": f"http://127.0.0.1:{door.port}"}
    assert door.http.post("/v1/commands/ping", json={}, headers=own).json()["error"]["code"] == "csrf"
    csrf = door.get("/v1/session")["csrf"]
    assert door.http.post("/v1/commands/ping", json={}, headers={**own, "X-CSRF": csrf}).status_code == 202
    assert door.http.post("/v1/commands/ping", json={}).status_code == 202  # no browser: curl on the device


# ---- headers --------------------------------------------------------------------------------------------------------


def test_every_answer_protects_whoever_looks(door: Door) -> None:
    answers = [door.http.get(path) for path in ("/", "/v1/session", "/v1/nothing", "/v1/cameras/left/frame.jpg")]
    answers.append(door.http.get("/v1/session", headers={"Host": "attacker.example"}))
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers
    assert all(answer.headers["cache-control"] == "no-store" for answer in answers[1:])


# ---- what they are made of -----------------------------------------------------------------------------------------


def test_failures_wait_twice_as_long_each_time_and_are_bounded() -> None:
    now = [0.0]
    failures = Failures(lambda: now[0])
    waits = []
    for _ in range(FREE_FAILURES + 12):
        waits.append(failures.wait_s("192.0.2.1"))
        now[0] += waits[-1]
        failures.note("192.0.2.1")
    assert waits[: FREE_FAILURES + 4] == [0.0] * FREE_FAILURES + [5.0, 10.0, 20.0, 40.0]
    assert max(waits) == LONGEST_WAIT_S
    assert failures.wait_s("192.0.2.2") == 0.0
    now[0] += 10_000
    failures.note("192.0.2.1")
    assert failures.wait_s("192.0.2.1") == 0.0
    for n in range(2 * MOST_ADDRESSES):
        failures.note(f"host{n}")
    assert len(failures._failed) == MOST_ADDRESSES


def test_wrong_passwords_that_come_at_once_are_not_looked_at_for_nothing(tmp_path: Path) -> None:
    write_password(tmp_path / "p", PASSWORD)
    locks = Locks(WebConfig(password_file=tmp_path / "p"), None)

    async def looked_at(guesses: int) -> int:
        """How many of some that come at once."""
        found = await asyncio.gather(
            *(locks.fits("192.0.2.7", "wrong") for _ in range(guesses)), return_exceptions=True
        )
        return found.count(False)

    assert asyncio.run(looked_at(4)) == 4
    assert asyncio.run(looked_at(4)) == 1  # the fifth wrong one
    assert asyncio.run(looked_at(4)) == 0
    assert asyncio.run(locks.fits("192.0.2.8", PASSWORD))


def test_addresses_of_one_ipv6_network_are_one() -> None:
    failures = Failures(lambda: 0.0)
    for n in range(FREE_FAILURES):
        failures.note(f"2001:db8:1:2::{n}")
    assert failures.wait_s("2001:db8:1:2:ffff::1") > 0
    assert failures.wait_s("2001:db8:1:3::1") == 0


def test_sessions_outlast_a_restart_and_not_another_password(tmp_path: Path) -> None:
    now = [1000.0]
    path = tmp_path / "sessions.json"
    session = Sessions(path, "hash a", lambda: now[0]).begin()
    assert path.stat().st_mode & 0o777 == 0o600
    assert session not in path.read_text()
    assert Sessions(path, "hash a", lambda: now[0]).holds(session)
    assert not Sessions(path, "hash b", lambda: now[0]).holds(session)
    now[0] += SESSION_S
    assert not Sessions(path, "hash a", lambda: now[0]).holds(session)
    path.write_text("{")
    assert not Sessions(path, "hash a", lambda: 1000.0).holds(session)


def test_csrf_token_of_a_page_without_a_password_outlasts_a_restart(tmp_path: Path) -> None:
    def token(path: Path) -> str:
        return Locks(WebConfig(), path).visitor("GET", Headers({"host": "localhost"}), {}).csrf

    assert token(tmp_path / "sessions.json") == token(tmp_path / "sessions.json")
    assert token(tmp_path / "sessions.json") != token(tmp_path / "others.json")


def test_sessions_are_bounded() -> None:
    sessions = Sessions(None, "", lambda: 0.0)
    first = sessions.begin()
    for _ in range(MOST_SESSIONS):
        last = sessions.begin()
    assert not sessions.holds(first)
    assert sessions.holds(last)


def test_cookie_travels_by_tls_alone_where_the_door_has_it(tmp_path: Path) -> None:
    write_password(tmp_path / "p", PASSWORD)
    files: dict[str, Any] = {"cert_file": tmp_path / "c", "key_file": tmp_path / "k"}
    assert Locks(WebConfig(password_file=tmp_path / "p", **files), None).secure
    assert not Locks(WebConfig(), None).secure


def test_visitor_without_a_password_set_is_known() -> None:
    locks = Locks(WebConfig(), None)
    assert locks.visitor("GET", Headers({"host": "localhost"}), {}).known
    with pytest.raises(Refused) as refused:
        locks.visitor("GET", Headers({"host": "evil.example"}), {})
    assert refused.value.status == 421
    assert json.dumps(refused.value.text)
