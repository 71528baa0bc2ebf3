"""Lane: the items of one camera, or of one of its regions: when each of them is decided.

An item that passes is decided as soon as it does; any other when it is gone, or its time is over, for a later reading
may still settle it. Where nothing is expected, an item that rests is decided once readings say the same again.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from edge_agent.items.draft import DecidedBy, Draft
from edge_agent.items.tracker import ConveyorTracker, GatheringTracker, Sighting, StillTracker, Tracker
from edge_agent.records import Frame, Item, Reading, Verdict
from edge_agent.settings.items import ItemsConfig

PIECE = frozenset({"cut", "too_small"})  # flags of a line that may be no more than a piece, or a speck
DECIDED_KNOWN = 3  # times items.max_open: decided items that are still in the picture, or may be

Judge = Callable[[Item], Verdict | None]
Decided = Callable[[Draft, Item], None]


class Lane:
    """`expects` says whether an item must say anything, `judge` what becomes of one as it is known now; `decided` takes
    each item, once. Main loop's thread.

    `triggered`: items are told by `trigger`, not by their text.
    """

    def __init__(
        self,
        camera: str,
        region: str | None,
        settings: ItemsConfig,
        *,
        triggered: bool,
        expects: Callable[[], bool],
        judge: Judge,
        decided: Decided,
    ) -> None:
        self.camera = camera
        self.region = region
        self._settings = settings
        self._expects = expects
        self._judge = judge
        self._decided = decided
        self._triggered = triggered
        self._opened = 0
        self.fragments = 0  # pieces of labels at the picture's edge that were no item
        gone_after_s = settings.gone_after_ms / 1e3
        self._tracker: Tracker
        if triggered:
            self._tracker = GatheringTracker()
        elif settings.mode == "conveyor":
            self._tracker = ConveyorTracker(self._open, gone_after_s, settings.direction, settings.max_gap_share)
        else:
            self._tracker = StillTracker(self._open, gone_after_s)

    @property
    def due_mono(self) -> float:
        """When the next item must be decided, monotonic s; infinite where none waits."""
        return min((self._due(draft) for draft in self._tracker.open if not draft.decided), default=float("inf"))

    def see(self, frame: Frame, reading: Reading, now_mono: float) -> None:
        """One frame and what it says."""
        sighting = self._sighting(frame, reading)
        for draft in self._tracker.see(sighting):
            self._decide(draft, "gone", now_mono)
        undecided = [draft for draft in self._tracker.open if not draft.decided]
        for draft in undecided:
            if draft.last_mono == sighting.mono:
                self._settle(draft, now_mono)
        self._make_room(now_mono)
        self.attend(now_mono)

    def trigger(self, at_mono: float, at: float, now_mono: float) -> None:
        """An item is there from this time on, monotonic and unix s, and the one before no more."""
        self._opened += 1
        self._tracker.open.append(Draft(self.camera, self.region, self._opened, at_mono, at))
        self._tracker.open.sort(key=lambda draft: draft.began_mono)
        for draft, following in pairwise(self._tracker.open):
            draft.until_mono = following.began_mono
        self._make_room(now_mono)

    def attend(self, now_mono: float) -> None:
        """Decides the items whose time is over."""
        for draft in self._tracker.open:
            if (due_mono := self._due(draft)) <= now_mono:
                self._decide(draft, "trigger" if due_mono == draft.until_mono else "time", now_mono)
        self._drop_triggered()

    def part(self, now_mono: float) -> None:
        """Decides what was read so far, for what comes is read and judged by something else: no item is of both.

        Of what showed no more than a piece at the edge nothing is kept, so that it comes into view anew.
        """
        self._tracker.open[:] = [draft for draft in self._tracker.open if draft.decided or not self._is_fragment(draft)]
        for draft in self._tracker.open:
            if draft.seen:
                self._decide(draft, "expected", now_mono)
        self._tracker.part()
        self._drop_triggered()

    def close(self, now_mono: float) -> None:
        """Decides what is open, for nothing more will come."""
        for draft in self._tracker.open:
            self._decide(draft, "stop", now_mono)
        self._tracker.open.clear()

    def _make_room(self, now_mono: float) -> None:
        """Decides the oldest where too many are open. It stays known, lest what is left of it be a new item; of the
        decided ones so many do."""
        most = self._settings.max_open
        waiting = [draft for draft in self._tracker.open if not draft.decided]
        for draft in waiting[: max(0, len(waiting) - most)]:
            self._decide(draft, "full", now_mono)
        decided = [draft for draft in self._tracker.open if draft.decided]
        for draft in decided[: max(0, len(decided) - DECIDED_KNOWN * most)]:
            self._tracker.open.remove(draft)

    def _drop_triggered(self) -> None:
        """An item that a trigger told of ends with its verdict."""
        if self._triggered:
            self._tracker.open[:] = [draft for draft in self._tracker.open if not draft.decided]

    def _sighting(self, frame: Frame, reading: Reading) -> Sighting:
        region = self.region
        lines = tuple(n for n, line in enumerate(reading.lines) if region is None or line.region == region)
        codes = tuple(n for n, code in enumerate(reading.codes) if region is None or code.region == region)
        return Sighting(frame, reading, frame.captured_mono, lines, codes)

    def _open(self, sighting: Sighting) -> Draft:
        self._opened += 1
        return Draft(self.camera, self.region, self._opened, sighting.mono, sighting.frame.captured_at)

    def _due(self, draft: Draft) -> float:
        return min(draft.began_mono + self._settings.decide_within_ms / 1e3, draft.until_mono)

    def _settle(self, draft: Draft, now_mono: float) -> None:
        """Decides an item that no further reading is needed for."""
        least = self._settings.min_reads
        rests = self._settings.mode != "conveyor" or self._triggered
        is_calm = rests and draft.calm_reads >= least and not draft.any_cut()
        if draft.seen < least or not (is_calm or self._expects()):
            return
        item = draft.item("settled", now_mono)
        if (verdict := self._judge(item)) == "PASS" or (verdict is None and is_calm):
            draft.decided = True
            self._decided(draft, item)

    def _decide(self, draft: Draft, by: DecidedBy, now_mono: float) -> None:
        if draft.decided:
            return
        draft.decided = True
        if self._is_fragment(draft):
            self.fragments += 1
        else:
            self._decided(draft, draft.item(by, now_mono))

    def _is_fragment(self, draft: Draft) -> bool:
        """Whether all that was seen, and not often, are pieces at the edge, of an item that has gone or is to come, or
        specks of the ground that looked like small print.

        What a trigger told of is an item, however little of it was seen.
        """
        few = not self._triggered and 0 < draft.seen < self._settings.min_reads
        return few and not draft.codes and not any(PIECE.isdisjoint(track.last.flags) for track in draft.lines)
