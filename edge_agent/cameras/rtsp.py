"""RTSP: network cameras, with time-outs that hold and a password that nobody sees."""

from __future__ import annotations

import os

import cv2

from edge_agent.cameras.base import Image
from edge_agent.cameras.gstreamer import rtsp_pipeline
from edge_agent.cameras.live_stream import LiveStream
from edge_agent.cameras.native import opencv_has, prepare_opencv, require_gstreamer
from edge_agent.errors import CameraError, ConfigError
from edge_agent.secrets import masked, read_password_file, with_password
from edge_agent.settings.cameras import CameraConfig

# tcp: FFmpeg's own choice may be UDP, which smears on a busy network and which firewalls drop. fpsprobesize 0: it
# else waits for some 20 frames to guess the rate, which at 1 frame/s is 5 s, as long as the time-out for opening
# (measured: 5.0 s with, 1.0 s without; at 25 frames/s 0.9 s and 0.05 s). protocol_whitelist: what a stream, or a stored
# film, may open beside itself; FFmpeg 8 (libavformat 62) then follows no redirect to another rtsp:// address, FFmpeg 5
# (59) still does (both seen). Not overridden where already set.
FFMPEG_OPTIONS = "rtsp_transport;tcp|fpsprobesize;0|protocol_whitelist;file,tcp,tls"


class RtspCamera:
    """A stream over RTSP and TCP, decoded by FFmpeg on the CPU or by GStreamer on a Jetson's decoder.

    The password is read from password_file at every open, so a changed one needs no restart.
    """

    def __init__(self, name: str, config: CameraConfig) -> None:
        """Raises ConfigError for a password file or decoder that cannot work."""
        prepare_opencv()
        os.environ.setdefault("OPENCV_FFMPEG_CAPTURE_OPTIONS", FFMPEG_OPTIONS)
        self.name = name
        self._config = config
        self._stream = LiveStream(masked(config.source), config, ", or hung up")
        self._password: str | None = None
        self._password_stamp: tuple[int, int] | None = None
        self._read_password()
        self._gstreamer = self._use_gstreamer()
        if self._gstreamer:
            os.environ.pop("GST_DEBUG", None)  # at level 5 and above it prints the pipeline with the password

    def open(self) -> None:
        """Opens the stream within open_timeout_s or raises CameraError."""
        self.close()
        try:
            self._read_password()
        except ConfigError as exc:  # it was there at start-up: being replaced, perhaps
            raise CameraError(str(exc)) from exc
        url = with_password(self._config.source, self._password)
        source = rtsp_pipeline(url) if self._gstreamer else url
        api = cv2.CAP_GSTREAMER if self._gstreamer else cv2.CAP_FFMPEG
        self._stream.open(source, api)

    def read(self) -> Image | None:
        """The next picture; CameraError when none came within read_timeout_s or the stream ended."""
        return self._stream.read()

    def close(self) -> None:
        """Ends the stream."""
        self._stream.close()

    def _read_password(self) -> None:
        """Reads password_file where it is new or has changed; ConfigError when it cannot be used."""
        path = self._config.password_file
        if path is None:
            return
        try:
            status = path.stat()
        except OSError as exc:
            raise ConfigError(f"cameras.{self.name}.password_file {path} cannot be read: {exc.strerror}") from exc
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp != self._password_stamp:
            self._password, self._password_stamp = read_password_file(path), stamp

    def _use_gstreamer(self) -> bool:
        if self._config.decoder == "gstreamer":
            require_gstreamer(f"cameras.{self.name}.decoder: gstreamer")
            return True
        if opencv_has("FFMPEG"):
            return False
        if self._config.decoder == "ffmpeg":
            raise ConfigError(f"cameras.{self.name}.decoder is ffmpeg; this OpenCV ({cv2.__file__}) was built without")
        require_gstreamer(f"cameras.{self.name} (rtsp, and this OpenCV has no FFmpeg)")
        return True
