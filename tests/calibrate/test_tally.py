from __future__ import annotations

import cv2
import pytest

from edge_agent.calibrate.recipe import Gates
from edge_agent.calibrate.tally import MOST_CHANGED, BoxTally, FieldTally, TextTally
from edge_agent.calibrate.text_error import Place
from edge_agent.records import Field, Quad, Reading, TextBox, TextLine

LINE = "BEST BEFORE 08/2027 LOT 4711"  # 24 characters
GATES = Gates(max_cer_increase=0.01)


def quad(x: float, y: float) -> Quad:
    return Quad(cv2.boxPoints(((x, y), (60, 20), 0)))


def places(*texts: str, count: int = 4) -> list[Place]:
    """`count` lines that both read alike, and then (float, INT8) pairs."""
    same = [Place(quad(0, 0), LINE, LINE)] * count
    return same + [Place(quad(9, 9), a, b) for a, b in zip(texts[::2], texts[1::2], strict=True)]


def reading(fields: dict[str, str], *lines: str) -> Reading:
    box = TextBox(quad(0, 0), 0.9)
    return Reading(
        "line1",
        0,
        0.0,
        640,
        480,
        tuple(TextLine(text, 0.9, box) for text in lines),
        tuple(Field(name.rstrip("+"), value, value, 0.9, (0,)) for name, value in fields.items()),
    )


def test_gate_on_text_tells_how_many_characters_went_wrong_and_what_to_try() -> None:
    tally = TextTally()
    tally.add("a.png", places("LOT12", "LOT1Z", "EXPIRY", "EXPIRE"), ())
    gate = tally.gate(GATES, ["neck"])
    assert gate.value == pytest.approx(2 / 107)
    assert not gate.passed
    assert gate.damage == pytest.approx(200 / 107)
    assert "of 107 characters 1.87 % more are wrong than by float, against the float engine's text" in gate.advice
    assert "2 of 6 lines changed" in gate.advice
    assert "labels.jsonl" in gate.advice
    assert "keep the groups neck float" in gate.advice


def test_what_float_itself_reads_otherwise_when_it_looks_again_does_not_count() -> None:
    tally = TextTally()
    tally.add("a.png", places("LOT12", "LOT1Z", "EXPIRY", "EXPIRE"), ())
    gate = tally.gate(GATES, [], repeat_edits=1.5)
    assert gate.passed
    assert gate.value == pytest.approx(0.5 / 107)
    assert tally.figures(1.5)["repeat_cer"] == pytest.approx(1.5 / 107)
    assert tally.figures(1.5)["cer_to_float"] == pytest.approx(2 / 107)


def test_labels_decide_where_they_are() -> None:
    tally = TextTally()
    tally.add("a.png", places("EXPIRY", "EXPIRE", "L0T12", "LOT12"), ["EXPIRE", "LOT12", "NOT FOUND"])
    figures = tally.figures()
    assert tally.gate(GATES, []).passed
    assert figures["label_cer_int8"] == pytest.approx(8 / 19)
    assert figures["label_cer_float"] == pytest.approx(10 / 19)
    assert (figures["labelled_lines"], figures["labels_not_found"]) == (3, 1)
    assert [line.label for line in tally.changed] == ["EXPIRE", "LOT12"]


def test_too_little_text_is_no_evidence_however_good_it_is() -> None:
    tally = TextTally()
    tally.add("a.png", places(count=2), ())
    gate = tally.gate(GATES, [])
    assert (gate.name, gate.passed, gate.value, gate.bound, gate.unit) == ("evidence", False, 48, 50, "characters")
    assert "Collect more frames" in gate.advice


def test_changed_lines_are_kept_with_their_place_up_to_a_bound() -> None:
    tally = TextTally()
    for frame in range(MOST_CHANGED + 5):
        tally.add(f"{frame}.png", places("LOT12", "LOT 1Z", count=0), ())
    assert len(tally.changed) == MOST_CHANGED
    assert tally.figures()["changed_lines"] == MOST_CHANGED + 5
    line = tally.changed[0]
    assert (line.frame, line.float_text, line.int8_text, line.label) == ("0.png", "LOT12", "LOT 1Z", None)
    assert sorted(map(tuple, line.quad)) == [(-21, -1), (-21, 19), (39, -1), (39, 19)]


def test_box_gates_count_what_was_lost_and_what_was_invented() -> None:
    boxes, repeat = BoxTally(), BoxTally()
    found = [quad(100 * n, 50) for n in range(10)]
    boxes.add(found, [*found[:9], quad(50, 400), quad(150, 400), quad(250, 400)], 0.9)
    repeat.add(found, found, 1.0)
    recall, precision = boxes.gates(Gates(), [], repeat)
    assert (recall.name, recall.value, recall.passed) == ("box_recall", pytest.approx(0.9), False)
    assert recall.advice.startswith("1 of 10 boxes of the float engine are not found (0.0 % by float looking again)")
    assert (precision.name, precision.value) == ("box_precision", pytest.approx(0.75))
    assert precision.advice.startswith("3 of 12 boxes are none of the float engine's")
    assert boxes.figures(repeat)["mask_iou"] == pytest.approx(0.9)


def test_boxes_that_float_loses_itself_when_it_looks_again_do_not_count() -> None:
    boxes, repeat = BoxTally(), BoxTally()
    found = [quad(100 * n, 50) for n in range(10)]
    boxes.add(found, found[1:], 1.0)
    repeat.add(found, found[:9], 1.0)
    assert all(gate.passed and gate.value == pytest.approx(1) for gate in boxes.gates(Gates(), [], repeat))


def test_no_boxes_at_all_are_no_precise_boxes() -> None:
    boxes = BoxTally()
    assert boxes.gates(Gates(), [], BoxTally()) == ()
    boxes.add([quad(0, 50)], [], 0.0)
    assert [gate.value for gate in boxes.gates(Gates(), [], BoxTally())] == [0.0, 0.0]


def test_value_that_became_another_counts_once() -> None:
    fields = FieldTally()
    fields.add(reading({"lot": "A1", "date": "2027-01"}, "A1"), reading({"lot": "A7", "date": "2027-01"}, "A7"))
    fields.add(reading({"lot": "B 1", "lot+": "B1"}, "x y"), reading({"lot": "B1", "lot+": "B1"}, "xy"))
    fields.add(reading({"lot": "C1"}), reading({}))
    fields.add(reading({}, "same"), reading({"lot": "D1"}, "same"))
    assert (fields.values, fields.changed_values) == (6, 3)
    assert (fields.readings, fields.changed_readings) == (4, 3)
    gate = fields.gate(Gates(), [], FieldTally())
    assert (gate.value, gate.passed) == (0.5, False)
    assert gate.advice.startswith("3 of 6 field values of whole readings come out otherwise (0 of 0 with float looking")


def test_reading_with_other_lines_and_the_same_fields_is_a_changed_reading() -> None:
    fields = FieldTally()
    fields.add(reading({"lot": "A1"}, "LOT A1", "NEW"), reading({"lot": "A1"}, "LOT A1", "NEVV"))
    assert (fields.changed_readings, fields.changed_values) == (1, 0)
    assert fields.gate(Gates(), [], FieldTally()).passed


def test_sites_without_fields_change_none() -> None:
    fields = FieldTally()
    fields.add(reading({}, "text"), reading({}, "text"))
    assert fields.gate(Gates(max_changed_fields=0.0), [], FieldTally()).passed
