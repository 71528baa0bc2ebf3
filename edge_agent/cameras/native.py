"""Native capture: the one place that opens a cv2.VideoCapture, and what must hold before one is opened."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping

import cv2

from edge_agent.cameras.base import Array
from edge_agent.errors import CameraError, ConfigError

# with any of these set, native code prints stream addresses, passwords included, to stderr past every log filter
_TALKATIVE = (
    "OPENCV_LOG_LEVEL",
    "OPENCV_VIDEOIO_DEBUG",
    "OPENCV_VIDEOCAPTURE_DEBUG",
    "OPENCV_FFMPEG_DEBUG",
)
_AV_LOG_QUIET = "-8"
_CV_LOG_SILENT = 0


def prepare_opencv() -> None:
    """Silences OpenCV's and FFmpeg's own logs, in this process and its children; call before threads.

    What goes wrong is said by CameraError and FrameError instead: once, without secrets and with a count.
    """
    for variable in _TALKATIVE:
        os.environ.pop(variable, None)
    os.environ["OPENCV_FFMPEG_LOGLEVEL"] = _AV_LOG_QUIET
    if hasattr(cv2, "setLogLevel"):  # OpenCV 4; OpenCV 5 has it in cv2.utils.logging alone
        cv2.setLogLevel(_CV_LOG_SILENT)
    else:
        cv2.utils.logging.setLogLevel(_CV_LOG_SILENT)


def opencv_has(library: str, build_information: str | None = None) -> bool:
    """Whether this OpenCV was built with `library` ("GStreamer", "FFMPEG"), by its own build information."""
    text = cv2.getBuildInformation() if build_information is None else build_information
    return re.search(rf"^\s*{re.escape(library)}:\s*YES", text, re.MULTILINE | re.IGNORECASE) is not None


def opencv_has_gstreamer(build_information: str | None = None) -> bool:
    """Whether this OpenCV can run GStreamer pipelines: JetPack's can, those that pip installs cannot."""
    return opencv_has("GStreamer", build_information)


def gstreamer_missing(purpose: str, build_information: str | None = None) -> str | None:
    """None where OpenCV has GStreamer, else what is wrong and how to mend it, in one line."""
    if opencv_has_gstreamer(build_information):
        return None
    return (
        f"{purpose} needs an OpenCV with GStreamer; this one (version {cv2.__version__}, {cv2.__file__}) has none. "
        "On a Jetson: pip uninstall opencv-python opencv-python-headless opencv-contrib-python, then use JetPack's "
        "own (apt install libopencv-python) from a venv made with --system-site-packages"
    )


def require_gstreamer(purpose: str) -> None:
    """Raises ConfigError, because no retry mends a missing GStreamer."""
    problem = gstreamer_missing(purpose)
    if problem is not None:
        raise ConfigError(problem)


def timeouts(open_timeout_s: float, read_timeout_s: float) -> dict[int, int]:
    """Capture properties for both time-outs; FFmpeg and GStreamer honour them only from the constructor."""
    return {
        cv2.CAP_PROP_OPEN_TIMEOUT_MSEC: max(1, round(open_timeout_s * 1000)),
        cv2.CAP_PROP_READ_TIMEOUT_MSEC: max(1, round(read_timeout_s * 1000)),
    }


class NativeCapture:
    """An open cv2.VideoCapture. One thread uses it: the one that made it."""

    def __init__(self, source: str, api: int, shown: str, params: Mapping[int, int] | None = None) -> None:
        """Opens `source` with exactly the backend `api`; `shown` stands for it in messages (no secrets in it).

        Raises CameraError when it does not open.
        """
        self.shown = shown
        started = time.monotonic()
        try:
            self._capture = cv2.VideoCapture(source, api, [n for pair in (params or {}).items() for n in pair])
        except cv2.error:
            raise CameraError(f"{shown} cannot be opened by OpenCV {cv2.__version__}") from None  # may quote the source
        if not self._capture.isOpened():
            self._capture.release()
            raise CameraError(f"{shown} did not open (gave up after {time.monotonic() - started:.1f} s)")

    def read(self) -> Array | None:
        """The next decoded picture as OpenCV gives it; None at the end, after a time-out, or when it is lost."""
        try:
            ok, picture = self._capture.read()
        except cv2.error:
            raise CameraError(f"{self.shown}: reading failed inside OpenCV {cv2.__version__}") from None
        return picture if ok else None

    def get(self, prop: int) -> float:
        """A cv2.CAP_PROP_* value as the backend reports it; 0 where it does not know."""
        return float(self._capture.get(prop))

    def set(self, prop: int, value: float) -> None:
        """Asks for a cv2.CAP_PROP_* value. A backend may say yes and do no such thing: look at the frames."""
        self._capture.set(prop, value)

    def close(self) -> None:
        """Releases the capture; calling it again does nothing."""
        self._capture.release()
