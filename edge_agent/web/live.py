"""Live: all that is new, on one connection for a whole page, for browsers have few to one host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from edge_agent.records import json_bytes
from edge_agent.web.config import reported_now
from edge_agent.web.endpoint import Call, Endpoint, Query
from edge_agent.web.ring import Entry, Ring
from edge_agent.web.status import camera_rows, health_of
from edge_agent.web.streams import EVENT_STREAM, Live, event

TURN_S = 1.0  # states are looked at so often
LEAST_S = 0.1  # from one look to the next, however fast frames come
AT_ONCE = 20  # of one kind; of more the newest go out
PING_S = 10.0


async def pieces(call: Call, with_readings: bool) -> AsyncIterator[bytes]:
    """The newest of each state, then whatever is new; a viewer that is slow misses readings, and gets the newest."""
    clock = asyncio.get_running_loop().time
    rings = [("item", call.site.items), ("event", call.site.events)]
    rings += [("reading", call.site.readings)] if with_readings else []
    numbers = {kind: ring.last for kind, ring in rings}
    said: dict[str, bytes] = {}
    looked_s, spoke_s = -TURN_S, clock()
    yield b"retry: 2000\n\n"
    while True:
        out: list[bytes] = []
        for kind, ring in rings:
            entries, numbers[kind] = newest_after(ring, numbers[kind])
            out += [event(kind, entry.payload) for entry in entries]
        if clock() - looked_s >= TURN_S:
            looked_s = clock()
            out += changed(said, states(call))
        if clock() - spoke_s >= PING_S and not out:
            out.append(b": ping\n\n")
        if out:
            spoke_s = clock()
        yield b"".join(out)
        await asyncio.sleep(LEAST_S)
        await call.door.bell.wait(TURN_S)


def newest_after(ring: Ring, number: int) -> tuple[list[Entry], int]:
    """What came after `number`, of much the newest, and the number to go on from."""
    entries, following, _ = ring.after(number, None, 1_000_000)
    return entries[-AT_ONCE:], following


def states(call: Call) -> Iterator[tuple[str, str, bytes, bytes]]:
    """Every state as it is: an event's kind, what tells it from others of its kind, what it says, and the part of that
    whose change is news: a time that passes is none."""
    health = health_of(call.site)
    yield "health", "", json_bytes(health), json_bytes({**health, "uptime_s": None})
    telemetry = call.site.telemetry()
    if telemetry is not None:
        yield "telemetry", "", telemetry, telemetry
    for row in camera_rows(call.site):
        payload = row.model_dump_json().encode()
        yield "camera", row.name, payload, payload
    reported = reported_now(call.site)
    if reported is not None:
        trial = reported["trial"]
        counting = None if trial is None else trial["remaining_s"] is not None
        yield "config", "", json_bytes(reported), json_bytes({**reported, "trial": counting})


def changed(said: dict[str, bytes], states: Iterator[tuple[str, str, bytes, bytes]]) -> Iterator[bytes]:
    """The events of those states that differ from what was said, which is brought up to date."""
    for kind, name, payload, telling in states:
        key = f"{kind} {name}"
        if said.get(key) != telling:
            said[key] = telling
            yield event(kind, payload)


async def live(call: Call) -> Live:
    """All that is new."""
    return Live(call, EVENT_STREAM, pieces(call, with_readings=bool(call.query["readings"])))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/live",
        live,
        "All that is new, as server-sent events: health, telemetry, camera, config, calibration when they change; "
        "reading, item, event as they come",
        {200: EVENT_STREAM},
        query=(Query("readings", "integer", "0: without readings.", 1, 0, 1),),
        refusals=(503,),
    ),
)
