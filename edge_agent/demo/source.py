"""Source: what the user typed after --source becomes a camera block of config.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from edge_agent.cameras.image_file import SUFFIXES, is_image
from edge_agent.errors import ConfigError

EXPECTED = (
    "expected a camera (/dev/video0, csi://0), a stream (rtsp://..., or http://... for motion JPEG), a video or image "
    "file, or a folder of images"
)


def camera_block(source: str) -> dict[str, Any]:
    """The camera's settings. Raises ConfigError for what does not exist or is none of these; never shows a password."""
    scheme = source.partition("://")[0].lower() if "://" in source else ""
    if scheme in ("rtsp", "rtsps"):
        return {"kind": "rtsp", "source": source}
    if scheme in ("http", "https"):
        return {"kind": "video", "source": source}
    if scheme == "csi":
        return {"kind": "csi", "source": _csi_sensor(source)}
    if scheme and scheme != "file":
        raise ConfigError(f"a source cannot be a {scheme}:// address; {EXPECTED}")
    path = Path(unquote(urlsplit(source).path) if scheme else source).expanduser().absolute()
    try:
        if source.isdecimal() and not path.exists():
            path = Path(f"/dev/video{source}")
        return _v4l2(path) if path.is_relative_to("/dev") else _stored(path)
    except OSError as exc:
        raise ConfigError(f"{path} cannot be looked at: {exc.strerror}") from exc


def _csi_sensor(source: str) -> str:
    sensor = source.partition("://")[2]
    if not (sensor.isascii() and sensor.isdecimal()):
        raise ConfigError(f"{source!r} names no CSI sensor; write its number: csi://0")
    return sensor


def _v4l2(path: Path) -> dict[str, Any]:
    if path.is_char_device():
        return {"kind": "v4l2", "source": str(path)}
    present = sorted(str(p) for p in (*Path("/dev/v4l/by-id").glob("*"), *Path("/dev").glob("video*")))
    here = f"these cameras are here: {', '.join(present)}" if present else "this machine has no /dev/video* at all"
    raise ConfigError(f"there is no camera {path}; {here}. Is it plugged in, and passed into the container?")


def _stored(path: Path) -> dict[str, Any]:
    """A video plays at its own pace; images come one after the other, none left out."""
    if not path.exists():
        raise ConfigError(f"there is no {path}; {EXPECTED}")
    if path.is_dir() and not any(_is_shown(entry) for entry in path.iterdir()):
        raise ConfigError(f"there is no image in the folder {path}; known endings: {', '.join(sorted(SUFFIXES))}")
    if not (path.is_dir() or path.is_file()):
        raise ConfigError(f"{path} is neither file nor folder; {EXPECTED}")
    if path.is_dir() or is_image(path):
        return {"kind": "folder", "source": str(path), "pace": "every_frame"}
    return {"kind": "video", "source": str(path)}


def _is_shown(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
