from __future__ import annotations

import numpy as np

from edge_agent.items.votes import vote_line
from edge_agent.records import Quad, TextBox, TextLine

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
