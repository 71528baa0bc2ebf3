"""Video: a file played like a camera, or frame by frame."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import cv2

from edge_agent.cameras.base import Camera, Clock, Image
from edge_agent.cameras.mjpeg import MjpegCamera
from edge_agent.cameras.native import NativeCapture, opencv_has, prepare_opencv
from edge_agent.cameras.pace import Pace
from edge_agent.cameras.path_identity import PathIdentity
from edge_agent.cameras.pixels import to_bgr
from edge_agent.errors import CameraError
from edge_agent.settings.cameras import CameraConfig
from edge_agent.settings.sources import is_address

log = logging.getLogger(__name__)

ASSUMED_FPS = 25.0  # for files that do not say, or say something impossible
FASTEST_FPS = 1000.0


class VideoCamera:
    """A video file, its path resolved at every open.

    pace live: at the file's own frames per second, and noticing when the path leads elsewhere (a replaced file is
    opened afresh). pace every_frame: as fast as `read` is called. `loop` begins again at the end.
    """

    def __init__(self, name: str, config: CameraConfig, *, clock: Clock | None = None) -> None:
        prepare_opencv()
        self.name = name
        self._config = config
        self._path = Path(config.source).absolute()  # never a protocol of FFmpeg's (http:, concat:, -)
        self._live = config.pace == "live"
        self._pace = Pace(0.0, clock or Clock())
        self._capture: NativeCapture | None = None
        self._identity: PathIdentity | None = None
        self._frames = 0
        self._said_short = False

    @property
    def fps(self) -> float:
        """Frames per second that the open file declares; ASSUMED_FPS where it declares nonsense."""
        declared = self._capture.get(cv2.CAP_PROP_FPS) if self._capture is not None else 0.0
        return declared if math.isfinite(declared) and 0 < declared <= FASTEST_FPS else ASSUMED_FPS

    def open(self) -> None:
        """Opens the file at its beginning; CameraError when it is not there or no video."""
        self.close()
        identity = PathIdentity(self._path)
        if not self._path.is_file():
            raise CameraError(f"{self._path} is not a file; for a folder of images set kind: folder")
        try:
            self._capture = NativeCapture(str(self._path), _file_api(), str(self._path))
        except CameraError as exc:
            raise CameraError(
                f"{self._path} is no video that OpenCV {cv2.__version__} can open, or is damaged"
            ) from exc
        self._identity, self._frames = identity, 0
        self._pace.interval_s = 1.0 / self.fps if self._live else 0.0

    def read(self) -> Image | None:
        """The next picture, when it is due; None at the end of the file unless it loops.

        Raises CameraError for a file without a single picture, and in live pace when the path leads elsewhere.
        """
        if self._capture is None or self._identity is None:
            raise CameraError(f"{self._path} is not open; call open first")
        self._pace.wait()
        if self._live:
            self._identity.check()
        picture = self._capture.read()
        if picture is None:
            self._note_end()
            if not self._config.loop:
                return None
            self.open()
            picture = self._capture.read()
        if picture is None:
            raise CameraError(f"{self._path} gives no picture; is it a damaged video?")
        self._frames += 1
        self._pace.given()
        return to_bgr(picture, self._config.max_pixels)

    def close(self) -> None:
        """Closes the file."""
        if self._capture is not None:
            self._capture.close()
        self._capture = self._identity = None
        self._pace.restart()

    def _note_end(self) -> None:
        """Raises CameraError for a file without a picture; warns where fewer came than the file declares."""
        if self._frames == 0:
            raise CameraError(f"{self._path} gives no picture; is it a damaged video?")
        declared = self._capture.get(cv2.CAP_PROP_FRAME_COUNT) if self._capture is not None else 0.0
        if declared - self._frames > 1 and not self._said_short:  # containers are often off by one
            self._said_short = True
            log.warning("camera %s: %s ends after %d of %d frames", self.name, self._path, self._frames, declared)


def video_camera(name: str, config: CameraConfig) -> Camera:
    """The camera for `kind: video`: an http address is a stream of JPEGs, everything else a file."""
    return MjpegCamera(name, config) if is_address(config.source) else VideoCamera(name, config)


def _file_api() -> int:
    """FFmpeg where OpenCV has it, else GStreamer; by name, or a numbered file name is taken for a picture series."""
    if opencv_has("FFMPEG"):
        return int(cv2.CAP_FFMPEG)
    return int(cv2.CAP_GSTREAMER) if opencv_has("GStreamer") else int(cv2.CAP_ANY)
