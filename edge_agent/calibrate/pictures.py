"""Pictures: small JPEGs of frames and of text lines, for reports."""

from __future__ import annotations

import cv2

from edge_agent.calibrate.findings import Picture
from edge_agent.records import Quad
from edge_agent.stages.images import Image, resized, warp_quad

THUMBNAIL_WIDTH_PX = 240
THUMBNAIL_HEIGHT_PX = 240
CROP_HEIGHT_PX = 48
MOST_CROP_WIDTH_PX = 640
QUALITY = 80


def thumbnail(name: str, image: Image) -> Picture:
    """The frame, uint8 (H, W, 3) BGR, inside THUMBNAIL_WIDTH_PX x THUMBNAIL_HEIGHT_PX, its aspect kept."""
    height_px, width_px = image.shape[:2]
    scale = min(1.0, THUMBNAIL_WIDTH_PX / width_px, THUMBNAIL_HEIGHT_PX / height_px)
    return as_jpeg(name, resized(image, max(1, round(width_px * scale)), max(1, round(height_px * scale))))


def crop(name: str, image: Image, quad: Quad) -> Picture:
    """The text inside `quad`, upright and CROP_HEIGHT_PX high; longer ones than MOST_CROP_WIDTH_PX are squeezed."""
    width_px = round(CROP_HEIGHT_PX * quad.width_px / max(quad.height_px, 1.0))
    return as_jpeg(name, warp_quad(image, quad, min(max(width_px, 8), MOST_CROP_WIDTH_PX), CROP_HEIGHT_PX))


def as_jpeg(name: str, image: Image) -> Picture:
    """The image as a JPEG of its own size. Raises ValueError where it is none that JPEG can hold."""
    ok, jpeg = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, QUALITY, cv2.IMWRITE_JPEG_OPTIMIZE, 1])
    if not ok:
        raise ValueError(f"an image {image.dtype} {image.shape} cannot be written as JPEG; expected uint8 (H, W, 3)")
    return Picture.of(name, jpeg.tobytes(), int(image.shape[1]), int(image.shape[0]))
