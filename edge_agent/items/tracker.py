"""Trackers: which lines of a reading belong to which item that is being seen, and when an item has gone.

A still item is where it was, or its text is the same; another one has other text, or comes after a pause. On a conveyor
items follow one another and may all say the same: there motion tells them apart. What moves farther between two
readings than half the way to the next item looks like the next item: faster lines need a trigger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz

from edge_agent.items.draft import Draft, LineTrack, Point, is_cut
from edge_agent.records import Code, Frame, Quad, Reading, TextLine
from edge_agent.stages.label_text import label_text, skeleton

SAME_PLACE = 0.2  # intersection over union of the boxes around two quads
PART_INSIDE = 0.5  # of a line that the picture's edge cuts, what must lie where the whole one would
SAME_TEXT = 0.8  # likeness: one text, misread
LIKE_TEXT = 0.5  # likeness that will do at the place where the line is expected
KNOWN_SHARE = 0.5  # of the lines on one side, those that are known: with fewer it is another item
FIRST_STEP_SHARE = 0.25  # of the picture: an item of unknown speed moves no farther between two readings
OTHER_READS = 2  # in a row that show something else: one may be a hand before the camera
CHANGED_READS = 3  # in a row in which a line says something else: it is not misread, another item is there
REACH_HEIGHTS = 1.5  # heights of a text that it may stand beside where it is expected
LONGEST_GAP_S = 5.0  # between two readings of which one may continue the other
MOST_COMPARED = 4096  # pairs of lines that are held against each other: 64 rows of a label and of the next
TELLING = 5  # characters of a line that comes into view, from which on it tells whose it is
SAME_PIECE = 0.9  # likeness of what is there of it
SAME_ROW_HEIGHTS = 0.75  # heights of a text that the next one of its row may stand beside it
CLEAR_STEP_PX = 4.0  # more than boxes of a resting text tremble
SMOOTHING = 0.5  # share of the newest step in the belt's speed

Corners = npt.NDArray[np.float32]
Direction = Literal["auto", "left", "right", "up", "down"]
WAYS: dict[Direction, tuple[float, float]] = {
    "left": (-1.0, 0.0),
    "right": (1.0, 0.0),
    "up": (0.0, -1.0),
    "down": (0.0, 1.0),
}


@dataclass(frozen=True, eq=False)
class Sighting:
    """A reading, or a region's part of it: indices of its `lines` and `codes` that are looked at."""

    frame: Frame
    reading: Reading
    mono: float
    lines: tuple[int, ...]
    codes: tuple[int, ...]

    @property
    def is_empty(self) -> bool:
        return not self.lines and not self.codes

    @property
    def side_px(self) -> int:
        """The longer side of the picture."""
        return max(self.reading.width_px, self.reading.height_px)

    def line(self, n: int) -> TextLine:
        return self.reading.lines[n]

    def code(self, n: int) -> Code:
        return self.reading.codes[n]

    def key(self, n: int) -> tuple[str, str]:
        """What makes a code the same code."""
        return self.code(n).symbology, self.code(n).text


@dataclass(frozen=True, eq=False)
class Stand:
    """A line and where it stands: from `first` to `last` along the belt, and `across` it, px."""

    line: TextLine
    first: float
    last: float
    across: float

    def is_beside(self, other: Stand) -> bool:
        """Whether both stand in one row."""
        return abs(self.across - other.across) <= SAME_ROW_HEIGHTS * self.line.box.quad.height_px


class Opener(Protocol):
    """Makes the draft of an item that is seen for the first time."""

    def __call__(self, sighting: Sighting) -> Draft: ...


class Tracker(Protocol):
    """`open` are the items in the picture, the oldest first."""

    open: list[Draft]

    def see(self, sighting: Sighting) -> list[Draft]:
        """Adds a reading to the items that it shows; those that have gone with it."""
        ...

    def part(self) -> None:
        """Forgets readings that it holds back: what comes is read otherwise."""
        ...


