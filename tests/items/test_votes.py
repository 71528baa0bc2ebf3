from __future__ import annotations

from dataclasses import replace

import numpy as np

from edge_agent.items.votes import vote_field, vote_line
from edge_agent.records import Field, Quad, TextBox, TextLine

BOX = TextBox(Quad(np.array([[0, 0], [90, 0], [90, 20], [0, 20]], np.float32)), 0.9)


def read(text: str, confidence: float = 0.9) -> TextLine:
    return TextLine(text, confidence, BOX)


def test_character_on_which_readings_differ_is_doubtful_whichever_is_taken() -> None:
    line, _ = vote_line([read("LOT L2345A"), read("LOT L2345B", 0.88)])
    assert (line.text, line.doubtful) == ("LOT L2345A", (9,))
    line, _ = vote_line([read("L23X", 0.8), read("Y23B", 0.8), read("L77B", 0.6)])
    assert (line.text, line.doubtful) == ("L23B", ())  # which none of them says
    line, _ = vote_line([read("L23X", 0.8), read("Y23B", 0.8), read("L77B", 0.3)])
    assert (line.text, line.doubtful) == ("L23B", (0, 3))


def test_character_that_nearly_all_readings_have_is_not() -> None:
    line, _ = vote_line([read("LOT L2345A")] * 4 + [read("LOT L2345B")])
    assert (line.text, line.doubtful) == ("LOT L2345A", ())


def test_character_stays_doubtful_until_most_readings_see_it_clearly() -> None:
    clear, doubting = read("LOT L2345B"), replace(read("LOT L2345B", 0.8), doubtful=(9,))
    for readings, doubtful in (
        ([doubting], (9,)),
        ([clear, doubting], (9,)),
        ([clear, clear, doubting], ()),
        ([doubting] * 9 + [clear], (9,)),  # a still scene: one lucky look proves nothing
        ([replace(clear, doubtful=(4,)), clear, doubting], ()),
    ):
        line, _ = vote_line(readings)
        assert (line.text, line.doubtful) == ("LOT L2345B", doubtful)


def test_field_is_certain_where_most_of_its_readings_are() -> None:
    clear = Field("lot", "L2345B", "L2345B", 0.8, (0,))
    doubting = replace(clear, flags=("doubtful",), confidence=0.95)
    for readings, flags in (
        ([clear, doubting], ("doubtful",)),
        ([doubting] * 8 + [clear] * 3, ("doubtful",)),
        ([clear, clear, doubting], ()),
    ):
        field, _ = vote_field(readings)
        assert (field.value, field.flags) == ("L2345B", flags)
