"""Readings over HTTP: page by page, as they come, as a table."""

from __future__ import annotations

import csv
import io
import json

import pytest

from edge_agent.web.readings import COLUMNS, ITEM_COLUMNS, harmless, table
from tests.broker import wait_until
from tests.contract import check
from tests.web.doors import Door, heard


def test_readings_come_in_pages_that_do_not_overlap(door: Door) -> None:
    wait_until(lambda: len(door.get("/v1/readings", limit=500)["readings"]) >= 7, "seven readings", 60)
    first = door.get("/v1/readings", limit=3)
    second = door.get("/v1/readings", limit=3, before=first["next"], camera="left")
    seqs = [reading["seq"] for page in (first, second) for reading in page["readings"]]
    assert seqs == sorted(seqs, reverse=True)
    assert len(set(seqs)) == 6
    for reading in first["readings"]:
        check("left/result", json.dumps(reading).encode())


def test_readings_are_found_by_what_they_say(door: Door) -> None:
    lot = next(
        field["value"]
        for reading in door.get("/v1/readings", limit=50)["readings"]
        for field in reading["fields"]
        if field["name"] == "lot"
    )
    found = door.get("/v1/readings", query=lot.lower())["readings"]
    assert found
    assert all(lot in json.dumps(reading) for reading in found)
    assert door.get("/v1/readings", query="nobody says this")["readings"] == []
    rows = list(csv.DictReader(io.StringIO(door.http.get("/v1/readings.csv", params={"query": lot}).text)))
    assert rows
    assert all(row["lot"] == lot for row in rows)


def test_readings_come_as_events_with_a_place_to_go_on_from(door: Door) -> None:
    path = "/v1/readings?camera=left"
    events = heard(door, path, lambda found: len(found) == 3)
    assert [kind for kind, _ in events] == ["reading"] * 3
    with door.http.stream("GET", path, headers={"Accept": "text/event-stream"}) as answer:
        number = next(line for line in answer.iter_lines() if line.startswith("id: ")).removeprefix("id: ")
    again = heard(door, path, lambda found: len(found) == 1, **{"Last-Event-ID": str(int(number) - 1)})
    assert again[0][1]["camera"] == "left"


def test_one_connection_tells_all_that_is_new(door: Door) -> None:
    kinds = {"health", "telemetry", "camera", "reading"}
    events = heard(door, "/v1/live", lambda found: kinds <= {kind for kind, _ in found})
    (health,) = [said for kind, said in events if kind == "health"]
    assert health["pipeline"] == "running"
    without = heard(door, "/v1/live?readings=0", lambda found: sum(kind == "telemetry" for kind, _ in found) == 4)
    assert "reading" not in {kind for kind, _ in without}


def test_unknown_camera_and_wrong_parameters_are_refused_by_name(door: Door) -> None:
    assert door.http.get("/v1/readings", params={"camera": "right"}).status_code == 404
    for name, value in (("limit", "0"), ("limit", "x"), ("limit", "9" * 30), ("before", "-1"), ("query", "x" * 201)):
        answer = door.http.get("/v1/readings", params={name: value})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_query")
        assert answer.json()["error"]["text"].startswith(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "\t'=1"),
        ("\r=1", "\r'=1"),
        ("\n =1", "\n '=1"),
        ("＝1+1", "'＝1+1"),
        ("LOT 7;=1+1", "LOT 7;'=1+1"),
        ('LOT 7; "=1+1', "LOT 7; \"'=1+1"),
        ("LOT 7\t@SUM(A1)", "LOT 7\t'@SUM(A1)"),
        ("12-5+3=10; a@b", "12-5+3=10; a@b"),
    ],
)
def test_no_cell_is_a_formula_wherever_cells_are_cut(text: str, shown: str) -> None:
    assert harmless(text) == shown
    reading = {"id": "x", "lines": [{"text": text}], "fields": [{"name": "lot", "value": text}], "reason": text}
    content = io.StringIO(table([json.dumps(reading).encode()], COLUMNS), newline="")
    row = next(csv.DictReader(content))
    assert (row["text"], row["lot"], row["reason"]) == (shown, shown, shown)


def test_no_name_of_a_field_is_a_formula() -> None:
    reading = {"id": "x", "lines": [], "fields": [{"name": "-A1", "value": "1"}]}
    assert table([json.dumps(reading).encode()], COLUMNS).splitlines()[0].endswith(",'-A1")


def test_table_quotes_what_would_break_it() -> None:
    body = {"id": "i", "camera": "left", "n_reads": 3, "lines": [{"text": 'a,"b"\nc'}], "reasons": [{"rule": "lot"}]}
    row = next(csv.DictReader(io.StringIO(table([json.dumps(body).encode()], ITEM_COLUMNS))))
    assert (row["text"], row["reasons"], row["n_reads"]) == ('a,"b"\nc', "lot", "3")
