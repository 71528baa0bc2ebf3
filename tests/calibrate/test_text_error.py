from __future__ import annotations

import random

import cv2
import pytest

from edge_agent.calibrate.text_error import Place, TextError, comparable, edits, error_of, places_of, with_labels
from edge_agent.records import Quad, TextBox, TextLine


def line(text: str, x: float = 0, y: float = 0, width: float = 100) -> TextLine:
    return TextLine(text, 0.9, TextBox(Quad(cv2.boxPoints(((x + width / 2, y + 5), (width, 10), 0))), 0.8))


def place(float_text: str, int8_text: str, label: str | None = None) -> Place:
    return Place(None, float_text, int8_text, label)


def reference_distance(a: str, b: str) -> int:
    """Wagner and Fischer (1974), as in the textbook."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (x != y))
    return row[-1]


def test_edits_are_levenshtein_distance() -> None:
    rng = random.Random(7)
    for _ in range(200):
        a, b = ("".join(rng.choices("AB01", k=rng.randrange(9))) for _ in range(2))
        assert edits(a, b) == reference_distance(a, b)


def test_white_space_and_width_of_characters_are_left_aside() -> None:
    assert comparable(" LOT  \u3000Ａ１２ \n") == "LOTA12"
    assert edits("EXP 08 2026", "EXP082026") == 0
    assert edits("LOT A12", "LOT Al2") == 1


def test_spaces_are_counted_apart() -> None:
    error = error_of([place("EXP 08", "EXP08")])
    assert (error.cer_to_float, error.cer_to_float_spaced) == (0.0, pytest.approx(1 / 6))
    assert error.changed == 0


def test_without_labels_the_increase_is_the_error_against_the_float_text() -> None:
    error = error_of([place("LOT1234567", "LOT1234568"), place("EXP", "EXP"), place("WARNING", "WARNING")])
    assert error.cer_increase == error.cer_to_float == pytest.approx(1 / 20)
    assert error.label_cer_int8 is None
    assert (error.places, error.changed) == (3, 1)


def test_line_that_was_lost_or_invented_counts_whole() -> None:
    assert error_of([place("LOT12", ""), place("EXPIRY", "EXPIRY")]).cer_increase == pytest.approx(5 / 11)
    assert error_of([place("", "LOT12"), place("EXPIRY", "EXPIRY")]).cer_increase == pytest.approx(5 / 6)


def test_with_labels_the_increase_is_the_difference_of_two_errors() -> None:
    error = error_of([place("L0T12", "LOT12", "LOT12"), place("EXP99", "EXP9", "EXP99")])
    assert error.label_cer_float == error.label_cer_int8 == pytest.approx(1 / 10)
    assert error.cer_increase == 0.0
    assert error.cer_to_float == pytest.approx(2 / 10)


def test_int8_that_mends_a_line_lowers_the_error() -> None:
    assert error_of([place("L0T", "LOT", "LOT")]).cer_increase == pytest.approx(-1 / 3)


def test_place_without_label_is_measured_against_the_float_text() -> None:
    error = error_of([place("L0T", "LOT", "LOT"), place("ABC", "ABX")])
    assert error.cer_increase == pytest.approx(0.0)
    assert (error.labelled, error.label_chars) == (1, 3)


def test_label_that_neither_engine_found_is_missed_by_both() -> None:
    error = error_of([place("LOT", "LOT", "LOT")], ["EXPIRY"])
    assert error.label_cer_float == error.label_cer_int8 == pytest.approx(6 / 9)
    assert (error.cer_increase, error.unplaced_labels) == (0.0, 1)


def test_nothing_to_compare_is_no_error_of_zero() -> None:
    assert error_of([]).cer_increase is None
    assert error_of([place("", "GHOST")]).cer_increase is None
    assert error_of([place(" ", "")]) == TextError()


def test_errors_of_frames_add_up() -> None:
    one, two = [place("ABCD", "ABCE")], [place("EF", "EF", "EG"), place("", "H")]
    assert error_of(one) + error_of(two) == error_of([*one, *two])


def test_merged_box_is_no_error_where_its_text_is_the_same() -> None:
    places = places_of([line("LOT 12", 0, 0), line("EXP 34", 110, 0)], [line("LOT 12 EXP 34", 0, 0, 210)])
    assert [(p.float_text, p.int8_text) for p in places] == [("LOT 12 EXP 34", "LOT 12 EXP 34")]


def test_line_beside_another_is_its_own_place() -> None:
    places = places_of([line("LOT", 0, 0), line("EXP", 0, 40)], [line("EXP", 1, 41), line("NEW", 0, 90)])
    assert [(p.float_text, p.int8_text) for p in places] == [("LOT", ""), ("EXP", "EXP"), ("", "NEW")]


def test_labels_find_their_places_without_positions() -> None:
    places, unplaced = with_labels(
        [place("EXP 01/2027", "EXP 01/2O27"), place("L0T 4711", "LOT 4711"), place("ACME", "ACME")],
        ["LOT 4711", "EXP 01/2027", "SERIAL 99812"],
    )
    assert [p.label for p in places] == ["EXP 01/2027", "LOT 4711", None]
    assert unplaced == ["SERIAL 99812"]


def test_label_goes_to_the_place_most_like_it_whichever_engine_read_it() -> None:
    places, _ = with_labels([place("A1234", "A1235"), place("A1", "A1299")], ["A1299", "A1234"])
    assert [p.label for p in places] == ["A1234", "A1299"]


def test_equal_labels_have_a_place_each() -> None:
    places, unplaced = with_labels([place("OK", "OK"), place("OK", "0K")], ["OK", "OK"])
    assert ([p.label for p in places], unplaced) == (["OK", "OK"], [])


def test_box_around_two_labelled_lines_has_both_labels() -> None:
    places, unplaced = with_labels([place("EXP 08/2027 LOT 12", "EXP 08/2027LOT 12")], ["LOT 12", "EXP 08/2027"])
    assert ([p.label for p in places], unplaced) == (["EXP 08/2027 LOT 12"], [])


def test_strange_label_is_no_line_of_the_frame() -> None:
    places, unplaced = with_labels([place("ABCDEFGH", "ABCDEFGH"), place("", "")], ["ABZZZZZZ", ""])
    assert [p.label for p in places] == [None, None]
    assert unplaced == ["ABZZZZZZ", ""]
