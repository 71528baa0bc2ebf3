"""Views: regions cut out, turned upright, and their quads taken back to the frame."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.errors import FrameError
from edge_agent.records import Quad
from edge_agent.settings.roi import RoiConfig
from edge_agent.stages.views import View, turned, view_of, views_of
from tests.prints import dotted


def marked(width: int = 200, height: int = 120) -> npt.NDArray[np.uint8]:
    """A picture with one bright square, whose top left corner is at (120, 40)."""
    image = np.zeros((height, width, 3), np.uint8)
    image[40:50, 120:150] = 255
    return image


def corner_in_frame(view: View) -> npt.NDArray[np.float32]:
    """The mark's corners in the view, taken back to the frame."""
    contours, _ = cv2.findContours(
        (view.image[:, :, 0] > 127).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE
    )
    return view.in_frame(Quad(cv2.boxPoints(cv2.minAreaRect(contours[0])))).points


def test_without_regions_the_whole_frame_is_the_one_view() -> None:
    image = marked()
    (view,) = views_of(image, {})
    assert view.image is image and view.region is None and not view.upright
    quad = Quad(np.array([[1, 2], [3, 2], [3, 4], [1, 4]], np.float32))
    assert view.in_frame(quad) is quad


def test_regions_come_in_their_order_and_cut_shares_of_the_frame() -> None:
    rois = {"b": RoiConfig(x=0.5, width=0.5), "a": RoiConfig(y=0.25, height=0.5, angle_deg=0, contrast="off")}
    first, second = views_of(marked(), rois)
    assert (first.region, first.image.shape, first.upright, first.strengthens) == ("b", (120, 100, 3), False, True)
    assert (second.region, second.image.shape, second.upright, second.strengthens) == ("a", (60, 200, 3), True, False)


@pytest.mark.parametrize("angle_deg", [0, 90, 180, 270, 15, -30, 200.5, 360, "auto"])
def test_quads_of_a_turned_region_are_where_they_are_in_the_frame(angle_deg: float | str) -> None:
    roi = RoiConfig.model_validate({"x": 0.25, "width": 0.75, "y": 0.25, "height": 0.5, "angle_deg": angle_deg})
    (view,) = views_of(marked(), {"mark": roi})
    found = corner_in_frame(view)
    np.testing.assert_allclose(found.min(axis=0), [120, 40], atol=1.1)
    np.testing.assert_allclose(found.max(axis=0), [149, 49], atol=1.1)


@pytest.mark.parametrize("angle_deg", [90, 180, 270, 33])
def test_text_that_runs_at_the_angle_runs_along_x_in_the_view(angle_deg: float) -> None:
    angle = np.radians(angle_deg)
    start, end = np.array([100.0, 100.0]), np.array([100 + 60 * np.cos(angle), 100 + 60 * np.sin(angle)])
    image = np.zeros((201, 201, 3), np.uint8)
    cv2.line(image, np.round(start).astype(int).tolist(), np.round(end).astype(int).tolist(), (255, 255, 255), 3)
    upright, back = turned(image, angle_deg)
    rows, columns = np.nonzero(upright[:, :, 0] > 127)
    assert np.ptp(columns) > 55 and np.ptp(rows) < 6
    middle = upright.shape[1] / 2
    assert columns.mean() > middle + 20, "it goes from the middle to the right, as it is read"
    np.testing.assert_allclose(back[:, :2] @ back[:, :2].T, np.eye(2), atol=1e-9)


def test_quarter_turns_lose_no_pixel() -> None:
    image = np.random.default_rng(1).integers(0, 256, (40, 60, 3), np.uint8)
    upright, _ = turned(image, 90)
    np.testing.assert_array_equal(np.rot90(upright, -1), image)


def test_region_of_too_few_pixels_is_refused_with_its_size() -> None:
    with pytest.raises(FrameError, match="region date is 2x120 px of a frame of 200x120"):
        views_of(marked(), {"date": RoiConfig(width=0.01)})


def test_dots_are_joined_only_where_the_region_says_so() -> None:
    image = dotted("12/08/26")
    plain, joined = views_of(image, {"a": RoiConfig(), "b": RoiConfig(dot_matrix=True)})
    np.testing.assert_array_equal(plain.image, image)
    assert (joined.image < 160).sum() > 1.15 * (image < 160).sum()


def test_long_region_that_grows_beyond_memory_when_turned_is_the_frames_failure() -> None:
    long = np.zeros((30, 20_000, 3), np.uint8)
    with pytest.raises(FrameError, match="make it smaller"):
        view_of(long, "strip", RoiConfig(angle_deg=45))
    assert view_of(long, "strip", RoiConfig(angle_deg=90)).image.shape == (20_000, 30, 3)
