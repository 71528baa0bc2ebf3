"""Narration: what came out of a calibration, put together for its report and for the artefact's manifest."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import onnxruntime

from edge_agent import __version__
from edge_agent.calibrate.earning import Earned
from edge_agent.calibrate.findings import (
    MOST_CHANGED,
    MOST_THUMBNAILS,
    CalibratedOn,
    ChangedText,
    Findings,
    Machine,
    Picture,
    Size,
    Tried,
    figures_of,
    group_findings,
    methods_tried,
)
from edge_agent.calibrate.judgement import ChangedLine, Judgement
from edge_agent.calibrate.pictures import crop, thumbnail
from edge_agent.calibrate.subject import Subject
from edge_agent.calibrate.workbench import Workbench
from edge_agent.records import Quad

WHOLE_READINGS = "whole readings"


class Narrator:
    """Tells of one model. Made while the float pipeline is open, of which it keeps names and versions only."""

    def __init__(self, subject: Subject, bench: Workbench) -> None:
        self.subject = subject
        self.frames = bench.collection
        self.float_precision = precision_of(bench.float_engine.fingerprint)
        backend = bench.pipeline.backend
        self.machine = Machine(
            device=", ".join(backend.device.values()),
            backend=backend.name,
            backend_version=backend.versions.get(backend.name, ""),
            product_version=__version__,
            libraries={**backend.versions, "numpy": np.__version__, "onnxruntime": onnxruntime.__version__},
        )

    def findings(self, earned: Earned, together: Judgement | None, began: float) -> Findings:
        """Everything; the verdict is `passed` where every gate holds, else `refused`."""
        subject, found = self.subject, earned.found
        judgements = [one for one in (earned.judgement, together) if one is not None]
        gates = tuple(gate for judgement in judgements for gate in judgement.gates)
        verdict: Literal["passed", "refused"] = "passed" if together is not None and together.passed else "refused"
        if not judgements or not all(judgement.passed for judgement in judgements):
            verdict = "refused"
        changed = each_once(judgement.changed for judgement in judgements)
        return Findings(
            model=subject.model,
            task=subject.task,
            variant=subject.binding.variant,
            scheme=subject.scheme,
            float_precision=self.float_precision,
            machine=self.machine,
            verdict=verdict,
            calibrated_on=self.calibrated_on(),
            before=Size(subject.onnx_path.stat().st_size, earned.memory_bytes[0]),
            after=None if earned.content is None else Size(len(earned.content), earned.memory_bytes[1]),
            made_at=began,
            took_s=time.time() - began,
            reasons=() if gates else (nothing_passed(earned),),
            advice=tuple(dict.fromkeys(gate.advice for gate in gates if not gate.passed)),
            timing=earned.timing,
            figures=self.figures(earned.judgement, together),
            gates=gates,
            changed=tuple(self.with_crops(changed[:MOST_CHANGED])),
            changed_count=len(changed),
            methods=methods_tried(found),
            groups=group_findings(found, subject.groups),
            tried=tuple(Tried.of(attempt) for attempt in found.attempts),
            conflicts=found.conflicts,
            search_stopped=found.stopped,
            smoothing=subject.recipe.smoothing if earned.ranges.divisors else None,
            ranges=dict(earned.ranges.by_method[found.method]),
            came_from={**subject.came_from(), "collection": self.frames.digest},
        )

    def promoted(self, findings: Findings, artefact: str, promoted_at: float | None) -> Findings:
        """The same, now that the result is in use."""
        return replace(findings, verdict="promoted", artefact=artefact, promoted_at=promoted_at)

    def with_search(self, findings: Findings, earned: Earned) -> Findings:
        """The same with more of the search: what each group does alone."""
        found = earned.found
        return replace(
            findings,
            groups=group_findings(found, self.subject.groups),
            tried=tuple(Tried.of(attempt) for attempt in found.attempts),
        )

    def manifest(self, earned: Earned, together: Judgement | None) -> dict[str, Any]:
        """What the artefact is to know of itself."""
        judgements = [one for one in (earned.judgement, together) if one is not None]
        figures = {name: value for judgement in judgements for name, value in judgement.figures.items()}
        speedup = {} if earned.timing is None else {"speedup": earned.timing.speedup}
        return {
            **self.subject.binding.to_json(),
            "collection": self.frames.digest,
            "feeds": self.subject.feeds.digest,
            "method": earned.found.method,
            "batches": earned.ranges.batches,
            "smoothing": self.subject.recipe.smoothing,
            "groups": list(earned.found.chosen),
            "judgement": {"passed": all(judgement.passed for judgement in judgements), **figures, **speedup},
        }

    def calibrated_on(self) -> CalibratedOn:
        """The frames and the recorded inputs."""
        shown = self.frames.frames[:MOST_THUMBNAILS]
        names = {frame.name for frame in shown}
        thumbnails = tuple(
            thumbnail(frame.source, image) for frame, image in self.frames.images() if frame.name in names
        )
        feeds = self.subject.feeds
        return CalibratedOn.of(self.frames.counts(), self.frames.digest, feeds.met(), feeds.left_out, thumbnails)

    def figures(self, own: Judgement | None, together: Judgement | None) -> tuple[Any, ...]:
        """Of the model by itself, and of whole readings."""
        return (
            *(figures_of(own.figures) if own else ()),
            *(figures_of(together.figures, WHOLE_READINGS) if together else ()),
        )

    def with_crops(self, lines: Sequence[ChangedLine]) -> list[ChangedText]:
        """Changed lines with their pictures, in the order given."""
        wanted = {line.frame for line in lines if line.quad}
        images: Mapping[str, Any] = {
            frame.name: image for frame, image in self.frames.images("held_out") if frame.name in wanted
        }
        told = []
        for number, line in enumerate(lines):
            picture: Picture | None = None
            if line.quad and line.frame in images:
                quad = Quad(np.array(line.quad, np.float32))
                picture = crop(f"{line.frame}-{number}", images[line.frame], quad)
            told.append(ChangedText.of(line, picture))
        return told


def precision_of(fingerprint: str) -> str:
    """`FP32` of `onnxruntime-1.32.0:3f2c:fp32`, `FP16` of `tensorrt-10.3.0:3f2c:fp16:9ab1`."""
    return fingerprint.split(":")[2].upper()


def each_once(judgements: Iterable[Sequence[ChangedLine]]) -> list[ChangedLine]:
    """The changed lines of several judges: one that more than one of them met stands once. A text that stands twice in
    a frame, and changed twice under one judge, stands twice."""
    told: list[ChangedLine] = []
    counts: Counter[tuple[str, str, str]] = Counter()
    for lines in judgements:
        mine: Counter[tuple[str, str, str]] = Counter()
        for line in lines:
            key = (line.frame, line.float_text, line.int8_text)
            mine[key] += 1
            if mine[key] > counts[key]:
                told.append(line)
        counts |= mine
    return told


def nothing_passed(earned: Earned) -> str:
    """Why no set of groups came as far as being judged."""
    found = earned.found
    if found.conflicts and found.closest is None:
        forbidden = "; ".join(f"{', '.join(one.groups)}: {one.words}" for one in found.conflicts[:3])
        return f"no set of groups could be built: {forbidden}"
    if found.closest is None:
        return f"nothing was tried: {found.stopped or 'no group is offered for INT8'}"
    trial = found.closest.trial
    broken = ", ".join(f"{name} at {damage:.1f} times its bound" for name, damage in trial.damage.items() if damage > 1)
    what = "; ".join(trial.faults) or broken or "no gate holds"
    return f"no set of groups holds the gates; the least bad ({', '.join(found.closest.groups)}): {what}"
