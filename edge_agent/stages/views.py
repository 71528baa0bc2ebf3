"""Views: the parts of a picture that are read on their own, each upright, with the way back to the picture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.errors import FrameError
from edge_agent.records import Quad
from edge_agent.settings.roi import RoiConfig
from edge_agent.stages.dot_matrix import joined_dots
from edge_agent.stages.images import Image

MOST_TURNED_PX = 100_000_000  # of a region that is turned by other than quarters: a long one grows to its square
LEAST_SIDE_PX = 8  # of a region: in less there is nothing to be read
QUARTER_TURNS: Mapping[int, int | None] = {
    0: None,
    90: cv2.ROTATE_90_COUNTERCLOCKWISE,
    180: cv2.ROTATE_180,
    270: cv2.ROTATE_90_CLOCKWISE,
}


@dataclass(frozen=True, eq=False)
class View:
    """A part of a frame to read: `image` uint8 (H, W, 3) BGR; `to_frame` float64 (2, 3) takes its px to the frame's.

    `region` is None where it is the whole frame. `upright`: text is known to run along x. `strengthens`: whether faint
    print may be strengthened.
    """

    image: Image
    region: str | None = None
    to_frame: npt.NDArray[np.float64] | None = None  # None: the same px
    upright: bool = False
    strengthens: bool = True

    def in_frame(self, quad: Quad) -> Quad:
        """A quad of the view in px of the frame."""
        if self.to_frame is None:
            return quad
        return Quad((quad.points @ self.to_frame[:, :2].T + self.to_frame[:, 2]).astype(np.float32))


def views_of(image: Image, rois: Mapping[str, RoiConfig]) -> tuple[View, ...]:
    """The regions of a picture uint8 (H, W, 3) BGR, in their order; the whole picture where there are none.

    Raises FrameError for a region of which too few pixels are left, or too many made by turning it.
    """
    return tuple(view_of(image, name, roi) for name, roi in rois.items()) or (View(image),)


def view_of(image: Image, name: str, roi: RoiConfig) -> View:
    """One region of a picture, turned upright where its angle is fixed."""
    height_px, width_px = image.shape[:2]
    left, right = round(roi.x * width_px), round((roi.x + roi.width) * width_px)
    top, bottom = round(roi.y * height_px), round((roi.y + roi.height) * height_px)
    if min(right - left, bottom - top) < LEAST_SIDE_PX:
        raise FrameError(
            f"region {name} is {right - left}x{bottom - top} px of a frame of {width_px}x{height_px}; a region has at "
            f"least {LEAST_SIDE_PX} px each way: make it larger"
        )
    part = np.ascontiguousarray(image[top:bottom, left:right])
    angle_deg = 0.0 if roi.angle_deg == "auto" else roi.angle_deg % 360
    upright, to_part = turned(part, angle_deg)
    to_part[:, 2] += (left, top)
    if roi.dot_matrix:
        upright = joined_dots(upright)
    return View(upright, name, to_part, roi.angle_deg != "auto", roi.contrast == "auto")


def turned(image: Image, angle_deg: float) -> tuple[Image, npt.NDArray[np.float64]]:
    """A picture whose text runs at `angle_deg` (clockwise on screen), turned so that it runs along x, and the matrix
    (2, 3) that takes its px back; the picture grows so that nothing is lost, and its edge is repeated."""
    angle = math.radians(angle_deg)
    cos, sin = math.cos(angle), math.sin(angle)
    height_px, width_px = image.shape[:2]
    wide = max(1, round(abs(width_px * cos) + abs(height_px * sin)))
    high = max(1, round(abs(width_px * sin) + abs(height_px * cos)))
    back = np.array([[cos, -sin, 0.0], [sin, cos, 0.0]])
    centre, turned_centre = (np.array([width_px - 1, height_px - 1]) / 2, np.array([wide - 1, high - 1]) / 2)
    back[:, 2] = centre - back[:, :2] @ turned_centre
    if angle_deg not in QUARTER_TURNS and wide * high > MOST_TURNED_PX:
        raise FrameError(
            f"a region of {width_px}x{height_px} px turned by {angle_deg:g} degrees is {wide}x{high} px, over "
            f"{MOST_TURNED_PX}; make it smaller, or its angle auto"
        )
    if angle_deg in QUARTER_TURNS:
        code = QUARTER_TURNS[int(angle_deg)]
        return (image if code is None else np.asarray(cv2.rotate(image, code), np.uint8)), back
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    made = cv2.warpAffine(image, back, (wide, high), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(made, np.uint8), back
