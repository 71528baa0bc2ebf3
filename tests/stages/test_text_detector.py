"""TextDetector: made probability maps become boxes; no model is needed."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
import pyclipper
import pytest

from edge_agent.backends.base import Array, Feed, TensorSpec
from edge_agent.stages.text_detector import DetectorSettings, TextDetector, from_top_left, postprocess, preprocess
from tests.fakes import FakeEngine

SETTINGS = DetectorSettings()


def map_with(*boxes: tuple[tuple[float, float], tuple[float, float], float]) -> npt.NDArray[np.uint8]:
    canvas = np.zeros((736, 1312), np.uint8)
    for box in boxes:
        cv2.fillPoly(canvas, [cv2.boxPoints(box).astype(np.int32)], 230)
    return canvas


def test_empty_map_gives_no_box() -> None:
    assert postprocess(np.zeros((64, 64), np.uint8), 64, 64, SETTINGS) == ()


def test_box_is_scaled_to_the_frame() -> None:
    (box,) = postprocess(map_with(((656.0, 368.0), (200.0, 20.0), 0.0)), 656, 368, SETTINGS)
    assert np.allclose(box.quad.centre, (328, 184), atol=1)
    assert box.score == pytest.approx(230 / 255, abs=0.05)


def test_weak_region_is_no_box() -> None:
    weak = (map_with(((300.0, 300.0), (200.0, 20.0), 0.0)) > 0).astype(np.uint8) * 100  # 0.39: above 0.3, below 0.5
    assert postprocess(weak, 1312, 736, SETTINGS) == ()


@pytest.mark.parametrize("angle", [0.0, 12.0, 30.0, -25.0])
@pytest.mark.parametrize("size", [(200.0, 24.0), (60.0, 40.0), (24.0, 150.0)])
def test_growth_equals_the_polygon_offset_of_pyclipper(size: tuple[float, float], angle: float) -> None:
    canvas = map_with(((600.0, 350.0), size, angle))
    (box,) = postprocess(canvas, canvas.shape[1], canvas.shape[0], SETTINGS)

    region = cv2.dilate((canvas > 76).astype(np.uint8), np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(region, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    corners = cv2.boxPoints(cv2.minAreaRect(contours[0]))
    distance = cv2.contourArea(corners) * SETTINGS.unclip_ratio / cv2.arcLength(corners, closed=True)
    offset = pyclipper.PyclipperOffset()
    offset.AddPath(np.round(corners * 1000).astype(int).tolist(), pyclipper.JT_ROUND, pyclipper.ET_CLOSEDPOLYGON)
    grown = np.array(offset.Execute(distance * 1000)[0], np.float32) / 1000
    expected = from_top_left(cv2.boxPoints(cv2.minAreaRect(grown)))
    assert np.abs(box.quad.points - expected).max() < 0.75


def test_box_stays_inside_the_frame() -> None:
    (box,) = postprocess(map_with(((20.0, 20.0), (200.0, 40.0), 0.0)), 1312, 736, SETTINGS)
    assert box.quad.points.min() >= 0


def test_specks_are_not_boxes() -> None:
    canvas = np.zeros((100, 100), np.uint8)
    canvas[50, 50] = 255
    assert postprocess(canvas, 100, 100, SETTINGS) == ()


def test_corners_start_at_the_texts_own_top_left() -> None:
    corners = cv2.boxPoints(((50.0, 50.0), (40.0, 10.0), 20.0))
    for shift in range(4):
        ordered = from_top_left(np.roll(corners, shift, axis=0))
        top, left = ordered[1] - ordered[0], ordered[3] - ordered[0]
        assert np.degrees(np.arctan2(top[1], top[0])) == pytest.approx(20, abs=0.5)
        assert np.cross(np.append(top, 0), np.append(left, 0))[2] > 0  # clockwise on screen


def test_detect_feeds_uint8_bgr_at_the_models_multiple() -> None:
    seen = TensorSpec("image", "uint8", (1, None, None, 3))
    engine = FakeEngine(lambda feed: {"probability": np.zeros(feed["image"].shape[:3], np.uint8)}, (seen,))
    red = np.zeros((720, 1280, 3), np.uint8)
    red[..., 2] = 255
    assert TextDetector(engine, SETTINGS).detect(red) == ()
    (feed,) = engine.feeds
    assert feed["image"].shape == (1, 736, 1312, 3)
    assert (feed["image"] == (0, 0, 255)).all()


def test_search_begun_for_another_frame_is_never_taken_for_this_one() -> None:
    def grey_is_text(feed: Feed) -> dict[str, Array]:
        return {"probability": (feed["image"][..., 0] > 100).astype(np.uint8) * 255}

    engine = FakeEngine(grey_is_text, (TensorSpec("image", "uint8", (1, None, None, 3)),))
    detector = TextDetector(engine, DetectorSettings(min_side_px=32))
    empty, full = np.zeros((64, 64, 3), np.uint8), np.zeros((64, 64, 3), np.uint8)
    full[20:40, 5:60] = 200
    detector.begin(full)
    assert detector.detect(empty) == ()
    detector.begin(full)
    assert len(detector.detect(full)) == 1
    assert len(engine.feeds) == 3
    assert detector.detect(empty) == ()


def test_of_too_many_regions_the_largest_are_taken_and_the_others_counted() -> None:
    centres = [(60.0 + 120 * (n % 10), 60.0 + 60 * (n // 10)) for n in range(60)]
    canvas = map_with(*((centre, (40.0 + n, 14.0), 0.0) for n, centre in enumerate(centres)))
    image = np.zeros((736, 1312, 3), np.uint8)
    engine = FakeEngine(lambda feed: {"probability": canvas[None]}, (TensorSpec("image", "uint8", (1, None, None, 3)),))
    stage = TextDetector(engine, DetectorSettings(max_boxes=25))
    found = stage.detect(image)
    assert sorted(round(float(box.quad.centre[0])) for box in found) == sorted(round(x) for x, _ in centres[35:])
    assert stage.left_out == 35
    stage.detect(image)
    assert stage.left_out == 70


@pytest.mark.parametrize(
    ("width", "height", "expected"),
    [
        (1280, 720, (736, 1312)),
        (2592, 1944, (1504, 1984)),  # still hardly made smaller
        (4000, 3000, (1152, 1536)),  # parts of it are looked at again
        (12000, 9000, (1152, 1536)),
        (40000, 40, (32, 1984)),
    ],
)
def test_frame_far_larger_than_the_detectors_side_is_looked_at_coarsely(
    width: int, height: int, expected: tuple[int, int]
) -> None:
    assert preprocess(np.zeros((height, width, 3), np.uint8), SETTINGS).shape == (1, *expected, 3)
