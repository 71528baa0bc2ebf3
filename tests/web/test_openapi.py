"""OpenAPI: the document is what the door does, and whatever is sent to it, nothing breaks."""

from __future__ import annotations

import ctypes
import json
import random
import string
from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from edge_agent.__main__ import main
from edge_agent.web.app import ENDPOINTS
from edge_agent.web.openapi import document, text
from tests.conftest import ROOT
from tests.web.doors import Door

WITHOUT_END = ("/v1/live", "/v1/cameras/{camera}/stream")
SLOW = ("/v1/doctor", "/v1/support-bundle")
EXAMPLES = 6

SCHEMA = schemathesis.openapi.from_dict(document(ENDPOINTS))
OPERATIONS = {
    each.ok().label: each.ok()
    for each in SCHEMA.get_all_operations()
    if each.ok().path not in (*WITHOUT_END, *SLOW)
}  # fmt: skip


def test_saved_document_is_that_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    saved = (ROOT / "docs" / "openapi.json").read_text(encoding="utf-8")
    assert saved == text(document(ENDPOINTS)), "write it anew: edge-agent web openapi > docs/openapi.json"
    assert main(["web", "openapi"]) == 0
    assert capsys.readouterr().out == saved


def test_served_document_is_the_same(door: Door) -> None:
    assert door.get("/v1/openapi.json") == document(ENDPOINTS)


def test_every_endpoint_is_described() -> None:
    described = document(ENDPOINTS)["paths"]
    for endpoint in ENDPOINTS:
        operation = described[endpoint.path][endpoint.method.lower()]
        assert operation["summary"]
        assert {"403", "421"} <= set(operation["responses"])
        assert ("401" in operation["responses"]) is (not endpoint.free or endpoint.path == "/v1/login")


@pytest.fixture
def whole_floats() -> None:
    """ONNX Runtime has the thread that loads a model flush the smallest floats to zero, and tests before this one do;
    hypothesis draws none then."""
    default_environment = ctypes.c_void_p(-1)  # FE_DFL_ENV of <fenv.h>, on x86-64 and 64-bit ARM alike
    assert ctypes.CDLL("libm.so.6").fesetenv(default_environment) == 0


@pytest.mark.usefixtures("whole_floats")
@pytest.mark.parametrize("label", OPERATIONS)
def test_whatever_is_sent_is_answered_as_described(door: Door, label: str) -> None:
    operation = OPERATIONS[label]
    base_url = str(door.http.base_url)

    @hypothesis.given(case=operation.as_strategy())
    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    def answers(case: Any) -> None:
        response = case.call(base_url=base_url)
        assert response.status_code < 500 or response.status_code == 503, response.text
        case.validate_response(
            response, checks=[status_code_conformance, content_type_conformance, response_schema_conformance]
        )

    answers()


def test_bytes_that_are_no_request_break_nothing(door: Door) -> None:
    chance = random.Random(7)
    starts = [
        b"GET / HTTP/1.1\r\n",
        b"POST /v1/read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n",
        b"\x16\x03\x01",
        b"",
    ]
    for n in range(40):
        junk = bytes(chance.randrange(256) for _ in range(chance.randrange(300)))
        with door.raw() as connection:
            connection.sendall(starts[n % len(starts)] + junk)
    for path in ("/v1/" + "a" * 20_000, "/v1/%ff%fe", "/v1/\ud800".encode("utf-8", "surrogatepass").decode("latin-1")):
        with door.raw() as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode("latin-1"))
            assert connection.recv(100).split(b" ")[1:2] in ([b"400"], [b"404"], [b"414"], [b"431"], [])
    assert door.get("/v1/ready")["ready"] is True
    assert "Traceback" not in door.log()


def test_odd_settings_and_commands_are_refused_not_broken(door: Door) -> None:
    chance = random.Random(11)
    values: list[Any] = [None, True, 0, -1, 1e308, "", "x" * 70_000, [], {}, "\ud800", "\x00", [[[[]]]]]
    keys = ["cameras", "left", "rois", "pipeline", "min_confidence", "log", "__class__", "", "\n", *string.punctuation]
    for _ in range(40):
        patch: Any = chance.choice(values)
        for _ in range(chance.randrange(1, 5)):
            patch = {chance.choice(keys): patch}
        body = json.dumps(patch)
        for method, path in (("PATCH", "/v1/config"), ("POST", "/v1/rehearsal"), ("POST", "/v1/commands/log-level")):
            sent = body if path != "/v1/commands/log-level" else json.dumps({"args": patch})
            headers = {"Content-Type": "application/json"}
            answer = door.http.request(method, path, content=sent.encode(), headers=headers)
            assert answer.status_code in (202, 409, 413, 422, 429), (path, body[:100], answer.text)
    assert door.get("/v1/ready")["ready"] is True
    assert "Traceback" not in door.log()
