"""Uploads: pictures that programs hand in, read by the main loop between the frames of cameras.

They wait in the mailbox like the frames of one camera more: cameras are served in turn, so between two frames of a
camera that waits at most one of them is read, and each is read whole.
"""

from __future__ import annotations

import itertools
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from edge_agent.cameras.image_file import decode_image
from edge_agent.cameras.image_header import read_header
from edge_agent.errors import FrameError, in_one_line
from edge_agent.mailbox import Mailbox
from edge_agent.records import Frame, Reading
from edge_agent.settings.cameras import MAX_PIXELS
from edge_agent.settings.roi import RoiConfig
from edge_agent.verify.expectation import Expectation
from edge_agent.web.site import Refused

log = logging.getLogger(__name__)

# no camera's; three, for one may be read while the next is begun and a third waits in the mailbox
NAMES = ("~upload-a", "~upload-b", "~upload-c")
HANDED_IN = "upload"  # the camera that the reading names, where it is read as a frame of none
PUT_S = 1.0  # how long a picture waits for its turn before the end of the program is looked for
USUAL_S = 1.0  # a picture, before one was read

Rois = Mapping[str, RoiConfig]


@dataclass(eq=False)
class _Upload:
    """`camera`: as a frame of which it is read, None for none; `rois`: in which regions, None for that camera's."""

    content: bytes
    camera: str | None
    rois: Rois | None
    expectation: Expectation | None
    answer: Future[Reading] = field(default_factory=Future)
    frame: Frame | None = None


class Uploads:
    """`offer` is for any thread, the others for the main loop's."""

    def __init__(
        self,
        mailbox: Mailbox,
        max_pixels: int = MAX_PIXELS,
        most_waiting: int = 4,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mailbox = mailbox
        self.max_pixels = max_pixels
        self.most_waiting = most_waiting
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._waiting = 0
        self._spent_s: deque[float] = deque(maxlen=20)
        self._numbers = itertools.count()
        self._by_name: dict[str, _Upload] = {}
        self._taken = threading.Event()  # the one that was put last has left the mailbox
        self._taken.set()
        self._ended = False
        self._one_by_one = ThreadPoolExecutor(1, "uploads")

    def offer(
        self,
        content: bytes,
        camera: str | None = None,
        rois: Rois | None = None,
        expectation: Expectation | None = None,
    ) -> Future[Reading]:
        """Has an image file's bytes read: as a frame of `camera`, or in `rois` and by what is expected there.

        Refused at once: 413 with too many pixels, 415 for no image, 429 where too many wait; the future raises Refused:
        422 for a damaged one, 503 where nothing is read any more.
        """
        check_size(content, self.max_pixels)
        with self._lock:
            if self._waiting >= self.most_waiting:
                raise self._too_many()
            self._waiting += 1
        upload = _Upload(content, camera, rois, expectation)
        upload.answer.add_done_callback(self._one_less)
        self._one_by_one.submit(self._put, upload).add_done_callback(lambda put: _tell_of_a_bug(upload, put))
        return upload.answer

    @staticmethod
    def takes(frame: Frame) -> bool:
        """Whether a frame is one of these."""
        return frame.camera in NAMES

    def begin(self, frame: Frame, regions: Mapping[str, Rois]) -> Mapping[str, Rois]:
        """The frame has left the mailbox, where the next one may wait now. `regions` by camera, with those of this
        frame among them."""
        upload = self._by_name[frame.camera]
        self._taken.set()
        rois = regions.get(upload.camera or "", {}) if upload.rois is None else upload.rois
        return {**regions, frame.camera: rois}

    def expected(self, camera: str, of_cameras: Callable[[str], Expectation | None]) -> Expectation | None:
        """What a frame is read by, be it one of these; `of_cameras` says what is expected of cameras."""
        upload = self._by_name.get(camera)
        if upload is None:
            return of_cameras(camera)
        return of_cameras(upload.camera or camera) if upload.expectation is None else upload.expectation

    def answer(self, frame: Frame, reading: Reading) -> None:
        """What it says."""
        upload = self._by_name.pop(frame.camera)
        self._spent_s.append(reading.timings_ms.get("total", 0.0) / 1e3)
        upload.answer.set_result(replace(reading, camera=upload.camera or HANDED_IN))

    def fail(self, frame: Frame, error: FrameError) -> None:
        """It cannot be read."""
        upload = self._by_name.pop(frame.camera)
        upload.answer.set_exception(Refused(422, "unreadable", in_one_line(error)))

    def close(self) -> None:
        """Nothing is read any more; what waits is told so."""
        self._ended = True
        self._taken.set()
        self._one_by_one.shutdown(wait=False, cancel_futures=False)
        for upload in list(self._by_name.values()):
            _refuse(upload, _ended())

    def _put(self, upload: _Upload) -> None:
        """Decodes a picture and leaves it in the mailbox, once the one before it has gone; in a thread of its own."""
        try:
            image = decode_image(upload.content, self.max_pixels)
        except FrameError as exc:
            _refuse(upload, Refused(422, "unreadable", in_one_line(exc)))
            return
        while not self._taken.wait(PUT_S) or self._is_over():
            if self._is_over():
                _refuse(upload, _ended())
                return
        number = next(self._numbers)
        name = NAMES[number % len(NAMES)]
        upload.content = b""
        frame = Frame(name, number, time.time(), self._monotonic(), image)
        self._by_name[name] = upload
        self._taken.clear()
        while not self._mailbox.put_waiting(frame, PUT_S):
            if self._is_over():
                _refuse(upload, _ended())
                return

    def _is_over(self) -> bool:
        """Whether nothing is read any more; also where the program ends without `close`, and waits for this thread."""
        return self._ended or self._mailbox.closed or not threading.main_thread().is_alive()

    def _one_less(self, _: Future[Reading]) -> None:
        with self._lock:
            self._waiting -= 1

    def _too_many(self) -> Refused:
        spent_s = list(self._spent_s)
        each_s = sum(spent_s) / len(spent_s) if spent_s else USUAL_S
        text = f"{self.most_waiting} pictures wait already (web.max_waiting_reads)"
        return Refused(429, "too_many", text, {"Retry-After": str(max(1, math.ceil(each_s * self.most_waiting)))})


def check_size(content: bytes, max_pixels: int) -> None:
    """Refused for what is no image, or has too many pixels; nothing is decoded."""
    try:
        header = read_header(content)
    except FrameError as exc:
        raise Refused(415, "no_image", in_one_line(exc)) from None
    if header.width_px * header.height_px > max_pixels:
        size = f"{header.width_px}x{header.height_px} pixels"
        raise Refused(413, "too_many_pixels", f"the picture has {size}; at most {max_pixels} (web.max_upload_pixels)")


def _refuse(upload: _Upload, refused: Refused) -> None:
    if not upload.answer.done():
        upload.answer.set_exception(refused)


def _tell_of_a_bug(upload: _Upload, put: Future[None]) -> None:
    """What nobody foresaw must not leave somebody waiting for ever."""
    if not put.cancelled() and (error := put.exception()) is not None:
        log.error("a picture was not decoded", exc_info=error)
        _refuse(upload, Refused(500, "internal", "this should not happen; the log of the agent tells more"))


def _ended() -> Refused:
    return Refused(503, "ended", "the agent ends or starts afresh: nothing is read now", {"Retry-After": "10"})
