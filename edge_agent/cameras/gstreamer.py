"""GStreamer pipelines as text: pure functions, so that what is asked of a Jetson can be read and tested anywhere."""

from __future__ import annotations

# nvvidconv turns NVMM memory into BGRx on the video engine; only the last step, BGRx to BGR, costs the CPU.
# One buffer, the older one dropped: the newest frame wins here too.
_TO_BGR = (
    "nvvidconv ! video/x-raw,format=BGRx ! videoconvert ! video/x-raw,format=BGR ! "
    "appsink drop=true max-buffers=1 sync=false"
)


def csi_pipeline(sensor_id: int, width_px: int | None, height_px: int | None) -> str:
    """A CSI camera through the ISP (nvarguscamerasrc) to BGR; without a size, the sensor's first mode."""
    caps = ["video/x-raw(memory:NVMM)", "format=NV12"]
    if width_px is not None:
        caps.append(f"width={width_px}")
    if height_px is not None:
        caps.append(f"height={height_px}")
    return f"nvarguscamerasrc sensor-id={sensor_id} ! {','.join(caps)} ! {_TO_BGR}"


def rtsp_pipeline(url: str, latency_ms: int = 200) -> str:
    """An RTSP stream over TCP, H.264 or H.265 decoded by the Jetson's own decoder, to BGR.

    `url` with user and password percent-encoded, so the pipeline is as secret as the password.
    """
    return (
        f"rtspsrc location={quoted(url)} protocols=tcp latency={latency_ms} ! "
        f"application/x-rtp,media=video ! decodebin ! {_TO_BGR}"
    )


def quoted(text: str) -> str:
    r"""`text` as one quoted value of gst_parse_launch: nothing in it can end the value or add an element."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
