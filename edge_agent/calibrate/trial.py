"""Trial: what became of one set of quantised groups, and what a search over such sets found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from edge_agent.calibrate.recipe import Method
from edge_agent.errors import CalibrationRefused, EdgeAgentError


class BuildFailed(EdgeAgentError):
    """A backend did not build a model with these groups quantised; the message is the builder's."""


@dataclass(frozen=True)
class Trial:
    """What became of one set of groups.

    `damage`: of each gate on accuracy, the share of what it allows that was used up: 1 is just allowed. `passed`:
    whether it holds all of them. `ms`: weighted time of one run, None where trials are not timed. `faults`: outputs
    that are nonsense, placements that break rules; `build_error`: the builder's words where it could not be built.
    """

    damage: Mapping[str, float]
    passed: bool
    ms: float | None = None
    faults: tuple[str, ...] = ()
    build_error: str = ""

    @property
    def worst(self) -> float:
        """The largest damage; infinite where nothing sensible came out."""
        if self.faults or self.build_error or not self.damage:
            return math.inf
        return max(self.damage.values())

    @property
    def total(self) -> float:
        """The sum of all damages, to tell apart what is equally bad at worst."""
        return sum(self.damage.values())

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_json` takes them back."""
        return {**asdict(self), "damage": dict(self.damage), "faults": list(self.faults)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Trial:
        """Raises CalibrationRefused for values that `to_json` did not make."""
        try:
            return cls(
                {str(name): float(value) for name, value in values["damage"].items()},
                bool(values["passed"]),
                None if values["ms"] is None else float(values["ms"]),
                tuple(map(str, values["faults"])),
                str(values["build_error"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as exc:
            raise CalibrationRefused(
                f"a stored trial is damaged: {type(exc).__name__} {exc}; delete the model's `work` folder"
            ) from exc


@dataclass(frozen=True)
class Attempt:
    """One trial in the order of the search, and which step wanted it."""

    method: Method
    groups: tuple[str, ...]
    trial: Trial
    step: str


@dataclass(frozen=True)
class Sensitivity:
    """One group alone: its worst damage (None: not measured or nonsense), the time that it gains, what to note."""

    group: str
    damage: float | None
    gain_ms: float | None
    passed: bool
    note: str = ""


@dataclass(frozen=True)
class Conflict:
    """Groups that cannot be quantised together (one: not at all), in the builder's words.

    `smallest`: False where the search had to stop before it was sure that none can be left out.
    """

    groups: tuple[str, ...]
    words: str
    smallest: bool = True


@dataclass(frozen=True)
class SearchLimits:
    """How long is searched: trials that were judged, builds that were tried, failed ones included.

    `noise` is the share of a time below which two times count as equal. `always_alone`: groups are also measured
    alone where the full set passes, for the report.
    """

    most_trials: int = 60
    most_builds: int = 90
    noise: float = 0.02
    always_alone: bool = True


@dataclass(frozen=True)
class Pace:
    """The float engine's time of one run, measured as the trials' are, and how many times faster INT8 must be."""

    float_ms: float
    min_speedup: float


@dataclass(frozen=True)
class SearchResult:
    """What was found. `chosen` is empty and `trial` None where no set passed; `closest` is then the least bad one.

    `fast_enough`: True where trials are not timed. `stopped`: why the search ended early, or "".
    """

    method: Method
    chosen: tuple[str, ...]
    trial: Trial | None
    fast_enough: bool
    closest: Attempt | None
    attempts: tuple[Attempt, ...]
    sensitivity: tuple[Sensitivity, ...]
    conflicts: tuple[Conflict, ...]
    stopped: str = ""

    @property
    def passed(self) -> bool:
        """Whether some set of groups holds the gates on accuracy."""
        return self.trial is not None

    @property
    def most_damaging(self) -> tuple[str, ...]:
        """Groups by the damage that they do alone, the worst first."""
        measured = [s for s in self.sensitivity if s.damage is not None]
        return tuple(s.group for s in sorted(measured, key=lambda s: (-(s.damage or 0.0), s.group)))


def trial_key(method: Method, names: Iterable[str]) -> str:
    """Names a trial among those of one model, collection and scheme."""
    return f"{method}:{','.join(sorted(names))}"