class StillTracker:
    """One item at a time, which rests.

    Another one in its place is believed once readings in a row say so: what they show is a new item from the first of
    them on, or was a passing hand or a misreading of the old one.
    """

    def __init__(self, opener: Opener, gone_after_s: float) -> None:
        self.open: list[Draft] = []
        self._opener = opener
        self._gone_after_s = gone_after_s
        self._before_mono = float("-inf")  # of the sighting before
        self._doubts: list[tuple[Sighting, frozenset[str]]] = []  # readings that say so, with what is new in them

    def see(self, sighting: Sighting) -> list[Draft]:
        gone: list[Draft] = []
        before_mono, self._before_mono = self._before_mono, sighting.mono
        if self._doubts and sighting.mono - self._doubts[-1][0].mono > max(self._gone_after_s, LONGEST_GAP_S):
            self._doubts.clear()
        if self.open and not self._doubts and is_gone(self.open[0], sighting, before_mono, self._gone_after_s):
            gone.append(self.open.pop())
        if sighting.is_empty:
            return gone
        if self.open:
            new = news(self.open[0], sighting)
            if self._doubts and not new & self._doubts[-1][1]:
                self._believe_old()
            if new:
                self._doubts.append((sighting, new))
                needed = OTHER_READS if is_other(self.open[0], sighting) else CHANGED_READS
                if len(self._doubts) < needed:
                    return gone
                gone.append(self.open.pop())
        for doubted, _ in self._doubts:
            self._add(doubted)
        if not self._doubts:
            self._add(sighting)
        self._doubts.clear()
        return gone

    def part(self) -> None:
        self._doubts.clear()

    def _believe_old(self) -> None:
        """It was the old item after all: what reads like it counts for it."""
        for doubted, _ in self._doubts:
            if not is_other(self.open[0], doubted):
                self._add(doubted)
        self._doubts.clear()

    def _add(self, sighting: Sighting) -> None:
        if not self.open:
            self.open.append(self._opener(sighting))
        draft = self.open[0]
        draft.add(sighting.frame, sighting.reading, assigned(draft, sighting), sighting.codes, sighting.mono)


class GatheringTracker:
    """Whatever is read belongs to the item whose trigger came last before; without one nothing is looked at."""

    def __init__(self) -> None:
        self.open: list[Draft] = []

    def see(self, sighting: Sighting) -> list[Draft]:
        for draft in self.open:
            if draft.decided or not draft.began_mono <= sighting.mono < draft.until_mono:
                continue
            if sighting.is_empty:
                draft.glimpse(sighting.frame, sighting.reading, sighting.mono)
            else:
                tracks = assigned(draft, sighting)
                draft.add(sighting.frame, sighting.reading, tracks, sighting.codes, sighting.mono)
        return []

    def part(self) -> None:
        """Holds nothing back."""


