"""Streams: pictures for many viewers, of whom any may stall."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import cv2
import httpx
import numpy as np
import pytest

from edge_agent.records import Frame
from edge_agent.web import streams
from edge_agent.web.bell import Bell
from edge_agent.web.pictures import Pictures, encoded
from edge_agent.web.site import Refused
from tests.broker import DEADLINE_S, wait_until
from tests.web.doors import Door


def made_frame(seq: int, width_px: int = 64, height_px: int = 32) -> Frame:
    image = np.full((height_px, width_px, 3), seq % 256, np.uint8)
    return Frame("left", seq, 1000.0 + seq, 1.0 + seq, image)


def parts(door: Door, count: int, path: str = "/v1/cameras/left/stream") -> list[tuple[dict[str, str], bytes]]:
    found: list[tuple[dict[str, str], bytes]] = []
    rest = b""
    with door.client() as client, client.stream("GET", path) as answer:
        assert answer.headers["content-type"].startswith("multipart/x-mixed-replace; boundary=")
        for piece in answer.iter_bytes():
            rest += piece
            while b"\r\n\r\n" in rest:
                head, _, body = rest.partition(b"\r\n\r\n")
                lines = [line.split(": ", 1) for line in head.decode().splitlines() if ": " in line]
                headers = {name.lower(): value for name, value in lines}
                length = int(headers["content-length"])
                if len(body) < length + 2:
                    break
                found.append((headers, body[:length]))
                rest = body[length + 2 :]
            if len(found) >= count:
                return found
    return found


def test_newest_frame_is_shown_in_the_size_that_is_asked_for(door: Door) -> None:
    wait_until(lambda: door.readings() > 0, "a frame was read", 60)
    answer = door.http.get("/v1/cameras/left/frame.jpg", params={"max_side_px": 200})
    assert answer.headers["content-type"] == "image/jpeg"
    picture = cv2.imdecode(np.frombuffer(answer.content, np.uint8), cv2.IMREAD_COLOR)
    assert max(picture.shape[:2]) == 200
    assert answer.headers["x-frame-size"].startswith("640x")
    assert door.http.get("/v1/cameras/right/frame.jpg").status_code == 404


def test_stream_goes_on_with_newer_frames_each_with_its_number(door: Door) -> None:
    found = parts(door, 3, "/v1/cameras/left/stream?max_side_px=300")
    seqs = [int(headers["x-frame-seq"]) for headers, _ in found]
    assert seqs == sorted(set(seqs))
    for headers, jpeg in found:
        assert headers["x-frame-size"].startswith("640x")
        assert max(cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR).shape[:2]) == 320


def test_viewers_that_stall_cost_the_others_and_the_reading_nothing(door: Door) -> None:
    stalled = [door.raw() for _ in range(5)]
    for n, connection in enumerate(stalled):
        path = ("/v1/cameras/left/stream", "/v1/live", "/v1/readings")[n % 3]
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode())
    before = door.readings()
    assert len(parts(door, 3)) == 3
    wait_until(lambda: door.readings() >= before + 4, "frames read meanwhile", 60)
    for connection in stalled:
        connection.close()


def test_more_viewers_than_there_may_be_are_turned_away(door: Door) -> None:
    watching: list[httpx.Response] = []
    client = door.client(limits=httpx.Limits(max_connections=60))
    try:
        for _ in range(40):
            answer = client.send(client.build_request("GET", "/v1/live"), stream=True)
            watching.append(answer)
            if answer.status_code == 503:
                break
        answer.read()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "too_many_viewers")
        assert door.get("/v1/ready")["ready"] is True
    finally:
        for answer in watching:
            answer.close()
        client.close()
    wait_until(lambda: door.http.get("/v1/cameras/left/frame.jpg").status_code == 200, "others again")


# ---- one answer by itself -------------------------------------------------------------------------------------------


def made_call(known: Callable[[], bool] = lambda: True) -> Any:
    locks = SimpleNamespace(still_known=lambda visitor: known())
    door = SimpleNamespace(live=0, locks=locks, settings=SimpleNamespace(max_clients=8))
    return SimpleNamespace(door=door, visitor=None)


async def never() -> Any:
    await asyncio.Event().wait()


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b"x"


def test_viewer_that_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SEND_TIMEOUT_S", 0.05)
    call = made_call()

    async def stuck(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    asyncio.run(asyncio.wait_for(streams.Live(call, "text/plain", endless())({}, never, stuck), 5))
    assert call.door.live == 0


def test_viewer_that_has_logged_out_is_shown_no_more() -> None:
    sent: list[bytes] = []

    async def take(message: Any) -> None:
        sent.append(message.get("body", b""))
        await asyncio.sleep(0)

    call = made_call(known=lambda: len(sent) < 4)
    asyncio.run(asyncio.wait_for(streams.Live(call, "text/plain", endless())({}, never, take), 5))
    assert sent.count(b"x") == 3


def test_picture_is_made_once_for_all_who_look(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr("edge_agent.web.pictures.encoded", lambda frame, side: made.append(frame.seq) or b"jpeg")
    from concurrent.futures import ThreadPoolExecutor

    async def look() -> None:
        with ThreadPoolExecutor(2) as slow:
            pictures = Pictures(slow)
            for seq in (1, 2):
                await asyncio.gather(*(pictures.jpeg(made_frame(seq), 960) for _ in range(20)))

    asyncio.run(look())
    assert made == [1, 2]


def test_frame_is_made_smaller_and_never_larger() -> None:
    def size(max_side_px: int) -> tuple[int, ...]:
        content = np.frombuffer(encoded(made_frame(1, 640, 320), max_side_px), np.uint8)
        return tuple(cv2.imdecode(content, cv2.IMREAD_COLOR).shape[:2])

    assert (size(320), size(4096)) == ((160, 320), (320, 640))


def test_bell_wakes_whoever_waits_from_any_thread_and_survives_its_loop() -> None:
    bells: list[Bell] = []

    async def listen() -> bool:
        bell = Bell()
        bells.append(bell)
        threading.Timer(0.05, bell.ring).start()
        return await bell.wait(DEADLINE_S)

    assert asyncio.run(listen())
    bells[0]._waiting = 1
    bells[0].ring()  # the loop has ended: nobody hears, nothing is raised

    async def in_vain() -> float:
        began = time.monotonic()
        assert not await Bell().wait(0.05)
        return time.monotonic() - began

    assert asyncio.run(in_vain()) >= 0.04


def test_refusal_is_raised_before_a_stream_begins() -> None:
    call = made_call()
    call.door.live = 4
    with pytest.raises(Refused) as refused:
        streams.Live(call, "text/plain", endless())
    assert refused.value.status == 503
