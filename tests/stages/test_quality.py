"""Quality: blank, dark, faint and blurred pictures are told apart, and noise is nothing."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from edge_agent.stages.quality import look, strengthened
from tests.prints import DATE_AND_LOT, Picture, drawn

BASE = drawn(DATE_AND_LOT)


def noisy(picture: Picture, sigma: float) -> Picture:
    noise = np.random.default_rng(0).normal(0, sigma, (*picture.shape[:2], 1))
    return np.clip(picture + noise, 0, 255).astype(np.uint8)


def flat(level: int, width: int = 640, height: int = 480) -> Picture:
    return np.full((height, width, 3), level, np.uint8)


def moved(picture: Picture, across: bool) -> Picture:
    kernel = np.full((25, 1) if across else (1, 25), 1 / 25, np.float32)
    return np.asarray(cv2.filter2D(picture, -1, kernel), np.uint8)


@pytest.mark.parametrize(
    ("picture", "flags"),
    [
        (flat(0), ("blank", "dark")),
        (flat(255), ("blank",)),
        (noisy(flat(128), 2), ("blank",)),
        (noisy(flat(128, 1280, 720), 8), ("blank",)),
        (np.random.default_rng(0).integers(0, 256, (480, 640, 3), np.uint8), ("blank",)),
        (flat(128, 1, 1), ("blank",)),
        (flat(128, 2000, 1), ("blank",)),
        (BASE, ()),
        (drawn(DATE_AND_LOT, ground=128, ink=118), ("faint",)),
        (drawn(DATE_AND_LOT, ground=128, ink=124), ("faint",)),
        (noisy(drawn(DATE_AND_LOT, ground=128, ink=118), 1), ("faint",)),
        (noisy(drawn(DATE_AND_LOT, ground=30, ink=8), 1), ("dark", "faint")),
        (np.asarray(cv2.GaussianBlur(BASE, (0, 0), 6), np.uint8), ("blurred",)),
        (moved(BASE, across=False), ("blurred",)),
        (moved(BASE, across=True), ("blurred",)),
    ],
)
def test_what_is_wrong_with_a_picture_is_said(picture: Picture, flags: tuple[str, ...]) -> None:
    assert look(picture).flags == flags


def test_uneven_light_is_no_print() -> None:
    shade = np.linspace(60, 200, 640, dtype=np.float32)[None, :, None]
    ramp = np.broadcast_to(shade, (480, 640, 3)).astype(np.uint8)
    assert "faint" in look(ramp).flags or "blank" in look(ramp).flags
    printed = np.clip(ramp.astype(int) - (255 - drawn(DATE_AND_LOT, sides_px=(640, 480)).astype(int)) // 20, 0, 255)
    seen = look(printed.astype(np.uint8))
    assert seen.is_faint


def test_faint_print_becomes_strong_and_its_ground_even() -> None:
    made = strengthened(drawn(DATE_AND_LOT, ground=128, ink=124)).astype(int)
    assert made.max() - made.min() > 150
    assert made.dtype == np.int64 and made.shape == (200, 640, 3)
