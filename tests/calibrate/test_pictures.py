from __future__ import annotations

import hashlib

import cv2
import numpy as np
import pytest

from edge_agent.calibrate.pictures import CROP_HEIGHT_PX, MOST_CROP_WIDTH_PX, crop, thumbnail
from edge_agent.records import Quad


@pytest.mark.parametrize(
    ("size", "becomes"),
    [((1280, 720), (240, 135)), ((720, 1280), (135, 240)), ((100, 50), (100, 50)), ((4000, 3), (240, 1))],
)
def test_a_thumbnail_keeps_its_aspect_and_never_grows(size: tuple[int, int], becomes: tuple[int, int]) -> None:
    found = thumbnail("a.jpg", np.full((size[1], size[0], 3), 90, np.uint8))
    decoded = cv2.imdecode(np.frombuffer(found.jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert decoded is not None
    assert (found.width_px, found.height_px) == becomes == decoded.shape[1::-1]
    assert found.sha256 == hashlib.sha256(found.jpeg).hexdigest()


def test_a_crop_is_the_text_upright() -> None:
    image = np.full((200, 300, 3), 255, np.uint8)
    image[50:150, 100:110] = 0  # a text that runs downwards is black at its beginning, white at its end
    image[100:150, 100:110] = 255
    downwards = Quad(np.array([[110, 50], [110, 150], [100, 150], [100, 50]], np.float32))
    found = crop("line", image, downwards)
    assert (found.height_px, found.width_px) == (CROP_HEIGHT_PX, 10 * CROP_HEIGHT_PX)
    decoded = cv2.imdecode(np.frombuffer(found.jpeg, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert decoded is not None
    assert decoded[:, :200].mean() < 60
    assert decoded[:, 280:].mean() > 200


def test_an_endless_line_is_squeezed_and_a_speck_is_still_a_picture() -> None:
    image = np.full((40, 4000, 3), 128, np.uint8)
    long = Quad(np.array([[0, 0], [3999, 0], [3999, 20], [0, 20]], np.float32))
    speck = Quad(np.array([[5, 5], [5, 5], [5, 5], [5, 5]], np.float32))
    assert crop("long", image, long).width_px == MOST_CROP_WIDTH_PX
    assert crop("speck", image, speck).height_px == CROP_HEIGHT_PX
