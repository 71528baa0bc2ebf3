"""Remote: what may be changed and asked for from afar."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from edge_agent.settings.keys import covers, leaves
from edge_agent.settings.scalars import LocalPath, Seconds, Share
from edge_agent.settings.section import Section

# what is never changed from afar, whatever remote.allowed_keys says: how the device is reached, and what it trusts.
# Neither is any path, nor any password.
LOCAL_ONLY = ("device_id", "mqtt", "remote", "transport", "web")


def _remote_key(pattern: str) -> str:
    from edge_agent.config import Config  # late: the keys that there are, this section's own among them

    blocks = {"cameras": {"*": {"rois": {"*": {}}}}, "fields": {"custom": {"*": {}}}}
    covered = [leaf.path for leaf in leaves(Config, blocks) if covers(pattern, leaf.path)]
    forbidden = [str(path[0]) for path in [*covered, tuple(pattern.split("."))] if path[0] in LOCAL_ONLY]
    if forbidden:
        raise ValueError(f"{forbidden[0]} is never changed from afar")
    if not covered:
        raise ValueError("names no key; expected one such as fields, log.level or cameras.*.max_fps")
    return pattern


def _camera_host(text: str) -> str:
    if re.fullmatch(r"(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?", text) and not re.fullmatch(
        r"[\d.]+", text
    ):
        return text
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError("expected names, *.names, IP addresses or networks such as 192.0.2.0/24") from None
    return text


def _whole_path(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("is relative; write a path in full, from / on")
    return path


FullPath = Annotated[LocalPath, AfterValidator(_whole_path)]
RemoteKey = Annotated[str, AfterValidator(_remote_key)]
CameraHost = Annotated[str, Field(max_length=253), AfterValidator(_camera_host)]
CameraScheme = Literal["csi", "file", "http", "https", "rtsp", "rtsps", "v4l2"]
CommandName = Literal[
    "calibrate",
    "config-history",
    "ledger",
    "log-level",
    "ping",
    "rebuild",
    "replay",
    "restart",
    "rollback",
    "snapshot",
]


class RemoteConfig(Section):
    """What may be changed and asked for from afar, by config/desired and command/<name>."""

    enabled: bool = True
    """false: what comes is counted and ignored, and what came before is not in force."""
    allowed_keys: tuple[RemoteKey, ...] = (
        "cameras.*.enabled",
        "cameras.*.expected",
        "cameras.*.items",
        "cameras.*.max_fps",
        "cameras.*.rois",
        "fields",
        "items",
        "log.level",
        "pipeline",
        "telemetry.interval_s",
    )
    """Keys that may be changed, or sections for all of their keys; never mqtt, remote, transport, web or paths."""
    camera_schemes: tuple[CameraScheme, ...] = ("csi", "rtsp", "rtsps", "v4l2")
    """Where a camera's source from afar may lead, where its key is allowed; file: into camera_folders."""
    camera_hosts: tuple[CameraHost, ...] = ()
    """Hosts of cameras: names, *.names, addresses, networks; none: IP addresses but the device's own and the like."""
    camera_folders: tuple[FullPath, ...] = ()
    """Folders in which stored sources from afar may lie."""
    max_bytes: Annotated[int, Field(ge=1024, le=1_048_576)] = 65_536
    """Largest text of a configuration or command, bytes; looked at before it is parsed."""
    trial_s: Seconds = 60.0
    """How long a new configuration runs on trial, s, before it is kept."""
    trial_starts: Annotated[int, Field(ge=1, le=20)] = 3
    """Starts that a configuration on trial may take; one more means that it crashes, and the last good one returns."""
    min_fps_share: Share = 0.5
    """Frames read in a second on trial, as a share of before, 0 to 1, below which the last good one returns."""
    min_read_share: Share = 0.5
    """Share of frames with text, as a share of before, 0 to 1, below which it returns; 0: not judged."""
    kept_texts: Annotated[int, Field(ge=1, le=1000)] = 20
    """Configurations from afar that are remembered with their texts, refused ones too."""
    commands: tuple[CommandName, ...] = get_args(CommandName)
    """Commands that are carried out."""
    command_rate_per_min: Annotated[int, Field(ge=1, le=6000)] = 60
    """Most commands in a minute; more are answered busy."""
    kept_command_ids: Annotated[int, Field(ge=16, le=10_000)] = 256
    """Commands whose ids and answers are remembered, so that each runs once."""
