"""Snapshot: a frame as a JPEG that fits one message."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import cv2

from edge_agent.errors import FrameError
from edge_agent.records import Frame, rfc3339

LEAST_QUALITY = 40
QUALITY_STEP = 15
LEAST_SIDE_PX = 64
REPLY_BYTES = 512  # the rest of the message


def snapshot(frame: Frame, quality: int, max_side_px: int, max_payload_bytes: int) -> Mapping[str, Any]:
    """The members of an answer: `jpeg_base64` and what is in it. Quality goes down first, then size, until it fits.

    Raises FrameError when nothing fits.
    """
    limit_bytes = (max_payload_bytes - REPLY_BYTES) // 4 * 3
    scale = min(1.0, max_side_px / max(frame.width_px, frame.height_px))
    while True:
        size = (max(1, round(frame.width_px * scale)), max(1, round(frame.height_px * scale)))
        image = frame.image if scale == 1.0 else cv2.resize(frame.image, size, interpolation=cv2.INTER_AREA)
        for lower in range(quality, min(quality, LEAST_QUALITY) - 1, -QUALITY_STEP):
            done, encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, lower])
            if done and len(encoded) <= limit_bytes:
                return {
                    "camera": frame.camera,
                    "seq": frame.seq,
                    "captured_at": rfc3339(frame.captured_at),
                    "width_px": size[0],
                    "height_px": size[1],
                    "quality": lower,
                    "jpeg_base64": base64.b64encode(encoded.tobytes()).decode("ascii"),
                }
        scale *= 0.7
        if max(size) <= LEAST_SIDE_PX:
            raise FrameError(f"no picture fits into {max_payload_bytes} bytes (mqtt.max_payload_bytes)")
