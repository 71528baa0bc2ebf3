"""Outcome: how the calibration of one model ended, in the words and figures that whoever asked for it is told."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from edge_agent.calibrate.findings import Verdict


@dataclass(frozen=True)
class Outcome:
    """`promoted`: in use from now on; `passed`: would be but for a dry run; `refused`: for `reasons`.

    `summary` is the verdict in a sentence or two; `report` the path of the page that tells all.
    """

    model: str
    verdict: Verdict
    summary: str
    reasons: tuple[str, ...] = ()
    speedup: float | None = None
    artefact: str | None = None
    report: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "reasons": list(self.reasons)}
