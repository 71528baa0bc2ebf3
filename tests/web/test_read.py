"""POST /v1/read: pictures that programs hand in (field case OCR-10)."""

from __future__ import annotations

import json
import struct
import threading
import zlib
from pathlib import Path

import httpx
import pytest

from edge_agent.web.read import boundary_of, form_files, picture_in
from edge_agent.web.site import Refused
from tests.broker import wait_until
from tests.contract import check
from tests.web.doors import Door


@pytest.fixture
def label(door: Door) -> bytes:
    return (door.folder / "labels" / "0.png").read_bytes()


def png(width_px: int, height_px: int) -> bytes:
    """A black PNG of 1 bit a pixel, small whatever its size."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = zlib.compress(b"\0" * ((width_px + 7) // 8 + 1) * height_px, 9)
    head = struct.pack(">IIBBBBB", width_px, height_px, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def refused(answer: httpx.Response, status: int, code: str) -> str:
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    return str(answer.json()["error"]["text"])


def test_picture_is_read_like_a_frame(door: Door, label: bytes) -> None:
    answer = door.http.post("/v1/read", content=label, headers={"Content-Type": "image/png"})
    assert answer.status_code == 200
    check("left/result", answer.content)
    reading = answer.json()
    assert (reading["camera"], reading["frame"]["width_px"]) == ("upload", 640)
    published = next(each for each in door.get("/v1/readings", limit=20)["readings"] if each["seq"] % 2 == 0)
    assert {field["name"] for field in reading["fields"]} == {field["name"] for field in published["fields"]}


def test_picture_may_come_in_a_form_and_be_read_as_a_cameras(door: Door, label: bytes) -> None:
    files = {"note": ("n.txt", b"x", "text/plain"), "image": ("label.png", label, "image/png")}
    answer = door.http.post("/v1/read", params={"camera": "left"}, files=files)
    assert (answer.status_code, answer.json()["camera"]) == (200, "left")
    assert any(field["name"] == "lot" for field in answer.json()["fields"])
    refused(door.http.post("/v1/read", params={"camera": "right"}, files=files), 404, "no_camera")


def test_what_is_handed_in_is_neither_published_nor_counted(door: Door, label: bytes) -> None:
    door.http.post("/v1/read", content=label, headers={"Content-Type": "image/png"})
    readings = door.get("/v1/readings", limit=500)["readings"]
    assert {reading["camera"] for reading in readings} == {"left"}
    assert set(door.get("/v1/telemetry")["frames"]) == {"left"}


def test_huge_picture_is_refused_by_its_header(door: Door) -> None:
    huge = png(40_000, 40_000)
    assert len(huge) < 400_000
    answer = door.http.post("/v1/read", content=huge, headers={"Content-Type": "image/png"})
    assert "40000x40000" in refused(answer, 413, "too_many_pixels")
    refused(door.http.post("/v1/read", files={"image": ("h.png", huge, "image/png")}), 413, "too_many_pixels")


def test_body_that_is_too_long_is_refused_before_it_has_come(door: Door) -> None:
    with door.raw() as connection:
        connection.sendall(
            b"POST /v1/read HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/png\r\nContent-Length: 99999999\r\n\r\n"
        )
        assert b" 413 " in connection.recv(100)

    def endless() -> object:
        while True:
            yield b"x" * 1_000_000

    try:
        answer = door.http.post("/v1/read", content=endless(), headers={"Content-Type": "image/png"})  # type: ignore[arg-type]
    except httpx.TransportError:
        return  # it hung up within the body, as it may
    refused(answer, 413, "too_large")


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b"not an image", "image/png", 415, "no_image"),
        (b"x", "text/plain", 415, "no_image"),
        (b"x", "", 415, "no_image"),
        (b"", "image/png", 422, "empty"),
        (png(64, 64)[:-20], "image/png", 422, "unreadable"),
        (b"x", "multipart/form-data", 422, "no_boundary"),
        (b"x", "multipart/form-data; boundary=b", 422, "no_form"),
        (
            b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\ny\r\n--b--\r\n',
            "multipart/form-data; boundary=b",
            422,
            "no_part",
        ),
        (b"--b\r\n\r\n--b--", 'multipart/form-data; boundary="' + "b" * 100 + '"', 422, "no_boundary"),
    ],
)
def test_what_is_no_picture_is_refused_with_its_reason(
    door: Door, content: bytes, kind: str, status: int, code: str
) -> None:
    refused(door.http.post("/v1/read", content=content, headers={"Content-Type": kind}), status, code)


def test_more_than_may_wait_is_told_when_to_come_again_and_cameras_are_read_on(door: Door, label: bytes) -> None:
    codes: list[int] = []
    waits: list[str] = []
    before = door.readings()

    def hand_in() -> None:
        with door.client() as client:
            for _ in range(2):
                answer = client.post("/v1/read", content=label, headers={"Content-Type": "image/png"})
                codes.append(answer.status_code)
                waits.extend([answer.headers["retry-after"]] if answer.status_code == 429 else [])

    threads = [threading.Thread(target=hand_in) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(codes) == {200, 429}
    assert all(int(wait) >= 1 for wait in waits)
    wait_until(lambda: door.readings() > before, "frames of the camera meanwhile")


def test_whoever_leaves_before_the_answer_leaves_nothing_behind(door: Door, label: bytes) -> None:
    head = (
        f"POST /v1/read HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/png\r\nContent-Length: {len(label)}\r\n\r\n"
    )
    for _ in range(3):  # more than may wait
        with door.raw() as connection:
            connection.sendall(head.encode() + label)

    def taken() -> bool:
        return door.http.post("/v1/read", content=label, headers={"Content-Type": "image/png"}).status_code == 200

    wait_until(taken, "room for another", 60)


def test_form_is_cut_at_its_boundary_alone() -> None:
    content = b"\r\n--not the boundary\r\n\r\n--b" + bytes(range(256))
    body = (
        b"preamble\r\n--bound\r\nContent-Disposition: form-data; name=other; filename=o\r\n\r\no\r\n"
        b'--bound\r\nContent-Disposition: form-data; name="image"; filename="i"\r\n\r\n'
        + content
        + b"\r\n--bound--\r\n"
    )
    assert form_files(b"bound", body) == [("image", content), ("other", b"o")]
    assert picture_in("multipart/form-data; boundary=bound", body) == content
    assert boundary_of('multipart/form-data; boundary="a b"') == b"a b"
    with pytest.raises(Refused):
        form_files(b"bound", b"--bound\r\n\r\n" * 50)


def test_reading_holds_the_contract_even_of_an_empty_picture(door: Door, tmp_path: Path) -> None:
    answer = door.http.post("/v1/read", content=png(64, 64), headers={"Content-Type": "application/octet-stream"})
    assert answer.status_code == 200
    assert json.loads(answer.content)["reason"] == "no_text"
