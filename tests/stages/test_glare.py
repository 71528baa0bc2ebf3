"""Glare: saturated pixels are glare where a line breaks off in them, and white paper where it does not."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from edge_agent.records import Quad
from edge_agent.stages.glare import find_glare
from tests.prints import DATE_AND_LOT, Picture, drawn


def quad(left: float, top: float, width: float, height: float = 36) -> Quad:
    return Quad(np.array([[left, top], [left + width, top], [left + width, top + height], [left, top + height]]))


WHOLE = [quad(18, 18, 264), quad(18, 62, 207)]
PARTED = [quad(18, 18, 100), quad(226, 18, 58), quad(18, 62, 130)]


def with_disc(picture: Picture) -> Picture:
    lit = picture.copy()
    cv2.circle(lit, (170, 40), 60, (255, 255, 255), -1)
    return lit


@pytest.mark.parametrize("ground", [255, 200, 120])
def test_line_that_breaks_off_in_white_and_goes_on_is_glare(ground: int) -> None:
    parted = find_glare(with_disc(drawn(DATE_AND_LOT, ground=ground)), PARTED)
    assert parted == (frozenset() if ground == 255 else {0, 1, 2}), "white paper parts columns as well"
    assert find_glare(drawn(DATE_AND_LOT, ground=ground), WHOLE) is None


def test_line_that_ends_in_white_on_grey_is_glare_too() -> None:
    assert find_glare(with_disc(drawn(DATE_AND_LOT, ground=200)), PARTED[:1]) == {0}
    assert find_glare(with_disc(drawn(DATE_AND_LOT)), PARTED[:1]) is None, "white paper ends lines as well"


def test_white_paper_that_the_lamp_lights_a_little_more_at_one_side_is_no_glare() -> None:
    """Just below saturation at a line's beginning, just within it where the line ends."""
    printed = drawn(DATE_AND_LOT, ground=255).astype(np.float32)
    light = np.linspace(236, 270, printed.shape[1], dtype=np.float32)[None, :, None] / 255
    lit = np.clip(printed * light, 0, 255).astype(np.uint8)
    assert (lit.min(axis=2) >= 250).mean() > 0.3, "a part of it is saturated"
    assert find_glare(lit, WHOLE) is None


def test_bright_spot_away_from_the_text_is_none() -> None:
    picture = drawn(DATE_AND_LOT, ground=200)
    cv2.circle(picture, (560, 150), 40, (255, 255, 255), -1)
    assert find_glare(picture, WHOLE) is None


def test_rows_and_columns_far_apart_are_no_broken_line() -> None:
    white = np.full((200, 640, 3), 255, np.uint8)
    assert find_glare(white, [quad(20, 20, 100), quad(500, 20, 100)]) is None
    assert find_glare(white, [quad(20, 20, 100), quad(200, 100, 100)]) is None
    assert find_glare(white, [quad(20, 20, 100), quad(180, 20, 100, 80)]) is None
    assert find_glare(white, []) is None


def test_line_at_the_pictures_edge_is_not_judged_beyond_it() -> None:
    picture = drawn(DATE_AND_LOT, ground=200)
    picture[150:, :] = 255
    assert find_glare(picture, [quad(2, 18, 100), quad(560, 18, 78)]) is None
