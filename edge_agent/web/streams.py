"""Streams: answers without an end, to viewers of whom any may stall: each is sent the newest, when it can take it.

What waits for a viewer is one picture or a few messages, in its connection's buffer; one that takes nothing for
SEND_TIMEOUT_S is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from edge_agent.web.endpoint import Call, Door, Endpoint, Query
from edge_agent.web.ring import Ring
from edge_agent.web.site import Refused

SEND_TIMEOUT_S = 20.0
LOOK_UP_S = 5.0  # so often a viewer is looked after where nothing comes: has the session ended?
COMMENT_EVERY = 3  # of those turns one says so, so that what lies between does not think it dead
AT_ONCE = 20  # messages sent in one piece
STEPS_PX = (320, 480, 640, 960, 1280, 1920, 4096)
BOUNDARY = "edge-agent-frame"
MULTIPART = f"multipart/x-mixed-replace; boundary={BOUNDARY}"
EVENT_STREAM = "text/event-stream"
MAX_LIVE_SHARE = 0.5  # of web.max_clients: the rest is for short questions


class Live:
    """An answer whose pieces come one by one, for as long as the viewer takes them and is still known."""

    def __init__(self, call: Call, media_type: str, pieces: AsyncIterator[bytes]) -> None:
        """Refused with 503 where too many have one already."""
        if call.door.live >= max(2, int(call.door.settings.max_clients * MAX_LIVE_SHARE)):
            raise Refused(503, "too_many_viewers", "too many look already (web.max_clients)", {"Retry-After": "10"})
        self._door: Door = call.door
        self._known: Callable[[], bool] = lambda: call.door.locks.still_known(call.visitor)
        self._pieces = pieces
        self._start: Message = {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", media_type.encode()), (b"x-accel-buffering", b"no")],
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._door.live += 1
        tasks = [asyncio.ensure_future(self._send_all(send)), asyncio.ensure_future(_gone(receive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._door.live -= 1
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send_all(self, send: Send) -> None:
        await send(self._start)
        async for piece in self._pieces:
            if not self._known():
                break
            if piece:
                body = {"type": "http.response.body", "body": piece, "more_body": True}
                await asyncio.wait_for(send(body), SEND_TIMEOUT_S)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def frames(call: Call, camera: str, max_side_px: int) -> AsyncIterator[bytes]:
    """The camera's newest frame again and again, as parts of a multipart body; at most web.stream_fps a second."""
    every_s = 1.0 / call.door.settings.stream_fps
    clock = asyncio.get_running_loop().time
    shown, due_s = None, 0.0
    while True:
        frame = call.site.newest(camera)
        if frame is None or (frame.seq, frame.captured_at) == shown:
            await call.door.bell.wait(LOOK_UP_S)
            yield b""
            continue
        if clock() < due_s:
            await asyncio.sleep(due_s - clock())
            continue  # there may be a newer one
        due_s = clock() + every_s
        shown = (frame.seq, frame.captured_at)
        jpeg = await call.door.pictures.jpeg(frame, max_side_px)
        head = (
            f"--{BOUNDARY}\r\nContent-Type: image/jpeg\r\nContent-Length: {len(jpeg)}\r\n"
            f"X-Frame-Seq: {frame.seq}\r\nX-Frame-Size: {frame.width_px}x{frame.height_px}\r\n\r\n"
        )
        yield b"".join((head.encode("ascii"), jpeg, b"\r\n"))


async def events(call: Call, ring: Ring, kind: str, camera: str | None) -> AsyncIterator[bytes]:
    """What comes into the ring, as server-sent events of that kind; one that a viewer was too slow for is left out, and
    counted in an event `missed`. Last-Event-ID says where to go on."""
    number = _last_event_id(call, ring)
    yield b"retry: 2000\n\n"
    idle = 0
    while True:
        entries, number, missed = ring.after(number, camera, AT_ONCE)
        if missed:
            yield event("missed", b'{"missed":%d}' % missed)
        if entries:
            idle = 0
            yield b"".join(b"id: %d\n" % entry.number + event(kind, entry.payload) for entry in entries)
        if not entries and not await call.door.bell.wait(LOOK_UP_S):
            idle += 1
            yield b": nothing new\n\n" if idle % COMMENT_EVERY == 0 else b""


def event(kind: str, payload: bytes) -> bytes:
    """A server-sent event; the payload is on one line."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), payload)


def _last_event_id(call: Call, ring: Ring) -> int:
    text = call.request.headers.get("last-event-id", "")
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 16 else ring.last
    return min(number, ring.last)


async def stream(call: Call) -> Live:
    """The pictures of a camera."""
    most_px = call.door.settings.stream_max_side_px
    wanted_px = call.query["max_side_px"]
    return Live(call, MULTIPART, frames(call, call.camera(), min(most_px, _step(wanted_px or most_px))))


def _step(side_px: int) -> int:
    """One of a few sizes, so that viewers of about the same size share their pictures."""
    return next((step for step in STEPS_PX if step >= side_px), STEPS_PX[-1])


async def picture(call: Call) -> Response:
    """The newest frame of a camera, once."""
    camera = call.camera()
    frame = call.site.newest(camera)
    if frame is None:
        raise Refused(404, "no_frame", f"camera {camera} has given no frame yet")
    jpeg = await call.door.pictures.jpeg(frame, call.query["max_side_px"])
    headers = {"X-Frame-Seq": str(frame.seq), "X-Frame-Size": f"{frame.width_px}x{frame.height_px}"}
    return Response(jpeg, 200, headers, "image/jpeg")


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/cameras/{camera}/frame.jpg",
        picture,
        "The newest frame that was read",
        {200: "image/jpeg"},
        query=(Query("max_side_px", "integer", "Longer side at most, px.", 1280, 16, 4096),),
        refusals=(404,),
    ),
    Endpoint(
        "GET",
        "/v1/cameras/{camera}/stream",
        stream,
        "Frames as they are read, each a JPEG with X-Frame-Seq and X-Frame-Size; the newest wins",
        {200: MULTIPART},
        query=(
            Query("max_side_px", "integer", "Longer side at most, px; web.stream_max_side_px at most.", None, 16, 4096),
        ),
        refusals=(404, 503),
    ),
)
