"""Cooling: reads fewer frames before the board slows itself down, and all of them again when it has cooled.

`next_step` is the whole policy, pure: from a step and the board's signs to the next step.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from edge_agent.cameras.capture import CaptureThread
from edge_agent.settings.thermal import ThermalConfig
from edge_agent.telemetry.watch import Signs

# level -> share of the frames that are read, and how that is said
SHARES = (1.0, 0.75, 0.5, 0.25)
WORDS = ("every frame", "three of four frames", "every second frame", "every fourth frame")
HOTTEST = len(SHARES) - 1
LOOK_AGAIN_S = 1.0


@dataclass(frozen=True)
class Step:
    """Where the policy stands. `reason` is for people, None at level 0; times are monotonic seconds: when the level
    changed, and when the board was last held back."""

    level: int = 0
    reason: str | None = None
    since_mono: float = float("-inf")
    pushed_mono: float = float("-inf")

    @property
    def share(self) -> float:
        """Of the frames that were read before it got hot."""
        return SHARES[self.level]


def next_step(step: Step, signs: Signs, at_mono: float, bounds: ThermalConfig) -> Step:
    """Up at once to the level that the hottest zone asks for; up by one when the board was held back, once in dwell_s;
    down by one when all zones are hysteresis_c below the level's bound and the level is dwell_s old.

    Without any temperature a level that is there stays: a sensor that is lost has not cooled.
    """
    if not bounds.enabled:
        return Step()
    pushed = bool(signs.over_current or signs.slowed)
    if pushed:
        step = replace(step, pushed_mono=at_mono)
    zones = {zone: celsius for zone, celsius in signs.temp_c.items() if _bound_c(zone, bounds) is not None}
    asked = max((_level(zone, celsius, bounds) for zone, celsius in zones.items()), default=0)
    if asked > step.level:
        return _at(step, asked, _heat(zones, bounds), at_mono)
    if at_mono - step.since_mono < bounds.dwell_s:
        return step
    if pushed and step.level < HOTTEST:
        return _at(step, step.level + 1, _held_back(signs), at_mono)
    kept = max((_level(zone, celsius + bounds.hysteresis_c, bounds) for zone, celsius in zones.items()), default=0)
    cooled = bool(zones) and kept < step.level and at_mono - step.pushed_mono >= bounds.dwell_s
    if step.level == 0 or not cooled:
        return step
    return _at(step, step.level - 1, _heat(zones, bounds), at_mono)


def _at(step: Step, level: int, cause: str, at_mono: float) -> Step:
    reason = f"{cause}; reading {WORDS[level]}" if level else None
    return replace(step, level=level, reason=reason, since_mono=at_mono)


def _level(zone: str, celsius: float, bounds: ThermalConfig) -> int:
    """What a zone of that temperature asks for."""
    over_c = celsius - (_bound_c(zone, bounds) or 0.0)
    return 0 if over_c < 0 else min(HOTTEST, 1 + int(over_c / bounds.step_c))


def _bound_c(zone: str, bounds: ThermalConfig) -> float | None:
    """Where the first level of a zone begins; None for one that is none of the chip's."""
    match = re.fullmatch(r"(cpu|gpu|cv|soc|tj)[0-9]*(?:_[0-9]+)?", zone)
    if match is None:
        return None
    return {"cpu": bounds.cpu_c, "gpu": bounds.gpu_c, "tj": bounds.tj_c}.get(match[1], bounds.soc_c)


def _heat(zones: Mapping[str, float], bounds: ThermalConfig) -> str:
    zone = max(zones, key=lambda name: zones[name] - (_bound_c(name, bounds) or 0.0))
    return f"hot: {zone} {zones[zone]:.0f} C"


def _held_back(signs: Signs) -> str:
    return f"held back: {', '.join(signs.slowed)}" if signs.slowed else "held back by its supply (over-current)"


class Brake:
    """Holds cameras to a share of the rate at which each was read before it got hot. One thread.

    `processed_fps` gives that rate by camera, None where it is not known yet; `clock` monotonic seconds.
    """

    def __init__(
        self,
        cameras: Sequence[CaptureThread],
        processed_fps: Callable[[], Mapping[str, float | None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cameras = cameras
        self._processed_fps = processed_fps
        self._clock = clock
        self._share = 1.0
        self._before_fps: dict[str, float] = {}
        self._looked_mono = float("-inf")

    def hold(self, share: float) -> None:
        """From now on so much of each camera's rate; 1.0 lets go. For every turn: what is held already costs nothing,
        and a camera whose rate was not known is looked at again now and then."""
        if share != self._share:
            self._share = share
            self._looked_mono = float("-inf")
            if share == 1.0:
                self._before_fps.clear()
                self._tell(self._cameras)
                return
        missing = [camera for camera in self._cameras if camera.name not in self._before_fps]
        now_mono = self._clock()
        if share == 1.0 or now_mono - self._looked_mono < LOOK_AGAIN_S:
            return
        changed = self._looked_mono == float("-inf")
        self._looked_mono = now_mono
        if missing:
            self._learn(missing)
        self._tell(self._cameras if changed else missing)

    def _learn(self, cameras: Iterable[CaptureThread]) -> None:
        processed = self._processed_fps()
        for camera in cameras:
            fps = processed.get(camera.name) or camera.status().fps
            if fps > 0:
                self._before_fps[camera.name] = fps

    def _tell(self, cameras: Iterable[CaptureThread]) -> None:
        for camera in cameras:
            fps = self._before_fps.get(camera.name)
            camera.hold(None if fps is None or self._share == 1.0 else fps * self._share)
