"""Table: the same content on a terminal and in a log, and no text that commands a terminal."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from edge_agent.demo.table import FpsMeter, JsonLines, LiveTable, PlainTable, open_table, row


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def field(name: str, value: str, *flags: str, confidence: float = 0.9) -> dict[str, Any]:
    return {"name": name, "value": value, "text": "as seen", "confidence": confidence, "flags": list(flags)}


def reading(**changes: Any) -> dict[str, Any]:
    line = {"text": "LOT A7K2093", "confidence": 0.99}
    fields = [
        field("lot", "A7K2093"),
        field("expiry_date", "2027-08-31"),
        field("serial_number", "48213-0917"),
        field("product_name", "Saline Solution 0.9 %"),
        field("weight_volume", "500 g"),
    ]
    return {"camera": "line1", "seq": 37, "lines": [line, line], "fields": fields, "reason": None} | changes


WORDS = ("line1", "37", "2", "A7K2093", "2027-08-31", "48213-0917", "Saline Solution", "0.99", "7.3")


def test_a_log_gets_one_line_with_everything(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    with open_table("title", out) as table:
        table.note("a note")
        table.add(reading(), 7.34)
    assert isinstance(table, PlainTable)
    (line,) = out.getvalue().splitlines()
    assert all(word in line for word in (*WORDS, "500 g"))
    assert capsys.readouterr().err == "a note\n", "notes do not stand among the readings"


@pytest.mark.parametrize("width", [80, 100, 140])
def test_a_terminal_gets_a_table_with_the_same(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "40")
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with open_table("the title", out) as table:
        table.add(reading(), 7.34)
        table.note("a note")
    assert isinstance(table, LiveTable)
    shown = out.getvalue()
    for word in ("line1", "37", "0.99", "7.3", "the title", "a note", "2027-08-31", "A7K2093"):
        assert word in shown, word
    if width == 140:
        assert all(word in shown for word in (*WORDS, "500 g"))


def test_a_terminal_shows_the_newest_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("LINES", "24")
    out = Terminal()
    with LiveTable("title", out) as table:
        for seq in range(1000, 1100):
            table.add(reading(seq=seq), 7.0)
    last = out.getvalue().rpartition("title")[2]
    assert "1099" in last
    assert "1088" in last
    assert "1080" not in last
    assert "100 readings" in out.getvalue()


def test_json_lines_are_the_messages() -> None:
    out = io.StringIO()
    with open_table("title", out, as_json=True) as table:
        table.add(reading(), 7.34)
        table.add(reading(seq=38), None)
    assert isinstance(table, JsonLines)
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [reading(), reading(seq=38)]


def test_without_fields_the_texts_are_shown_and_without_texts_the_reason() -> None:
    out = io.StringIO()
    with open_table("title", out) as table:
        table.add(reading(fields=[]), None)
        table.add(reading(fields=[], lines=[], reason="no_text"), None)
    first, second = out.getvalue().splitlines()
    assert "LOT A7K2093 | LOT A7K2093" in first
    assert second.endswith("0 lines  confidence -  fps -  no_text")


def test_a_field_found_twice_shows_each_value_once() -> None:
    twice = [field("lot", "A"), field("lot", "B"), field("lot", "A")]
    assert row(reading(fields=twice), None).fields == {"lot": "A / B"}


def test_a_cut_field_gives_way_to_a_whole_one() -> None:
    assert row(reading(fields=[field("lot", "A"), field("lot", "BC", "cut")]), None).fields == {"lot": "A"}
    assert row(reading(fields=[field("lot", "BC", "cut")]), None).fields == {"lot": "? BC"}


def test_of_product_names_the_surest_is_shown() -> None:
    names = [field("product_name", "Maker", confidence=0.5), field("product_name", "Coffee", confidence=0.9)]
    assert row(reading(fields=names), None).headline == "Coffee"


def test_a_field_without_a_value_shows_the_text_in_doubt() -> None:
    assert row(reading(fields=[field("expiry_date", "")]), None).fields == {"expiry_date": "? as seen"}


@pytest.mark.parametrize("flag", ["cut", "ambiguous", "repaired", "a flag of tomorrow"])
def test_a_value_in_doubt_is_shown_so(flag: str) -> None:
    assert row(reading(fields=[field("expiry_date", "2027-04-03", flag)]), None).fields == {
        "expiry_date": "? 2027-04-03"
    }


def test_a_flag_that_only_informs_is_no_doubt() -> None:
    informed = [field("expiry_date", "2027-08-31", "month_precision", "from_gs1")]
    assert row(reading(fields=informed), None).fields == {"expiry_date": "2027-08-31"}


def test_a_narrow_terminal_keeps_the_doubt_of_a_long_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "40")
    out = Terminal()
    with LiveTable("title", out) as table:
        table.add(reading(fields=[field("lot", "L" * 60, "cut")]), 1.0)
    assert "? LLLL" in out.getvalue()


@pytest.mark.parametrize("make", [PlainTable, lambda out: LiveTable("title", out)])
def test_text_cannot_command_the_terminal(make: Any) -> None:
    evil = "\x1b[2J\x07[red]LOT[/red]\r\n\u202e\ud83d"
    fields = [field("lot", evil)]
    out = io.StringIO()
    with make(out) as table:
        table.add(reading(fields=fields, lines=[{"text": evil, "confidence": 1.0}]), 1.0)
    out.getvalue().encode("utf-8")
    assert not set("\x07\u202e\r") & set(out.getvalue())
    assert "\x1b[2J" not in out.getvalue()


def test_fps_is_taken_for_each_camera_over_its_last_readings() -> None:
    meter = FpsMeter()
    assert meter.tick("a", 10.0) is None
    assert meter.tick("a", 10.0) is None, "no interval, no rate"
    assert meter.tick("b", 10.2) is None
    assert meter.tick("a", 10.5) == pytest.approx(4.0)
    for n in range(100):
        rate = meter.tick("a", 20 + n / 10)
    assert rate == pytest.approx(10.0), "what was long ago does not count"
