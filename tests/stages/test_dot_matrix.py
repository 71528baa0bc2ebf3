"""Dot matrix: dots are joined whatever their pitch, and other print is left alone."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from edge_agent.stages.dot_matrix import dots_of, is_dark_print, joined_dots
from tests.prints import DATE_AND_LOT, Picture, dotted, drawn


def strokes(image: Picture) -> int:
    """How many connected pieces of print there are."""
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    _, ink = cv2.threshold(grey if not is_dark_print(grey) else 255 - grey, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    return cv2.connectedComponents(ink)[0] - 1


@pytest.mark.parametrize(("pitch", "radius"), [(6, 2), (8, 3), (8, 2), (12, 4)])
@pytest.mark.parametrize(("ink", "ground"), [(40, 235), (235, 40)])
def test_dots_become_the_strokes_of_their_letters(pitch: int, radius: int, ink: int, ground: int) -> None:
    image = dotted("12/08 L47", pitch, radius, ink, ground, width_px=1100)
    joined = joined_dots(image)
    assert strokes(image) > 60
    assert 6 <= strokes(joined) <= 30, "letters are whole, and mostly apart"


def test_pitch_is_the_distance_of_neighbouring_dots() -> None:
    dots = dots_of(255 - cv2.cvtColor(dotted("12/08 L47", 8, 2), cv2.COLOR_BGR2GRAY))
    assert dots is not None
    assert (dots.pitch, dots.diameter) == (pytest.approx(8, abs=0.1), pytest.approx(5, abs=1.1))


@pytest.mark.parametrize(
    "image",
    [drawn(DATE_AND_LOT), drawn(DATE_AND_LOT, ground=20, ink=240), np.full((100, 100, 3), 128, np.uint8)],
    ids=["strokes", "bright strokes", "nothing"],
)
def test_print_that_is_no_dots_stays_as_it_is(image: Picture) -> None:
    assert joined_dots(image) is image


def test_noise_is_no_print_of_dots_and_costs_little() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (400, 400, 3), np.uint8)
    assert joined_dots(noise) is noise


def test_strokes_have_smooth_sides() -> None:
    """Of rows of discs the light recogniser reads next to nothing."""
    image = dotted("LLLL LLLL", 8, 2)
    left = int(np.flatnonzero((image[:, :, 0] < 100).any(axis=0))[0])  # the side of the first stem
    rows = np.flatnonzero((image[:, left : left + 5, 0] < 100).any(axis=1))
    side = slice(rows[0] + 8, rows[-1] - 8), left
    assert np.ptp(image[:, :, 0][side].astype(int)) > 150
    assert np.ptp(joined_dots(image)[:, :, 0][side].astype(int)) < 10
