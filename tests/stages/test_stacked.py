"""Stacked: letters one below the other become their text, flagged; tables and lists stay."""

from __future__ import annotations

import numpy as np
import pytest

from edge_agent.records import Character, Quad, TextBox, TextLine
from edge_agent.stages.stacked import unstacked


def line(
    text: str, left: float, top: float, width: float = 24, height: float = 34, flags: tuple[str, ...] = ()
) -> TextLine:
    points = np.array([[left, top], [left + width, top], [left + width, top + height], [left, top + height]])
    characters = tuple(Character(c, 0.9, 1.0 if c == "1" else 9.0, "I") for c in text)
    doubtful = tuple(n for n, c in enumerate(text) if c == "1")
    return TextLine(text, 0.9, TextBox(Quad(points), 0.8), flags, characters, doubtful)


def column(text: str, left: float = 20, step: float = 44) -> list[TextLine]:
    return [line(character, left, 20 + n * step) for n, character in enumerate(text)]


def test_letters_one_below_the_other_become_one_flagged_line() -> None:
    (found,) = unstacked(column("L4711")[::-1])
    assert found.text == "L4711"
    assert found.flags == ("stacked",)
    assert found.box.quad.points.tolist() == [[20, 20], [44, 20], [44, 230], [20, 230]]
    assert found.doubtful == (3, 4)


def test_two_columns_are_two_texts() -> None:
    found = unstacked([*column("ABC"), *column("XYZ", left=300)])
    assert sorted(each.text for each in found) == ["A", "B", "C", "X", "Y", "Z"], "text beside: a table, not a stack"
    apart = [line(c.text, 300, 400 + n * 44) for n, c in enumerate(column("XYZ"))]
    assert [each.text for each in unstacked([*column("ABC"), *apart])] == ["ABC", "XYZ"]


@pytest.mark.parametrize(
    "lines",
    [
        column("L4"),
        [*column("123"), line("milk", 80, 20, 90), line("flour", 80, 64, 90), line("salt", 80, 108, 90)],
        column("ABC", step=120),
        [line("A", 20, 20), line("B", 60, 64), line("C", 100, 108)],
        [line("A", 20, 20, height=30), line("B", 20, 64, height=70), line("C", 20, 150, height=30)],
        [line("AB", 20, 20), line("CD", 20, 64), line("EF", 20, 108)],
        [],
    ],
)
def test_other_lines_stay_as_they_are(lines: list[TextLine]) -> None:
    assert unstacked(lines) == tuple(lines)


def test_flags_of_the_letters_stay() -> None:
    letters = column("ABC")
    (found,) = unstacked([*letters[:2], line("C", 20, 108, flags=("cut",))])
    assert found.flags == ("cut", "stacked")
