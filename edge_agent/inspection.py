"""Inspection: readings become items, items get verdicts, and what was not passed leaves evidence.

Where a camera's readings are not joined (items.mode none, no trigger), each reading is judged on its own.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from edge_agent import messages
from edge_agent.clock import DeviceClock
from edge_agent.config import Config
from edge_agent.evidence import Evidence, EvidenceStore, crop_around
from edge_agent.expectations import Expectations
from edge_agent.items.draft import Draft
from edge_agent.items.lane import Lane
from edge_agent.items.triggers import Trigger, open_trigger
from edge_agent.records import Frame, Item, Message, Reading, Verdict, reason_to_json
from edge_agent.settings.items import ItemsConfig
from edge_agent.verify.expectation import Expectation
from edge_agent.verify.judge import Judgement, day_of, judge_item, judge_reading

log = logging.getLogger(__name__)

KEEP_EVERY_S = 1.0  # of each camera whose readings are judged one by one
STALE_TRIGGER_S = 60.0  # one that is heard of later told of an item that has long gone


@dataclass(frozen=True)
class Verified:
    """What became of a reading that is judged on its own."""

    judgement: Judgement | None
    expectation_id: str | None
    evidence_id: str | None = None


class Inspection:
    """`put` takes the items' messages; `evidence` keeps what was not passed, None: nothing is kept.

    For the main loop's thread, but `section`. A context manager: at its end the items that are open are decided and
    published. `config_version`, to be set, gives the configuration from afar in force.
    """

    def __init__(
        self,
        config: Config,
        put: Callable[[Message], None],
        clock: DeviceClock,
        expectations: Expectations,
        evidence: EvidenceStore | None = None,
    ) -> None:
        self.expectations = expectations
        self.evidence = evidence
        self.config_version: Callable[[], int | None] = lambda: None
        self.counts: Counter[tuple[str, Verdict | None]] = Counter()  # items, by camera and verdict
        self._fragments: Counter[str] = Counter()  # of lanes that are no more
        self._kept_mono: dict[str, float] = {}  # by camera, when evidence of a single reading was kept last
        self._put = put
        self._clock = clock
        self._config = config
        self._fired: SimpleQueue[tuple[str, float]] = SimpleQueue()
        self._triggers: dict[str, Trigger] = {}
        self._lanes: dict[str, Sequence[Lane]] = {}
        self._closing = ExitStack()
        expectations.before_change = self._part
        with ExitStack() as opened:
            for name, camera in config.cameras.items():
                fire = partial(self._fire, name)
                trigger = open_trigger(name, camera.trigger, fire) if camera.enabled else None
                if trigger is not None:
                    opened.callback(trigger.close)
                    self._triggers[name] = trigger
            self._closing = opened.pop_all()
        self.tune(config)

    def tune(self, config: Config) -> None:
        """From now on as the LIVE keys among these settings say; items that are open are decided where that changes."""
        before = self._config
        for name in list(self._lanes):
            if name not in config.cameras or self._joined(config, name) != self._joined(before, name):
                self._close(self._lanes.pop(name))  # by what held while they were read
        self.expectations.tune(config)
        self._config = config
        self._clock.believed = config.items.trust_clock
        for name in config.cameras:
            if name not in self._lanes:
                self._lanes[name] = self._new_lanes(name, *self._joined(config, name))

    def settings(self, camera: str) -> ItemsConfig:
        """How the camera's readings are joined now."""
        return self._settings(self._config, camera)

    def joins(self, camera: str) -> bool:
        """Whether the camera's readings are joined to items."""
        return bool(self._lanes.get(camera))

    def publishes_reading(self, camera: str) -> bool:
        """Whether the camera's readings are published, beside items or in their place."""
        return not self.joins(camera) or self._config.items.publish_readings

    def look(self, frame: Frame, reading: Reading) -> Verified:
        """One frame and what it says; what became of it, where it is judged on its own."""
        trigger = self._triggers.get(frame.camera)
        if trigger is not None:
            trigger.look(frame)
        self._take_triggers()
        if not self.joins(frame.camera):
            return self._verified(frame, reading)
        for lane in self._lanes[frame.camera]:
            lane.see(frame, reading, self._clock.monotonic())
        return Verified(None, None)

    def attend(self) -> None:
        """Takes what came from outside, and decides the items whose time is over."""
        self.expectations.attend()
        self._take_triggers()
        now_mono = self._clock.monotonic()
        for lanes in self._lanes.values():
            for lane in lanes:
                lane.attend(now_mono)

    def hear(self, camera: str, what: str, payload: bytes, retained: bool, arrived_mono: float) -> None:
        """A message to a camera: `expected`, or `trigger`, which a retained one is not."""
        if what == messages.EXPECTED:
            self.expectations.hear(camera, payload)
        elif not retained and camera in self._triggers:
            self._triggers[camera].hear(arrived_mono)

    def due_in_s(self) -> float:
        """How long until an item must be decided; infinite where none waits."""
        due_mono = min((lane.due_mono for lanes in self._lanes.values() for lane in lanes), default=float("inf"))
        return max(0.0, due_mono - self._clock.monotonic())

    def trusted(self) -> bool:
        """Whether dates may be compared with the time of day."""
        return self._clock.unix_if_trusted() is not None

    def section(self) -> dict[str, Any]:
        """The member `items` of a telemetry message, by camera; any thread."""
        counts = dict(self.counts)
        return {
            name: {
                "items": sum(count for (camera, _), count in counts.items() if camera == name),
                "pass": counts.get((name, "PASS"), 0),
                "fail": counts.get((name, "FAIL"), 0),
                "no_read": counts.get((name, "NO_READ"), 0),
                "fragments": self._fragments[name] + sum(lane.fragments for lane in self._lanes.get(name, ())),
            }
            for name in self._config.cameras
        }

    def close(self) -> None:
        """Decides what is open, and ends the triggers."""
        for lanes in self._lanes.values():
            self._close(lanes)
        self._lanes.clear()
        self._closing.close()

    def __enter__(self) -> Inspection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _verified(self, frame: Frame, reading: Reading) -> Verified:
        """A reading judged on its own."""
        expectation = self.expectations.of(frame.camera)
        if expectation is None:
            return Verified(None, None)
        judgement = judge_reading(reading, expectation, day_of(reading.captured_at), self.trusted())
        kept = judgement is not None and self._is_kept(judgement.verdict) and bool(reading.lines or reading.codes)
        if judgement is None or not kept or not self._is_due(frame):
            return Verified(judgement, expectation.id)
        said: dict[str, Any] = {
            "id": reading.id,
            "camera": reading.camera,
            "verdict": judgement.verdict,
            "reasons": [reason_to_json(reason) for reason in judgement.reasons],
            "expectation_id": expectation.id,
        }
        return Verified(judgement, expectation.id, self._keep(reading.id, frame, reading, said, expectation))

    def _joined(self, config: Config, camera: str) -> tuple[ItemsConfig, tuple[str, ...]]:
        """What settings say of how a camera's readings are joined: with its regions' names."""
        return self._settings(config, camera), tuple(config.cameras[camera].rois)

    @staticmethod
    def _settings(config: Config, camera: str) -> ItemsConfig:
        mode = config.cameras[camera].items
        return config.items if mode is None else config.items.model_copy(update={"mode": mode})

    def _new_lanes(self, camera: str, settings: ItemsConfig, regions: Sequence[str]) -> Sequence[Lane]:
        triggered = camera in self._triggers
        if settings.mode == "none" and not triggered:
            return ()
        parts: Sequence[str | None] = regions if settings.per == "region" and regions else (None,)
        return [
            Lane(
                camera,
                part,
                settings,
                triggered=triggered,
                expects=lambda: bool(self.expectations.of(camera)),
                judge=self._verdict,
                decided=self._decided,
            )
            for part in parts
        ]

    def _part(self, camera: str) -> None:
        """Something else is about to be expected of the camera's items: those read so far are judged by what was, where
        anything was."""
        if self.expectations.of(camera) is None:
            return
        for lane in self._lanes.get(camera, ()):
            lane.part(self._clock.monotonic())

    def _close(self, lanes: Sequence[Lane]) -> None:
        for lane in lanes:
            lane.close(self._clock.monotonic())
            self._fragments[lane.camera] += lane.fragments

    def _fire(self, camera: str, mono: float) -> None:
        """A trigger has told of an item; any thread."""
        self._fired.put((camera, mono))

    def _take_triggers(self) -> None:
        while True:
            try:
                camera, mono = self._fired.get_nowait()
            except Empty:
                return
            now_mono = self._clock.monotonic()
            if now_mono - mono > STALE_TRIGGER_S:
                log.warning("a trigger of camera %s is %.0f s old; its item has long gone", camera, now_mono - mono)
                continue
            began_mono = mono + self._config.cameras[camera].trigger.delay_ms / 1e3
            for lane in self._lanes.get(camera, ()):
                lane.trigger(began_mono, self._clock.unix() + began_mono - now_mono, now_mono)

    def _judged(self, item: Item) -> tuple[Judgement | None, Expectation | None]:
        expectation = self.expectations.of(item.camera)
        if expectation is None:
            return None, None
        here = expectation if item.region is None else expectation.of_region(item.region)
        least = self._config.items.min_reads
        return judge_item(item, here, day_of(item.last_seen_at), self.trusted(), least), expectation

    def _verdict(self, item: Item) -> Verdict | None:
        judgement, _ = self._judged(item)
        return None if judgement is None else judgement.verdict

    def _decided(self, draft: Draft, item: Item) -> None:
        """An item is ready to leave."""
        judgement, expectation = self._judged(item)
        if expectation is not None:
            item = replace(item, expectation_id=expectation.id)
        if judgement is not None:
            item = replace(item, verdict=judgement.verdict, reasons=judgement.reasons)
        self.counts[item.camera, item.verdict] += 1
        if draft.best is not None and item.verdict is not None and self._is_kept(item.verdict):
            kept, best = replace(item, evidence_id=item.id), draft.best
            if self._keep(item.id, best.frame, best.part(), kept.to_json(), expectation) is not None:
                item = kept
        self._put(
            messages.item(
                item,
                boot_id=self._clock.boot_id,
                clock_trusted=self._clock.trusted(),
                config_version=self.config_version(),
            )
        )

    def _is_due(self, frame: Frame) -> bool:
        """Whether evidence of a single reading is kept now: of a frame that stands still one in a second will do."""
        kept_mono = self._kept_mono.get(frame.camera, float("-inf"))
        is_due = frame.captured_mono - kept_mono >= KEEP_EVERY_S
        if is_due:
            self._kept_mono[frame.camera] = frame.captured_mono
        return is_due

    def _is_kept(self, verdict: Verdict) -> bool:
        return self.evidence is not None and verdict in self.evidence.settings.keep

    def _keep(
        self, evidence_id: str, frame: Frame, reading: Reading, said: Mapping[str, Any], expectation: Expectation | None
    ) -> str | None:
        """The id under which evidence is kept; None where it cannot be."""
        assert self.evidence is not None
        quads = [*(line.box.quad for line in reading.lines), *(code.quad for code in reading.codes)]
        evidence = Evidence(
            id=evidence_id,
            frame=frame,
            crop=crop_around(reading, quads),
            said=said,
            reading=reading.to_json(),
            expectation=expectation,
            today=day_of(reading.captured_at).isoformat(),
            clock_trusted=self.trusted(),
        )
        return evidence_id if self.evidence.offer(evidence) else None
