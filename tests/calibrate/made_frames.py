"""Frames for calibration tests: labels drawn here, each with its own lot, serial number and place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.demo.labels import render_label, sample_labels

Image = npt.NDArray[np.uint8]
LABEL_HEIGHT_PX = 175  # of each label the upper lines, among them lot and date: each line costs every test its time


@lru_cache(maxsize=32)
def label_frame(number: int, width_px: int = 640, height_px: int = 480) -> Image:
    """Frame `number`; any two differ."""
    labels = sample_labels(2031)
    label = replace(labels[number % len(labels)], lot=f"L{4000 + 37 * number}", serial=f"{83_000_000 + 7919 * number}")
    rendered = render_label(label, 420).image[:LABEL_HEIGHT_PX]
    image = np.full((height_px, width_px, 3), 60 + 9 * (number % 7), np.uint8)
    top, left = 20 + 23 * (number % 5), 30 + 31 * (number % 6)
    part = rendered[: height_px - top, : width_px - left]
    image[top : top + part.shape[0], left : left + part.shape[1]] = part
    image.flags.writeable = False
    return image


def jpeg(image: Image, quality: int = 92) -> bytes:
    ok, content = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert ok
    return content.tobytes()


@lru_cache(maxsize=32)
def label_jpeg(number: int) -> bytes:
    return jpeg(label_frame(number))


def folder_of(folder: Path, numbers: Sequence[int], name: str = "img{}.jpg") -> Path:
    """A folder with those frames as JPEGs."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        (folder / name.format(number)).write_bytes(label_jpeg(number))
    return folder
