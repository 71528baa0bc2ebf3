"""Live: all that is new, on one connection for a whole page, for browsers have few to one host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True)
class State:
    """A state as it is: the kind of its event, what tells it from others of the kind, what it says, and the part of
    that whose change is news: a time that passes is none."""

    kind: str
    name: str
    payload: bytes
    telling: bytes


async def pieces(call: Call, with_readings: bool) -> AsyncIterator[bytes]:
    """The newest of each state, then whatever is new; a viewer that is slow misses readings, and gets the newest."""
    clock = asyncio.get_running_loop().time
    rings = [("item", call.site.items), ("event", call.site.events)]
    rings += [("reading", call.site.readings)] if with_readings else []
    numbers = {kind: ring.last for kind, ring in rings}
    said: dict[tuple[str, str], bytes] = {}
    looked_s, spoke_s = -TURN_S, clock()
    yield b"retry: 2000\n\n"
    while True:
        out: list[bytes] = []
        for kind, ring in rings:
            entries, numbers[kind] = newest_after(ring, numbers[kind])
            out += [event(kind, entry.payload) for entry in entries]
        if clock() - looked_s >= TURN_S:
            looked_s = clock()
            out += changed(said, await states(call))
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


async def states(call: Call) -> list[State]:
    """Every state as it is."""
    health = health_of(call.site)
    found = [State("health", "", json_bytes(health), json_bytes({**health, "uptime_s": None}))]
    telemetry = call.site.telemetry()
    if telemetry is not None:
        found.append(State("telemetry", "", telemetry, telemetry))
    for row in camera_rows(call.site):
        payload = row.model_dump_json().encode()
        found.append(State("camera", row.name, payload, payload))
    calibration = json_bytes(await call.door.aside(call.site.calibration))
    found.append(State("calibration", "", calibration, calibration))
    reported = reported_now(call.site)
    if reported is not None:
        trial = reported["trial"]
        counting = None if trial is None else trial["remaining_s"] is not None
        found.append(State("config", "", json_bytes(reported), json_bytes({**reported, "trial": counting})))
    return found


def changed(said: dict[tuple[str, str], bytes], states: Iterable[State]) -> Iterator[bytes]:
    """The events of those states that differ from what was said, which is brought up to date."""
    for state in states:
        if said.get((state.kind, state.name)) != state.telling:
            said[state.kind, state.name] = state.telling
            yield event(state.kind, state.payload)


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
