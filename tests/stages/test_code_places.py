"""Code places: parts of a picture where codes can be; whole codes, no noise, no lone edges."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from edge_agent.stages.code_places import bar_places, edges, matrix_places
from edge_agent.stages.zoom import Window
from tests.stages.test_code_reader import drawn

Grey = np.ndarray


def noisy(grey: Grey, sigma: float = 5.0) -> Grey:
    noise = np.random.default_rng(0).normal(0, sigma, grey.shape)
    return np.clip(grey + noise, 0, 255).astype(np.uint8)


def with_code(kind: str, text: str, at: tuple[int, int], scale: int) -> tuple[Grey, Window]:
    """A noisy grey frame with a code of `scale` px a module, and where it is."""
    frame = np.full((720, 1280), 180, np.uint8)
    code = drawn(text, kind, scale=scale)[40:-40, 40:-40, 0]
    frame[at[1] : at[1] + code.shape[0], at[0] : at[0] + code.shape[1]] = code
    return noisy(frame), Window(at[0], at[1], at[0] + code.shape[1], at[1] + code.shape[0])


def holds(place: Window, code: Window) -> bool:
    return (
        place.left <= code.left and place.top <= code.top and place.right >= code.right and place.bottom >= code.bottom
    )


@pytest.mark.parametrize("scale", [2, 5, 8])
@pytest.mark.parametrize("kind", ["DataMatrix", "QRCode"])
def test_modules_have_edges_both_ways(kind: str, scale: int) -> None:
    grey, code = with_code(kind, "L4711A", (400, 300), scale)
    (place,) = matrix_places(*edges(grey)) or []
    assert holds(place, code)
    assert (place.right - place.left) * (place.bottom - place.top) < 0.2 * grey.size


@pytest.mark.parametrize("turned", [False, True])
def test_bars_have_edges_one_way(turned: bool) -> None:
    grey, code = with_code("EAN13", "4006381333931", (300, 200), 3)
    if turned:
        grey = np.ascontiguousarray(grey.T)
        code = Window(code.top, code.left, code.bottom, code.right)
    seen = edges(grey)
    assert any(holds(place, code) for place in bar_places(*seen) or [])
    assert not any(holds(place, code) for place in matrix_places(*seen) or [])


@pytest.mark.parametrize("at", [(0, 0), (1150, 600)])
def test_a_code_at_the_border_lies_in_a_place(at: tuple[int, int]) -> None:
    grey, code = with_code("DataMatrix", "4711", at, 3)
    assert any(holds(place, code) for place in matrix_places(*edges(grey)) or [])


def test_noise_and_lone_edges_hint_at_nothing() -> None:
    grey = np.full((720, 1280), 90, np.uint8)
    cv2.rectangle(grey, (100, 100), (900, 600), 200, -1)
    seen = edges(noisy(grey))
    assert matrix_places(*seen) == []
    assert bar_places(*seen) == []


def test_places_do_not_overlap() -> None:
    grey = np.full((720, 1280), 180, np.uint8)
    code = drawn("4711", "DataMatrix", scale=3)[40:-40, 40:-40, 0]
    for left, top in ((100, 100), (220, 190), (600, 500), (1000, 80)):
        grey[top : top + code.shape[0], left : left + code.shape[1]] = code
    found = matrix_places(*edges(grey)) or []
    count = np.zeros(grey.shape, np.uint8)
    for place in found:
        count[place.top : place.bottom, place.left : place.right] += 1
    assert len(found) == 3
    assert count.max() == 1


def test_a_picture_full_of_edges_is_not_parted() -> None:
    stripes = np.tile(np.uint8([0, 0, 0, 255, 255, 255]), (360, 100))
    assert bar_places(*edges(stripes)) is None
    assert matrix_places(*edges(stripes)) == []


@pytest.mark.parametrize("shape", [(1, 1), (1, 900), (900, 1), (3, 4000)])
def test_pictures_of_any_shape_have_places_or_none(shape: tuple[int, int]) -> None:
    assert matrix_places(*edges(np.zeros(shape, np.uint8))) == []
