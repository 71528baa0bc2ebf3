"""Judgement: what was found out about an INT8 engine, held against the gates of its recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edge_agent.calibrate.recipe import Gates
from edge_agent.calibrate.timing import Timing

MOST_NAMED = 3  # groups named in an advice
COMPUTING_NOISE = 1e-9  # of a share: what adding floats may cost


@dataclass(frozen=True)
class GateResult:
    """One gate: what was measured (None: nothing could be), its bound, and what to do where it broke.

    `unit`: `share` (0..1), `cosine`, `times`, `runs`, `characters` or `lines`. `damage`: of what the gate allows, the
    share that was used up; None for gates that allow nothing by degrees.
    """

    name: str
    value: float | None
    bound: float
    unit: str
    passed: bool
    advice: str = ""
    damage: float | None = None


@dataclass(frozen=True)
class ChangedLine:
    """A line that INT8 reads otherwise: frame, 4 corners (x, y) px, both texts, and the true one where it is known.

    Of an encoder: `frame` is the line's text, `quad` is empty, and the two texts are the classes that it was given.
    """

    frame: str
    quad: list[list[float]]
    float_text: str
    int8_text: str
    label: str | None


@dataclass(frozen=True)
class Judgement:
    """All gates of one judge, its figures, and the lines that changed (at most MOST_CHANGED of tally.py are kept)."""

    gates: tuple[GateResult, ...]
    figures: Mapping[str, float] = field(default_factory=dict)
    changed: tuple[ChangedLine, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every gate holds; False where there is none."""
        return bool(self.gates) and all(gate.passed for gate in self.gates)

    @property
    def broken(self) -> tuple[GateResult, ...]:
        """The gates that do not hold."""
        return tuple(gate for gate in self.gates if not gate.passed)

    @property
    def damage(self) -> dict[str, float]:
        """Per gate on accuracy, the share used up of what it allows; what a search weighs sets of groups by."""
        return {gate.name: gate.damage for gate in self.gates if gate.damage is not None}

    @property
    def faults(self) -> tuple[str, ...]:
        """What is nonsense, or cannot be judged at all."""
        return tuple(gate.advice for gate in self.gates if gate.damage is None and not gate.passed)


def at_least(name: str, value: float, bound: float, unit: str, advice: str) -> GateResult:
    """A gate on something that should be 1 or more and may be as low as `bound`."""
    passed = value >= bound - COMPUTING_NOISE
    return GateResult(name, value, bound, unit, passed, "" if passed else advice, _damage(1 - value, 1 - bound))


def at_most(name: str, value: float, bound: float, unit: str, advice: str) -> GateResult:
    """A gate on something that should be 0 and may be as high as `bound`."""
    passed = value <= bound + COMPUTING_NOISE
    return GateResult(name, value, bound, unit, passed, "" if passed else advice, _damage(value, bound))


def _damage(loss: float, allowed: float) -> float:
    """`loss` in units of what is allowed, 0 for a gain; where nothing is allowed any loss is a hundredfold one."""
    if loss <= COMPUTING_NOISE:
        return 0.0
    return loss / allowed if allowed > 0 else 100.0 + loss


def no_evidence(found: int, wanted: int, unit: str, words: str) -> GateResult:
    """The gate that breaks where there is too little to judge by."""
    return GateResult("evidence", float(found), float(wanted), unit, passed=False, advice=words)


def nonsense(fault: str, runs: int) -> GateResult:
    """The gate that breaks where an output is NaN, constant or saturated; `fault` says which and how."""
    advice = (
        f"{fault}: the quantised network is broken, not merely inexact. Collect more and other frames so that its "
        "ranges are real, try another method, or name the groups at fault under float_groups in the recipe"
    )
    return GateResult("outputs", float(runs), 0.0, "runs", passed=False, advice=advice)


def speed_gate(timing: Timing, gates: Gates, worst: Sequence[str] = ()) -> GateResult:
    """Whether INT8 is enough faster, by times measured on this device in one run."""
    value, bound = timing.speedup, gates.min_speedup
    passed = value >= bound
    sure = (
        "" if timing.speedup_high < bound or passed else "; the times scatter, so that a longer measurement may decide"
    )
    advice = (
        f"INT8 runs {value:.2f} times as fast as float ({timing.speedup_low:.2f} to {timing.speedup_high:.2f}), "
        f"{bound:.2f} is wanted{sure}. Keep float: on this device INT8 is not worth its risk; or quantise more groups "
        f"(quantised_groups in the recipe){_named(worst, '; slower as INT8 than as float: {}')}"
    )
    return GateResult("speedup", value, bound, "times", passed, "" if passed else advice)


def remedies(worst: Sequence[str], *, labels: bool) -> str:
    """What can be tried where text suffers; `worst`: the most damaging groups, if they are known."""
    frames = "calibrate on more frames of what the camera really sees"
    truth = ", give labels.jsonl so that only real errors count" if labels else ""
    return (
        f"{frames}{truth}, try another method, "
        f"{_named(worst, 'keep the groups {} float (float_groups in the recipe)', 'keep more groups float')}, "
        "or keep the float engine"
    )


def _named(groups: Sequence[str], words: str, otherwise: str = "") -> str:
    return words.format(", ".join(groups[:MOST_NAMED])) if groups else otherwise
