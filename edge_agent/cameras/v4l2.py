"""V4L2: USB and other cameras of the Linux kernel, found again under their own name after every unplugging."""

from __future__ import annotations

import logging
import math
import os
import re
from pathlib import Path

import cv2

from edge_agent.cameras.base import Image
from edge_agent.cameras.native import NativeCapture, prepare_opencv
from edge_agent.cameras.path_identity import PathIdentity
from edge_agent.cameras.pixels import to_bgr
from edge_agent.errors import CameraError
from edge_agent.settings.cameras import CameraConfig

log = logging.getLogger(__name__)

PREFERRED_FORMAT = "MJPG"  # raw YUYV of 1280x720 at 30 frames/s does not fit through USB 2


class V4l2Camera:
    """A camera at /dev/v4l/by-id/..., /dev/v4l/by-path/... or, with a warning, a number such as 0.

    The link is resolved at every open. A number is tied to the camera's by-id name when it is first opened, and
    that name is followed from then on: numbers change hands when cameras are unplugged.
    """

    def __init__(self, name: str, config: CameraConfig, *, dev: Path = Path("/dev"), api: int = cv2.CAP_V4L2) -> None:
        prepare_opencv()
        os.environ.setdefault("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT", str(math.ceil(config.read_timeout_s)))
        self.name = name
        self._config = config
        self._by_id = dev / "v4l" / "by-id"
        self._api = api
        self._path = dev / f"video{int(config.source)}" if config.source.isdecimal() else Path(config.source)
        self._numbered = re.fullmatch(r"video\d+", self._path.name) is not None and self._path.parent == dev
        self._capture: NativeCapture | None = None
        self._identity: PathIdentity | None = None

    def open(self) -> None:
        """Opens whatever the configured name leads to now; CameraError when it leads nowhere."""
        self.close()
        identity = PathIdentity(self._path)
        if self._numbered:
            identity = self._tie_to_stable_name(identity)
        capture = NativeCapture(str(identity.target), self._api, str(self._path))
        try:
            self._ask_for_format(capture)
            identity.check()  # the link may have moved while the device was opening
        except CameraError:
            capture.close()
            raise
        self._capture, self._identity = capture, identity

    def read(self) -> Image | None:
        """The next picture; CameraError when none comes or the configured name leads elsewhere by now."""
        if self._capture is None or self._identity is None:
            raise CameraError(f"{self._path} is not open; call open first")
        picture = self._capture.read()
        self._identity.check()
        if picture is None:
            raise CameraError(f"{self._path} ({self._identity.target}) gave no picture; is another program using it?")
        return to_bgr(picture, self._config.max_pixels, self._config.bit_depth)

    def close(self) -> None:
        """Releases the device."""
        if self._capture is not None:
            self._capture.close()
        self._capture = self._identity = None

    def _stable_names(self, target: Path | None = None) -> list[Path]:
        """Links in by-id, in order; with `target`, those that lead to it."""
        links = sorted(self._by_id.iterdir()) if self._by_id.is_dir() else []
        return [link for link in links if target is None or Path(os.path.realpath(link)) == target]

    def _tie_to_stable_name(self, identity: PathIdentity) -> PathIdentity:
        """The identity of the by-id link that leads to this device, if there is one; warns, once, in either case."""
        self._numbered = False
        names = self._stable_names(identity.target)
        if not names:
            others = ", ".join(map(str, self._stable_names())) or "none"
            log.warning(
                "camera %s: %s has no stable name in %s; after unplugging, this number may be another camera (by-id "
                "names present: %s)",
                self.name,
                self._path,
                self._by_id,
                others,
            )
            return identity
        log.warning(
            "camera %s: %s is a number that changes when cameras are unplugged; set source: %s (followed from now on)",
            self.name,
            self._path,
            " or ".join(map(str, names)),
        )
        self._path = names[0]
        return PathIdentity(self._path)

    def _ask_for_format(self, capture: NativeCapture) -> None:
        """Requests format and size, in the order V4L2 needs; what comes is seen on the frames, not in `get`."""
        wanted = (self._config.pixel_format or PREFERRED_FORMAT).ljust(4)
        capture.set(cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*wanted))
        if self._config.width_px is not None:
            capture.set(cv2.CAP_PROP_FRAME_WIDTH, self._config.width_px)
        if self._config.height_px is not None:
            capture.set(cv2.CAP_PROP_FRAME_HEIGHT, self._config.height_px)
        if self._config.bit_depth is not None:
            capture.set(cv2.CAP_PROP_CONVERT_RGB, 0)  # else OpenCV cuts 16-bit grey down to its upper 8 bits
        given = int(capture.get(cv2.CAP_PROP_FOURCC)).to_bytes(4, "little").decode("latin-1")
        if self._config.pixel_format is not None and given != wanted:
            log.warning("camera %s: asked for pixel format %r, the device gives %r", self.name, wanted, given)
