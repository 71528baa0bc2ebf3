"""Trial: is a new configuration as good as the one before? Figures of both, compared; all pure.

Compared are cameras that both have, reading the same source: those that were online must be, frames must be read about
as fast, and text be found in about as many of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import sqrt
from typing import Any

from edge_agent.config import Config
from edge_agent.settings.remote import RemoteConfig

MIN_SPAN_S = 2.0  # a shorter look says nothing about rates
SURENESS_Z = 1.645  # of a share, one-sided 95 %
ONLINE = ("online", "ended")  # a file that has come to its end is no camera that was lost
WELL = ("running", "calibrating")


@dataclass(frozen=True)
class Look:
    """What was counted until one moment: frames read and those with text, by camera, since the start; each camera's
    state now; how the pipeline is (a state of health)."""

    mono: float
    frames: Mapping[str, int] = field(default_factory=dict)
    with_text: Mapping[str, int] = field(default_factory=dict)
    cameras: Mapping[str, str] = field(default_factory=dict)
    pipeline: str = "running"


@dataclass(frozen=True)
class Figures:
    """What happened over `span_s`: frames read and with text by camera; cameras online and pipeline at its end."""

    span_s: float
    frames: Mapping[str, int]
    with_text: Mapping[str, int]
    online: tuple[str, ...]
    pipeline: str

    def fps(self, cameras: Collection[str]) -> dict[str, float]:
        """Frames read a second, by camera."""
        return {camera: self.frames.get(camera, 0) / self.span_s for camera in cameras}

    def read_share(self, cameras: Collection[str]) -> tuple[float, float, float] | None:
        """Share of the frames in which text was found: as counted, and between which bounds it surely lies, the wider
        the fewer frames (Wilson, 1927); None without any frame."""
        frames = sum(self.frames.get(camera, 0) for camera in cameras)
        if frames == 0:
            return None
        share, z2 = sum(self.with_text.get(camera, 0) for camera in cameras) / frames, SURENESS_Z**2
        middle = (share + z2 / (2 * frames)) / (1 + z2 / frames)
        half = sqrt(share * (1 - share) / frames + z2 / (4 * frames**2)) * SURENESS_Z / (1 + z2 / frames)
        return share, max(0.0, middle - half), min(1.0, middle + half)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "online": list(self.online)}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Figures:
        """The inverse of `to_json`."""
        return Figures(**{**value, "online": tuple(value["online"])})


def between(earlier: Look, later: Look) -> Figures | None:
    """What happened between two looks; None where they are too near one another."""
    span_s = later.mono - earlier.mono
    if span_s < MIN_SPAN_S:
        return None
    return Figures(
        span_s,
        {camera: count - earlier.frames.get(camera, 0) for camera, count in later.frames.items()},
        {camera: count - earlier.with_text.get(camera, 0) for camera, count in later.with_text.items()},
        tuple(sorted(camera for camera, state in later.cameras.items() if state in ONLINE)),
        later.pipeline,
    )


def faults(old: Config, new: Config, before: Figures | None, now: Figures) -> list[str]:
    """Why a configuration has not passed its trial; empty where it has. `before`: of `old`, None where it did not run
    for long enough."""
    found = list(_cameras_lost(old, new, before, now))
    if before is not None:
        found += _slower(old, new, before, now)
        found += _reads_less(old, new, before, now)
    if now.pipeline not in WELL and (before is None or before.pipeline in WELL):
        found.append(f"the pipeline is {now.pipeline}")
    return found


def _same(old: Config, new: Config) -> list[str]:
    """Cameras that both read, from the same source."""
    return [
        name
        for name, camera in new.cameras.items()
        if camera.enabled
        and (was := old.cameras.get(name)) is not None
        and was.enabled
        and (was.kind, was.source) == (camera.kind, camera.source)
    ]


def _cameras_lost(old: Config, new: Config, before: Figures | None, now: Figures) -> Iterator[str]:
    same = _same(old, new)
    for name, camera in new.cameras.items():
        expected = name not in same or (before is not None and name in before.online)
        if camera.enabled and expected and name not in now.online:
            yield f"camera {name} is not online" + (", and was before" if name in same else "")


def _slower(old: Config, new: Config, before: Figures, now: Figures) -> Iterator[str]:
    settings: RemoteConfig = new.remote
    same = _same(old, new)
    were, are = before.fps(same), now.fps(same)
    for name in same:
        limit = new.cameras[name].max_fps
        were[name] = were[name] if limit is None else min(were[name], limit)
    total_before, total = sum(were.values()), sum(are.values())
    # one frame more or less within the span is chance
    if total + 1.0 / now.span_s < settings.min_fps_share * total_before:
        yield (
            f"{total:.2f} frames/s were read, {total_before:.2f} before; "
            f"expected a share of {settings.min_fps_share:g} at least (remote.min_fps_share)"
        )


def _reads_less(old: Config, new: Config, before: Figures, now: Figures) -> Iterator[str]:
    settings = new.remote
    same = _same(old, new)
    was, is_ = before.read_share(same), now.read_share(same)
    # a share of few frames is chance: it must be surely lower
    if was is not None and is_ is not None and is_[2] < settings.min_read_share * was[1]:
        yield (
            f"text was found in {is_[0]:.0%} of the frames, in {was[0]:.0%} before; "
            f"expected a share of {settings.min_read_share:g} at least (remote.min_read_share)"
        )
