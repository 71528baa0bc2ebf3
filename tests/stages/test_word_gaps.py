"""Word gaps: a space is put in where letters stand far apart in the picture, and only there."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.records import Character, Lattice
from edge_agent.stages.lattice import Spelling
from edge_agent.stages.word_gaps import is_of_one_number, longest_run, lost_spaces

STEP_PX = 8.0
LETTER_PX = 16


def line(text: str, gap_px: int = 6) -> tuple[npt.NDArray[np.uint8], Spelling]:
    """A crop with a bar for each letter of a text, spaces as wide as letters, and what a network that loses spaces
    makes of it."""
    crop = np.full((48, 16 + len(text) * (LETTER_PX + gap_px), 3), 230, np.uint8)
    steps, read = [], ""
    for n, character in enumerate(text):
        left = 8 + n * (LETTER_PX + gap_px)
        if character == " ":
            continue
        cv2.rectangle(crop, (left, 10), (left + LETTER_PX - 1, 38), (20, 20, 20), -1)
        middle = int((left + LETTER_PX / 2) / STEP_PX)
        steps.append([middle, middle + 1])
        read += character
    count = crop.shape[1] // 8 + 1
    alphabet = ("", *dict.fromkeys(read))
    lattice = Lattice(
        alphabet,
        np.zeros((count, len(alphabet)), np.float32),
        ("",) * count,
        np.zeros(count, np.float32),
        np.array(steps, np.int32),
    )
    return crop, Spelling(read, 0.9, tuple(Character(c, 0.9, 5.0, "") for c in read), lattice)


def put_in(text: str, gap_px: int = 6) -> str:
    crop, spelling = line(text, gap_px)
    made = spelling.text
    for at in reversed(lost_spaces(crop, spelling, STEP_PX)):
        made = f"{made[:at]} {made[at:]}"
    return made


@pytest.mark.parametrize("text", ["BEST BEFORE 12 AUG", "NET WT 500 g", "8709 2221 6898", "LOT: 4711"])
def test_lost_spaces_are_found(text: str) -> None:
    assert put_in(text) == text


@pytest.mark.parametrize("text", ["BESTBEFORE", "1234567890", "A B", "12"])
def test_nothing_is_put_into_a_word_or_into_few_letters(text: str) -> None:
    assert put_in(text) == text.replace(" ", "")


def test_letter_spaced_line_stays_one_word() -> None:
    assert put_in("SPACED", gap_px=14) == "SPACED"


def test_gap_of_other_print_than_strokes_is_none() -> None:
    crop, spelling = line("BEST BEFORE")
    crop[24, :] = 20  # underlined
    crop[10:38, ::2] = 20
    assert lost_spaces(crop, spelling, STEP_PX) == []


def test_line_without_a_lattice_is_left() -> None:
    crop, spelling = line("BEST BEFORE")
    assert lost_spaces(crop, Spelling(spelling.text, 0.9), STEP_PX) == []


@pytest.mark.parametrize(
    ("text", "at", "is_so"),
    [
        ("12.08", 3, True),
        ("12.08", 2, True),
        ("12:08", 3, True),
        ("LOT:47", 4, False),
        ("50%", 2, True),
        ("ABC", 1, False),
        ("EXP 05.10.29", 8, True),
        ("5.1 87092", 6, False),
    ],
)
def test_signs_of_numbers_keep_their_numbers_whole(text: str, at: int, is_so: bool) -> None:
    assert is_of_one_number(text, at) is is_so


def test_longest_run_of_empty_columns() -> None:
    assert longest_run([False, True, True, False, True]) == 2
    assert longest_run([]) == 0
