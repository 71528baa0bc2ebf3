"""Stacked: letters written one below the other, which the detector finds one by one, put together to their text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edge_agent.records import Quad, TextBox, TextLine
from edge_agent.stages.lattice import Spelling, joined

LEAST_LETTERS = 3
ASIDE = 0.5  # of a letter's height: how far the next one may stand to the side
STEP = (0.6, 2.2)  # of a letter's height: how far below it the next one stands
LIKE_HEIGHT = 0.6


def unstacked(lines: Sequence[TextLine]) -> tuple[TextLine, ...]:
    """The lines, columns of lone letters put together, flagged `stacked`; a column with other text beside it, as in a
    table, stays as it is."""
    lone = [n for n, line in enumerate(lines) if len(line.text) == 1]
    if len(lone) < LEAST_LETTERS:
        return tuple(lines)
    made: dict[int, TextLine] = {}
    taken: set[int] = set()
    for stack in stacks(lines, sorted(lone, key=lambda n: float(lines[n].box.quad.centre[1]))):
        if len(stack) >= LEAST_LETTERS and not has_text_beside(lines, stack):
            made[min(stack)] = one_below_the_other([lines[n] for n in stack])
            taken |= set(stack)
    return tuple(made.get(n, line) for n, line in enumerate(lines) if n in made or n not in taken)


def stacks(lines: Sequence[TextLine], lone: Sequence[int]) -> list[list[int]]:
    """Lone letters, given from top to bottom, as columns."""
    found: list[list[int]] = []
    for n in lone:
        column = next((each for each in found if follows(lines[each[-1]].box.quad, lines[n].box.quad)), None)
        if column is None:
            found.append([n])
        else:
            column.append(n)
    return found


def follows(above: Quad, below: Quad) -> bool:
    """Whether one letter stands right below another of like height."""
    aside, down = below.centre - above.centre
    low, high = sorted((above.height_px, below.height_px))
    return bool(abs(aside) <= ASIDE * high and STEP[0] * high <= down <= STEP[1] * low and low >= LIKE_HEIGHT * high)


def has_text_beside(lines: Sequence[TextLine], stack: Sequence[int]) -> bool:
    """Whether other text stands level with one of the letters."""
    others = [line.box.quad.centre[1] for n, line in enumerate(lines) if n not in stack]
    levels = [(lines[n].box.quad.centre[1], lines[n].box.quad.height_px) for n in stack]
    return any(abs(y - level) <= height / 2 for y in others for level, height in levels)


def one_below_the_other(letters: Sequence[TextLine]) -> TextLine:
    """One line of letters from top to bottom; its box stands upright around them."""
    points = np.concatenate([letter.box.quad.points for letter in letters])
    (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
    quad = Quad(np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float32))
    whole = joined([(Spelling(line.text, line.confidence, line.characters, line.lattice), False) for line in letters])
    at = np.cumsum([0, *(len(letter.text) for letter in letters)])
    return TextLine(
        whole.text,
        whole.confidence,
        TextBox(quad, min(letter.box.score for letter in letters)),
        (*dict.fromkeys(flag for letter in letters for flag in letter.flags), "stacked"),
        whole.characters,
        tuple(int(begin) + n for begin, letter in zip(at, letters, strict=False) for n in letter.doubtful),
        lattice=whole.lattice,
    )