class ConveyorTracker:
    """Items that pass by, one behind the other; several may be in the picture. `gap_share` of the picture along the way
    may lie empty between what stands on one of them."""

    def __init__(self, opener: Opener, gone_after_s: float, direction: Direction, gap_share: float) -> None:
        self.open: list[Draft] = []
        self._opener = opener
        self._gone_after_s = gone_after_s
        self._gap_share = gap_share
        self._way = None if direction == "auto" else np.array(WAYS[direction], np.float32)
        self._told_way = self._way is not None
        self._before_mono = float("-inf")  # of the sighting before
        self._speed: Point | None = None  # of the belt, px/s
        self._top_px_s = 0.0  # the fastest it was, once it has moved clearly: it may stop and go on

    def see(self, sighting: Sighting) -> list[Draft]:
        before_mono, self._before_mono = self._before_mono, sighting.mono
        gone = [draft for draft in self.open if is_gone(draft, sighting, before_mono, self._gone_after_s)]
        self.open = [draft for draft in self.open if draft not in gone]
        lines, codes = list(sighting.lines), list(sighting.codes)
        shown: list[tuple[Draft, dict[int, int | None], list[int]]] = []
        for draft in self.open:  # known lines first: what is new may stand between two items
            pairs = Pairs(draft, sighting, lines)
            step = self._step(draft, sighting, pairs, codes)
            if step is None:
                continue
            tracks = pairs.matched(step, reach_px(draft))
            step = pairs.refined(step, tracks)
            own = same_codes(draft, sighting, codes, step, reach_px(draft))
            self._learn(step, sighting.mono - draft.last_mono)
            draft.shift(step)
            lines = [n for n in lines if n not in tracks]
            codes = [n for n in codes if n not in own]
            shown.append((draft, tracks, own))
        for draft, tracks, own in shown:
            new_lines, new_codes, unclear = self._beside(draft, sighting, lines, codes)
            lines = [n for n in lines if n not in new_lines and n not in unclear]
            codes = [n for n in codes if n not in new_codes]
            tracks.update(dict.fromkeys(new_lines))
            draft.add(sighting.frame, sighting.reading, tracks, [*own, *new_codes], sighting.mono)
        left = [draft for draft in self.open if self._has_left(draft, sighting)]
        self.open = [draft for draft in self.open if draft not in left]
        self._begin(sighting, lines, codes)
        return gone + left

    def part(self) -> None:
        """Holds nothing back."""

    def _begin(self, sighting: Sighting, free: list[int], codes: list[int]) -> None:
        """New items from what belongs to none: what stands without a gap along the way is one."""
        spans = [(self._span(sighting.line(n).box.quad), n, -1) for n in free]
        spans += [(self._span(sighting.code(n).quad), -1, n) for n in codes]
        gap_px = self._gap_share * sighting.side_px
        end = -np.inf
        groups: list[list[tuple[int, int]]] = []
        for (first, last), line, code in sorted(spans):
            if first - end > gap_px:
                groups.append([])
            groups[-1].append((line, code))
            end = max(end, last)
        groups = [part for group in groups for part in self._parted(sighting, group)]
        for group in reversed(groups) if self._forward() else groups:  # those ahead first
            draft = self._opener(sighting)
            tracks: dict[int, int | None] = {line: None for line, _ in group if line >= 0}
            draft.add(sighting.frame, sighting.reading, tracks, [code for _, code in group if code >= 0], sighting.mono)
            self.open.append(draft)

    def _parted(self, sighting: Sighting, group: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
        """The labels of a group that stand one behind the other and say the same, each by itself."""
        stands = [self._stand(sighting.line(n), sighting.line(n).box.quad) if n >= 0 else None for n, _ in group]
        began = 0
        for at in range(1, len(group)):
            ahead = [each for each in stands[began:at] if each is not None]
            behind = [each for each in stands[at : at + len(ahead)] if each is not None]
            ends = max((each.last for each in ahead), default=np.inf)
            if all(each.first >= ends for each in behind) and is_again(ahead, behind) is not False:
                yield group[began:at]
                began = at
        yield group[began:]

    def _step(self, draft: Draft, sighting: Sighting, pairs: Pairs, codes: list[int]) -> Point | None:
        """How far the item has moved since it was seen last, px; None where this reading does not show it.

        The steps that like texts suggest are held against all lines; the one with the most lines behind it wins, of
        several the one nearest to what the belt's speed says, or the shortest while that is unknown.
        """
        elapsed_s, slack_px = max(1e-3, sighting.mono - draft.last_mono), reach_px(draft)
        meant = np.zeros(2, np.float32) if self._speed is None else self._speed * np.float32(elapsed_s)
        best: tuple[float, float, Point] | None = None
        by_speed = [meant] if self._top_px_s else []  # for a part of a text that is like none
        for step in [*pairs.steps(slack_px / 4), *code_steps(draft, sighting, codes), *by_speed]:
            if not self._possible(step, elapsed_s, sighting.side_px, slack_px):
                continue
            found = len(pairs.matched(step, slack_px)) + len(same_codes(draft, sighting, codes, step, slack_px))
            worth = (float(found), -float(np.linalg.norm(step - meant)))
            if found and (best is None or worth > best[:2]):
                best = (*worth, step)
        return None if best is None else best[2]

    def _possible(self, step: Point, elapsed_s: float, side_px: float, slack_px: float) -> bool:
        """Whether an item can have made this step: not against the belt, and not much farther than the belt."""
        if self._way is not None:
            along = float(step @ self._way)
            across = float(np.linalg.norm(step - np.float32(along) * self._way))
            if along < -slack_px or across > slack_px + 0.25 * abs(along):
                return False
        limit_px = FIRST_STEP_SHARE * side_px
        if self._top_px_s:
            limit_px = 2 * (self._top_px_s * elapsed_s + slack_px)
        return float(np.linalg.norm(step)) <= limit_px

    def _learn(self, step: Point, elapsed_s: float) -> None:
        """The belt's speed from one step, and its way once something has moved clearly."""
        speed = step / np.float32(max(1e-3, elapsed_s))
        self._speed = speed if self._speed is None else self._speed + np.float32(SMOOTHING) * (speed - self._speed)
        length_px = float(np.linalg.norm(step))
        if length_px < CLEAR_STEP_PX:
            return
        self._top_px_s = max(self._top_px_s, float(np.linalg.norm(speed)))
        if not self._told_way:
            self._way = np.asarray(step / np.float32(length_px), np.float32)

    def _beside(
        self, draft: Draft, sighting: Sighting, lines: list[int], codes: list[int]
    ) -> tuple[list[int], list[int], list[int]]:
        """Lines and codes that come into view beside those of the item that are known, and lines that are too small a
        piece yet to tell whether they are the item's or begin the next one, which touches it and says the same."""
        first, last = extent = self._extent(draft)
        gap_px = self._gap_share * sighting.side_px
        joined: tuple[list[int], list[int]] = ([], [])
        spans = [(self._span(sighting.line(n).box.quad), 0, n) for n in lines]
        spans += [(self._span(sighting.code(n).quad), 1, n) for n in codes]
        for (start, end), kind, n in sorted(spans):
            if start <= last + gap_px and end >= first - gap_px:
                joined[kind].append(n)
                first, last = min(first, start), max(last, end)
        known = [
            self._stand(track.last, track.quad) for track in draft.lines if track.is_whole and is_standing(track, draft)
        ]
        found = {n: self._stand(sighting.line(n), sighting.line(n).box.quad) for n in joined[0]}
        beyond = [n for n, stand in found.items() if stand.first >= extent[1] or stand.last <= extent[0]]
        again = is_again(known, [found[n] for n in beyond])
        if again is False:
            return (*joined, [])
        rest = [n for n in joined[0] if n not in beyond]
        own = [n for n in joined[1] if extent[0] <= self._span(sighting.code(n).quad)[0] <= extent[1]]
        return rest, own, beyond if again is None else []

    def _stand(self, line: TextLine, quad: Quad) -> Stand:
        way = np.array([1.0, 0.0], np.float32) if self._way is None else self._axis()
        return Stand(line, *self._span(quad), float(quad.centre @ np.array([-way[1], way[0]], np.float32)))

    def _has_left(self, draft: Draft, sighting: Sighting) -> bool:
        """Whether the belt has carried an item that is not seen out of the picture."""
        if self._speed is None or draft.last_mono == sighting.mono:
            return False
        by = self._speed * np.float32(sighting.mono - draft.last_mono)
        size = np.array([sighting.reading.width_px, sighting.reading.height_px], np.float32)
        ahead = [quad.points + by for quad in quads_of(draft)]
        return bool(ahead) and all(bool(((p < 0) | (p > size)).any(axis=1).all()) for p in ahead)

    def _span(self, quad: Quad) -> tuple[float, float]:
        """From where to where a quad reaches along the belt, px."""
        way = np.array([1.0, 0.0], np.float32) if self._way is None else self._axis()
        along = quad.points @ way
        return float(along.min()), float(along.max())

    def _axis(self) -> Point:
        """The belt's way, from left to right or top to bottom."""
        assert self._way is not None
        return self._way if self._forward() else -self._way

    def _forward(self) -> bool:
        return self._way is None or float(self._way.sum()) >= 0

    def _extent(self, draft: Draft) -> tuple[float, float]:
        spans = [self._span(quad) for quad in quads_of(draft)]
        return min(first for first, _ in spans), max(last for _, last in spans)


def is_gone(draft: Draft, sighting: Sighting, before_mono: float, after_s: float) -> bool:
    """Whether an item was not seen for so long that it is gone; `before_mono` is when the sighting before was.

    Where nothing was looked at in between, because reading is slow, it may still be there.
    """
    was_there = draft.last_mono == before_mono
    return sighting.mono - draft.last_mono > (max(after_s, LONGEST_GAP_S) if was_there else after_s)


def quads_of(draft: Draft) -> list[Quad]:
    """Where the lines and codes of an item stand in the newest frame."""
    return [*(track.quad for track in draft.lines), *(code.quad for code in draft.codes.values())]


def is_again(known: Sequence[Stand], found: Sequence[Stand]) -> bool | None:
    """Whether a label stands there once more: most of the lines `found` say what `known` ones in their rows do. None
    where they are too small a piece to tell."""
    if not 0 < len(known) * len(found) <= MOST_COMPARED:
        return False
    rows = [[one.line for one in known if one.is_beside(each)] for each in found]
    again = [any(says_again(one, each.line) for one in row) for row, each in zip(rows, found, strict=True)]
    if 2 * sum(again) <= len(found):
        return False
    if all(is_cut(each.line) for each in found) and (len(found) == 1 or all(len(e.line.text) < TELLING for e in found)):
        return None
    return len(found) > 1 or bones(found[0].line) in map(bones, rows[0])


def says_again(whole: TextLine, other: TextLine) -> bool:
    """Whether a line says the same as a whole one; of one that is cut, what is there of it."""
    if not is_cut(other):
        return bool(fuzz.ratio(whole.text, other.text) >= 100 * SAME_TEXT)
    length = len(other.text)
    return any(fuzz.ratio(part, other.text) >= 100 * SAME_PIECE for part in (whole.text[:length], whole.text[-length:]))


def reach_px(draft: Draft) -> float:
    """How far from where it is expected a line or code of the item may stand."""
    heights = [track.quad.height_px for track in draft.lines] or [quad.height_px / 4 for quad in quads_of(draft)]
    return REACH_HEIGHTS * float(np.median(heights)) if heights else 0.0


def code_steps(draft: Draft, sighting: Sighting, codes: Sequence[int]) -> Iterator[Point]:
    """The steps that bring a code of the item to the same code, px."""
    for n in codes:
        if (known := draft.codes.get(sighting.key(n))) is not None:
            yield sighting.code(n).quad.centre - known.quad.centre


def same_codes(draft: Draft, sighting: Sighting, codes: list[int], step: Point, within_px: float) -> list[int]:
    """Codes of the item where it is after `step` px."""
    return [
        n
        for n in codes
        if (known := draft.codes.get(sighting.key(n))) is not None
        and float(np.linalg.norm(sighting.code(n).quad.centre - known.quad.centre - step)) <= within_px
    ]


def likeness(one: TextLine, two: TextLine) -> float:
    """0..1: how like two readings are; of one that ends at the picture's edge, the part that is there."""
    is_part = is_cut(one) or is_cut(two)
    return float((fuzz.partial_ratio if is_part else fuzz.ratio)(one.text, two.text)) / 100


class Pairs:
    """Lines of an item and those of a sighting, each held against each once; `lines` are indices in the reading."""

    def __init__(self, draft: Draft, sighting: Sighting, lines: Sequence[int]) -> None:
        self.lines = list(lines)
        there = [sighting.line(n) for n in self.lines]
        shape = (len(draft.lines), len(there))
        alike = [[likeness(track.last, line) for line in there] for track in draft.lines]
        self.alike = np.array(alike, np.float32).reshape(shape)
        cut = [[is_cut(track.last) or is_cut(line) for line in there] for track in draft.lines]
        self._cut = np.array(cut, np.bool_).reshape(shape)  # of such a pair one is a part of the other
        self._tracks = corners([track.quad for track in draft.lines])
        self._there = corners([line.box.quad for line in there])
        size = (sighting.reading.width_px, sighting.reading.height_px)
        self._moves = moves(self._tracks, self._there, self._cut, np.array(size, np.float32))

    def steps(self, apart_px: float) -> Iterator[Point]:
        """The steps that bring a line of the item to one with a like text; those closer than `apart_px` are one."""
        track, line = np.nonzero(self.alike >= SAME_TEXT)
        steps = self._moves[track, line]
        _, first = np.unique(np.round(steps / max(1.0, apart_px)), axis=0, return_index=True)
        yield from steps[first]

    def overlaps(self) -> npt.NDArray[np.float32]:
        """How far the lines of an item that rests lie over those of the sighting."""
        return overlaps(self._tracks, self._there)

    def matched(self, step: Point, within_px: float) -> dict[int, int | None]:
        """Lines of the item where it is after `step` px: index in the reading -> number of the track."""
        if not self.alike.size:
            return {}
        moved = self._tracks + step
        off_px = np.linalg.norm(self._moves - step, axis=2)
        near = (off_px <= within_px) | (overlaps(moved, self._there) >= SAME_PLACE)
        near |= self._cut & (overlaps(moved, self._there, of_smaller=True) >= PART_INSIDE)
        worth = self.alike - off_px / (10 * within_px + 1e-6)
        found = zip(*np.nonzero(near & (self.alike >= LIKE_TEXT)), strict=True)
        return pick([(float(worth[track, line]), self.lines[line], int(track)) for track, line in found])

    def refined(self, step: Point, tracks: Mapping[int, int | None]) -> Point:
        """The step that most of the lines that were matched by `step` have made."""
        made = [self._moves[track, self.lines.index(n)] for n, track in tracks.items() if track is not None]
        return np.asarray(np.median(made, axis=0), np.float32) if made else step


def moves(
    tracks: Corners, there: Corners, cut: npt.NDArray[np.bool_], size: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """From where to where each of N lines would have moved to be each of M, float32 (N, M, 2) px: the way of its
    middle; of a pair that is `cut` by the edge of a picture of this size, the way of the end farther inside."""
    ways = there.mean(axis=1)[None] - tracks.mean(axis=1)[:, None]
    if cut.any():
        starts, stops = (inner_ways(tracks, there, at, size) for at in ((0, 3), (1, 2)))
        inner = np.where((starts[1] >= stops[1])[..., None], starts[0], stops[0])
        ways = np.where(cut[..., None], inner, ways)
    return np.asarray(ways, np.float32)


def inner_ways(
    tracks: Corners, there: Corners, end: tuple[int, int], size: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """The way of one end of each of N lines to that of each of M, px (N, M, 2), and how far inside the picture the one
    of both is that is less so, px (N, M); `end` are its corners."""
    before, after = tracks[:, end].mean(axis=1), there[:, end].mean(axis=1)
    depth, depth_after = (np.minimum(points, size - points).min(axis=1) for points in (before, after))
    return after[None] - before[:, None], np.minimum(depth[:, None], depth_after[None])


def corners(quads: Sequence[Quad]) -> Corners:
    """The corners of several quads, float32 (N, 4, 2) px."""
    return np.stack([quad.points for quad in quads]) if quads else np.empty((0, 4, 2), np.float32)


def assigned(draft: Draft, sighting: Sighting) -> dict[int, int | None]:
    """Every line of the sighting with the track of a resting item that it continues; None for a new one."""
    pairs = Pairs(draft, sighting, sighting.lines)
    place = pairs.overlaps()
    found = []
    for number, track in enumerate(draft.lines):
        for at, n in enumerate(pairs.lines):
            alike, there = float(pairs.alike[number, at]), float(place[number, at])
            is_same = alike >= SAME_TEXT or (alike >= LIKE_TEXT and there >= SAME_PLACE)
            if is_same and track.last.region == sighting.line(n).region:
                found.append((alike + there, n, number))
    known = pick(found)
    return {n: known.get(n) for n in sighting.lines}


def pick(pairs: Sequence[tuple[float, int, int]]) -> dict[int, int | None]:
    """One track for a line and one line for a track, the best pairs first."""
    taken: dict[int, int | None] = {}
    used: set[int] = set()
    for _, n, number in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
        if n not in taken and number not in used:
            taken[n] = number
            used.add(number)
    return taken


def is_other(draft: Draft, sighting: Sighting) -> bool:
    """Whether a sighting shows something else than the resting item: few of the lines on either side are known."""
    known = sum(track is not None for track in assigned(draft, sighting).values())
    if draft.codes and sighting.codes and not any(sighting.key(n) in draft.codes for n in sighting.codes):
        return True
    fewest = min(len(sighting.lines), sum(is_standing(track, draft) for track in draft.lines))
    return bool(fewest) and known < KNOWN_SHARE * fewest


def news(draft: Draft, sighting: Sighting) -> frozenset[str]:
    """What a sighting says that the resting item does not: texts that are more than a misreading of its lines, all of
    them where it shows something else."""
    if is_other(draft, sighting):
        return frozenset(bones(sighting.line(n)) for n in sighting.lines) | {sighting.key(n)[1] for n in sighting.codes}
    changed = set()
    for n, number in assigned(draft, sighting).items():
        if number is None or is_cut(sighting.line(n)) or not draft.lines[number].is_whole:
            continue
        said = bones(sighting.line(n))
        if said not in {bones(read) for read in draft.lines[number].reads}:
            changed.add(said)
    return frozenset(changed)


def bones(line: TextLine) -> str:
    """A line's text without what OCR swaps."""
    return skeleton(label_text(line.text).text).chars


def is_standing(track: LineTrack, draft: Draft) -> bool:
    """Whether a line was in a good part of the item's readings."""
    return track.n_reads * 2 >= min(draft.seen, 4)


def overlaps(ones: Corners, others: Corners, *, of_smaller: bool = False) -> npt.NDArray[np.float32]:
    """Intersection over union, 0..1, of the upright boxes around quads: float32 (N, M) of (N, 4, 2) and (M, 4, 2);
    with `of_smaller` the share of the smaller one that lies in the other."""
    low, high = ones.min(axis=1), ones.max(axis=1)
    other_low, other_high = others.min(axis=1), others.max(axis=1)
    sides = np.minimum(high[:, None], other_high[None]) - np.maximum(low[:, None], other_low[None])
    common = np.maximum(sides, 0).prod(axis=2)
    area, other_area = (high - low).prod(axis=1)[:, None], (other_high - other_low).prod(axis=1)[None]
    whole = np.minimum(area, other_area) if of_smaller else area + other_area - common
    return np.asarray(common / np.maximum(whole, 1e-6), np.float32)
