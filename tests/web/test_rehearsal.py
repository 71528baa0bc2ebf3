"""Rehearsal: what frames that were read would have said with other regions and expectations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edge_agent.records import Code, Field, Quad, Reading, TextBox, TextLine
from edge_agent.settings.expected import Rule
from edge_agent.settings.roi import RoiConfig
from edge_agent.verify.expectation import Expectation
from edge_agent.web.rehearsal import counted, must_be_read_again, placed
from tests.broker import wait_until
from tests.web.doors import Door


def quad(x: float, y: float) -> Quad:
    return Quad(np.array([[x, y], [x + 10, y], [x + 10, y + 4], [x, y + 4]], np.float32))


def reading() -> Reading:
    """LOT A7 on the left, EXP 2027 on the right of a picture of 100x100, a code below."""
    lines = tuple(TextLine(text, 0.9, TextBox(quad(x, 20), 0.9)) for text, x in (("LOT A7", 10), ("EXP 2027", 70)))
    code = Code("EAN13", "9521234567011", quad(10, 80))
    fields = (
        Field("lot", "A7", "A7", 0.9, (0,)),
        Field("expiry_date", "2027", "2027", 0.9, (1,)),
        Field("barcode_digits", "9521234567011", "9521234567011", 1.0, (), source="barcode", codes=(0,)),
    )
    return Reading("left", 7, 1_796_000_000.0, 100, 100, lines=lines, fields=fields, codes=(code,))


def test_lines_fields_and_codes_are_told_apart_by_where_they_stand() -> None:
    made = placed(reading(), {"right": RoiConfig(x=0.5, width=0.5), "below": RoiConfig(y=0.7, height=0.3)})
    assert [(line.text, line.region) for line in made.lines] == [("EXP 2027", "right")]
    assert [(code.text, code.region) for code in made.codes] == [("9521234567011", "below")]
    assert [(field.name, field.lines, field.codes) for field in made.fields] == [
        ("expiry_date", (0,), ()),
        ("barcode_digits", (), (0,)),
    ]


def test_without_regions_all_stays() -> None:
    assert len(placed(reading(), {}).fields) == 3


@pytest.mark.parametrize(
    ("before", "after", "again"),
    [
        ({}, {"a": {"x": 0.5, "width": 0.5}}, False),
        ({}, {"a": {"angle_deg": 90.0}}, True),
        ({}, {"a": {"dot_matrix": True}}, True),
        ({"a": {"angle_deg": 90.0}}, {"a": {"angle_deg": 90.0, "x": 0.2, "width": 0.5}}, False),
        ({"a": {"contrast": "off"}}, {"a": {}}, True),
    ],
)
def test_pictures_are_read_again_only_where_what_was_read_cannot_tell(
    before: dict[str, Any], after: dict[str, Any], again: bool
) -> None:
    made = [{name: RoiConfig(**values) for name, values in each.items()} for each in (before, after)]
    assert must_be_read_again(*made) is again


def test_verdicts_are_counted_and_shown_newest_first() -> None:
    expectation = Expectation("rehearsal", (Rule(field="lot", text="A7"),))
    without = placed(reading(), {"right": RoiConfig(x=0.5, width=0.5)})
    counts = counted([reading(), without], expectation, reread=False)
    assert (counts.frames, counts.pass_, counts.fail + counts.no_read) == (2, 1, 1)
    assert counts.examples[0].verdict == "PASS"
    assert counts.examples[0].text == "LOT A7 / EXP 2027"
    assert counted([reading()], Expectation("rehearsal"), reread=False).examples[0].verdict is None


def test_page_sees_what_would_become_of_the_frames_read_last(door: Door) -> None:
    def lots() -> list[str]:
        fields = [field for each in door.get("/v1/readings", limit=50)["readings"] for field in each["fields"]]
        return [field["value"] for field in fields if field["name"] == "lot"]

    def rehearse(**wish: Any) -> dict[str, Any]:
        answer = door.http.post("/v1/rehearsal", json={"camera": "left", **wish})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    wait_until(lambda: bool(lots()), "a lot", 60)
    expected = [{"field": "lot", "one_of": [lots()[0], "another"]}]
    wait_until(lambda: rehearse(expected=expected)["pass"] > 0, "frames that pass", 60)
    counts = rehearse(expected=expected)
    assert counts["frames"] == counts["pass"] + counts["fail"] + counts["no_read"]
    assert rehearse(expected=[{"field": "lot", "text": "nobody's"}])["pass"] == 0
    nowhere = {"corner": {"x": 0.99, "y": 0.99, "width": 0.01, "height": 0.01}}
    assert rehearse(expected=expected, rois=nowhere)["pass"] == 0
    turned = rehearse(expected=expected, rois={"all": {"angle_deg": 0}})
    assert turned["reread"]
    assert turned["frames"] >= 1
    assert door.get("/v1/config")["cameras"]["left"]["expected"] == []  # nothing was saved


def test_rehearsal_of_what_could_not_be_saved_is_refused(door: Door) -> None:
    for wish in (
        {"camera": "left", "expected": [{"field": "lot", "pattern": "/(/"}]},
        {"camera": "left", "rois": {"a": {"x": 2}}},
        {"camera": "left", "rois": {"../a": {}}},
        {"rois": {}},
    ):
        answer = door.http.post("/v1/rehearsal", json=wish)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_body"), wish
    assert door.http.post("/v1/rehearsal", json={"camera": "right"}).status_code == 404
