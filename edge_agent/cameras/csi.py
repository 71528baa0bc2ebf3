"""CSI: a Jetson's ribbon-cable cameras, through NVIDIA's camera daemon (Argus) and GStreamer."""

from __future__ import annotations

from pathlib import Path

import cv2

from edge_agent.cameras.base import Image
from edge_agent.cameras.gstreamer import csi_pipeline
from edge_agent.cameras.live_stream import LiveStream
from edge_agent.cameras.native import gstreamer_missing, prepare_opencv
from edge_agent.errors import CameraError, ConfigError
from edge_agent.settings.cameras import CameraConfig

ARGUS_SOCKET = Path("/tmp/argus_socket")  # where nvargus-daemon listens
CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))


class CsiCamera:
    """Sensor number `source`: 0 or csi://0. Opens only where OpenCV has GStreamer and the daemon answers."""

    def __init__(
        self,
        name: str,
        config: CameraConfig,
        *,
        argus_socket: Path = ARGUS_SOCKET,
        container_marks: tuple[Path, ...] = CONTAINER_MARKS,
        build_information: str | None = None,
    ) -> None:
        """Raises ConfigError, naming every obstacle that no retry can remove."""
        prepare_opencv()
        obstacles = csi_obstacles(argus_socket, container_marks, build_information)
        if obstacles:
            raise ConfigError(f"cameras.{name} (csi): " + "; also: ".join(obstacles))
        self.name = name
        self._argus_socket = argus_socket
        sensor_id = int(config.source.removeprefix("csi://"))
        self._pipeline = csi_pipeline(sensor_id, config.width_px, config.height_px)
        advice = "; if this stays, systemctl restart nvargus-daemon"
        self._stream = LiveStream(f"csi sensor {sensor_id}", config, advice)

    def open(self) -> None:
        """Starts the sensor; CameraError when the daemon does not give it."""
        self.close()
        if not self._argus_socket.exists():
            raise CameraError(
                f"{self._stream.shown}: no {self._argus_socket}; is it running? systemctl restart nvargus-daemon"
            )
        self._stream.open(self._pipeline, cv2.CAP_GSTREAMER)

    def read(self) -> Image | None:
        """The next picture; CameraError when none came within read_timeout_s."""
        return self._stream.read()

    def close(self) -> None:
        """Stops the sensor: a session left open blocks the next one until the daemon restarts."""
        self._stream.close()


def csi_obstacles(
    argus_socket: Path = ARGUS_SOCKET,
    container_marks: tuple[Path, ...] = CONTAINER_MARKS,
    build_information: str | None = None,
) -> list[str]:
    """What stands between this process and a CSI camera for good, a line each; empty where nothing does."""
    obstacles = []
    if any(mark.exists() for mark in container_marks) and not argus_socket.exists():
        obstacles.append(
            f"this container does not see the camera daemon; mount its socket: -v {argus_socket}:{argus_socket}"
        )
    missing = gstreamer_missing("a CSI camera", build_information)
    return [*obstacles, missing] if missing else obstacles
