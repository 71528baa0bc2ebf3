"""Pictures: the newest frames as JPEGs of the size that viewers want, each made once however many look."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from concurrent.futures import Executor

import cv2

from edge_agent.records import Frame
from edge_agent.web.site import Refused

QUALITY = 75
KEPT = 16  # pictures: one for each camera and size that somebody looks at

_Key = tuple[str, int]
_Identity = tuple[int, float]  # seq and time: a camera that was started again counts anew


class Pictures:
    """For the door's event loop alone; pictures are made by `slow`."""

    def __init__(self, slow: Executor) -> None:
        self._slow = slow
        self._made: OrderedDict[_Key, tuple[_Identity, asyncio.Future[bytes]]] = OrderedDict()

    async def jpeg(self, frame: Frame, max_side_px: int) -> bytes:
        """The frame, its longer side at most `max_side_px`; Refused with 500 where it cannot be encoded."""
        key, identity = (frame.camera, max_side_px), (frame.seq, frame.captured_at)
        made = self._made.get(key)
        if made is None or made[0] != identity:
            loop = asyncio.get_running_loop()
            made = (identity, loop.run_in_executor(self._slow, encoded, frame, max_side_px))
            self._made[key] = made
            self._made.move_to_end(key)
            while len(self._made) > KEPT:
                self._made.popitem(last=False)
        return await asyncio.shield(made[1])  # of the viewers one may go; the others wait on


def encoded(frame: Frame, max_side_px: int, quality: int = QUALITY) -> bytes:
    """A frame as a JPEG, its longer side at most `max_side_px`."""
    scale = min(1.0, max_side_px / max(frame.width_px, frame.height_px))
    image = frame.image
    if scale < 1.0:
        size = (max(1, round(frame.width_px * scale)), max(1, round(frame.height_px * scale)))
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    done, content = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not done:
        raise Refused(500, "no_picture", f"frame {frame.seq} of camera {frame.camera} cannot be made a JPEG")
    return content.tobytes()
