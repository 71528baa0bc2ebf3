"""Readings and items: what was published lately: page by page, as it comes, or as a table for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from starlette.responses import Response

from edge_agent.schema.payloads import Result
from edge_agent.web.endpoint import Call, Endpoint, Query, Said, answered
from edge_agent.web.ring import Entry, Ring
from edge_agent.web.site import Refused
from edge_agent.web.streams import EVENT_STREAM, Live, events

CSV = "text/csv"
JPEG = "image/jpeg"
MOST_ROWS = 2000
# where a formula may begin, wide signs too: a spreadsheet of a language that writes 1,5 cuts cells at ; as well
FORMULA = re.compile(r"(?:^|[;\t\r\n])[\s\"]{0,8}(?=[=+\-@＝＋－＠])")
COLUMNS = ("id", "camera", "seq", "captured_at", "verdict", "reason", "text")
ITEM_COLUMNS = ("id", "camera", "region", "first_seen_at", "last_seen_at", "n_reads", "verdict", "text", "reasons")


class Readings(Said):
    """Some readings, newest first."""

    readings: list[Result]
    """As they were published: the `result` of docs/mqtt.md."""
    next: int | None
    """What to ask for as `before` to get older ones; null where there are none."""


class Items(Said):
    """Some items, newest first."""

    items: list[dict[str, Any]]
    """As they were published: the `item` of docs/mqtt.md."""
    next: int | None
    """What to ask for as `before` to get older ones; null where there are none."""


def page(name: str, entries: Iterable[Entry], following: int | None) -> bytes:
    """The payloads as they are, within one JSON object."""
    listed = b",".join(entry.payload for entry in entries)
    return b'{"%s":[%s],"next":%s}' % (name.encode(), listed, json.dumps(following).encode())


async def _answer(call: Call, ring: Ring, name: str, kind: str) -> Any:
    camera = call.query["camera"]
    if camera is not None:
        call.known_camera(camera)
    if EVENT_STREAM in call.request.headers.get("accept", ""):
        return Live(call, EVENT_STREAM, events(call, ring, kind, camera))
    wanted = saying(call.query["query"])
    entries, following = await call.door.aside(ring.before, call.query["before"], camera, call.query["limit"], wanted)
    return answered(page(name, entries, following))


async def readings(call: Call) -> Any:
    """Readings, a page or as they come."""
    return await _answer(call, call.site.readings, "readings", "reading")


async def items(call: Call) -> Any:
    """Items, a page or as they come."""
    return await _answer(call, call.site.items, "items", "item")


async def evidence(call: Call) -> Response:
    """What an item looked like."""
    content = await call.door.aside(call.site.evidence, call.path["id"])
    if content is None:
        raise Refused(404, "no_evidence", "there is no picture of this item, or not any more")
    return Response(content, 200, media_type=JPEG)


async def readings_table(call: Call) -> Response:
    """Readings as CSV, oldest first."""
    return await _table(call, call.site.readings, COLUMNS, "readings.csv")


async def items_table(call: Call) -> Response:
    """Items as CSV, oldest first."""
    return await _table(call, call.site.items, ITEM_COLUMNS, "items.csv")


async def _table(call: Call, ring: Ring, columns: Sequence[str], name: str) -> Response:
    camera, wanted = call.query["camera"], saying(call.query["query"])

    def made() -> str:
        entries, _ = ring.before(None, camera, MOST_ROWS, wanted)
        return table((entry.payload for entry in reversed(entries)), columns)

    text = await call.door.aside(made)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text.encode(), 200, headers, f"{CSV}; charset=utf-8")


def saying(query: str | None) -> Callable[[Entry], bool]:
    """Whether a reading or item says something: in its text, or as the value of a field; whatever the case."""
    if not query:
        return lambda entry: True
    sought = query.casefold()

    def says(entry: Entry) -> bool:
        body = json.loads(entry.payload)
        texts = [line["text"] for line in body.get("lines", ())]
        texts += [str(field[key]) for field in body.get("fields", ()) for key in ("value", "text")]
        return any(sought in text.casefold() for text in texts)

    return says


def table(payloads: Iterable[bytes], columns: Sequence[str]) -> str:
    """CSV (RFC 4180) with a column for each name of a field behind `columns`; no cell is a formula."""
    bodies = [json.loads(payload) for payload in payloads]
    names = sorted({field["name"] for body in bodies for field in body.get("fields", ())})
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([*columns, *map(harmless, names)])
    for body in bodies:
        fields: dict[str, str] = {}
        for field in body.get("fields", ()):
            fields[field["name"]] = " | ".join(filter(None, [fields.get(field["name"], ""), str(field["value"])]))
        writer.writerow(
            [*(harmless(cell(body, column)) for column in columns), *(harmless(fields.get(n, "")) for n in names)]
        )
    return out.getvalue()


def cell(body: Mapping[str, Any], column: str) -> str:
    """What stands in a column of a reading or an item."""
    if column == "text":
        return " / ".join(str(line.get("text", "")) for line in body.get("lines", ()))
    if column == "reasons":
        return "; ".join(str(reason.get("rule", "")) for reason in body.get("reasons", ()))
    value = body.get(column)
    return "" if value is None else str(value)


def harmless(text: str) -> str:
    """Text that a spreadsheet shows and does not run: a label can say anything, `=HYPERLINK(...)` too."""
    return FORMULA.sub(r"\g<0>'", text)


CAMERA = Query("camera", "string", "Of this camera alone.")
QUERY = Query("query", "string", "Those alone that say this, in a line or as the value of a field.", None, 0, 200)
PAGE = (
    CAMERA,
    QUERY,
    Query("before", "integer", "Those before this one: `next` of the page before.", None, 0, 9_007_199_254_740_991),
    Query("limit", "integer", "So many at most.", 50, 1, 500),
)

ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/readings",
        readings,
        "What was read, newest first; with Accept: text/event-stream as it comes (event `reading`)",
        {200: Readings},
        query=PAGE,
        also=EVENT_STREAM,
        refusals=(404, 503),
    ),
    Endpoint(
        "GET",
        "/v1/items",
        items,
        "Items, newest first; with Accept: text/event-stream as they are decided (event `item`)",
        {200: Items},
        query=PAGE,
        also=EVENT_STREAM,
        refusals=(404, 503),
    ),
    Endpoint("GET", "/v1/items/{id}/evidence.jpg", evidence, "What an item looked like", {200: JPEG}, refusals=(404,)),
    Endpoint("GET", "/v1/readings.csv", readings_table, "What was read, as a table", {200: CSV}, query=(CAMERA, QUERY)),
    Endpoint("GET", "/v1/items.csv", items_table, "Items, as a table", {200: CSV}, query=(CAMERA, QUERY)),
)
