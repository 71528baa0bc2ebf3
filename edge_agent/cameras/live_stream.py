"""LiveStream: a camera's stream that OpenCV reads, opened anew each time it was lost."""

from __future__ import annotations

from edge_agent.cameras.base import Image
from edge_agent.cameras.native import NativeCapture, timeouts
from edge_agent.cameras.pixels import to_bgr
from edge_agent.errors import CameraError
from edge_agent.settings.cameras import CameraConfig


class LiveStream:
    """One capture at a time, with the time-outs of `config`; `shown` stands for it in messages, `advice` is added where
    no picture comes. One thread uses it."""

    def __init__(self, shown: str, config: CameraConfig, advice: str) -> None:
        self.shown = shown
        self._config = config
        self._advice = advice
        self._capture: NativeCapture | None = None

    def open(self, source: str, api: int) -> None:
        """Opens `source` with exactly the backend `api`: found by trial, it ignores the time-outs and waits 30 s.

        CameraError when it does not open within open_timeout_s. What was open is to be closed before.
        """
        params = timeouts(self._config.open_timeout_s, self._config.read_timeout_s)
        self._capture = NativeCapture(source, api, self.shown, params)

    def read(self) -> Image:
        """The next picture; CameraError when none came within read_timeout_s or the stream ended."""
        if self._capture is None:
            raise CameraError(f"{self.shown} is not open; call open first")
        picture = self._capture.read()
        if picture is None:
            raise CameraError(f"{self.shown} gave no picture within {self._config.read_timeout_s:g} s{self._advice}")
        return to_bgr(picture, self._config.max_pixels)

    def close(self) -> None:
        """Releases the capture; calling it again does nothing."""
        if self._capture is not None:
            self._capture.close()
        self._capture = None
