"""Draft: an item while it is being seen: every reading of it adds to its lines, fields and codes."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from edge_agent.items.votes import vote_field, vote_line
from edge_agent.records import Code, Field, Frame, Item, ItemField, ItemLine, Quad, Reading, TextLine
from edge_agent.stages.reading_order import reading_order

KEPT_READS = 32  # of a line or field: the newest; more change no vote
CUT_WORTH = 0.25  # of a line that is cut, for the picture that shows the item best
MAX_CODES = 64
MAX_LINES = 500
LINE_FLICKER = 4  # what only one reading of so many has is flicker
FIELD_FLICKER = 3  # a field that fewer than one in so many readings of its line have is a misreading

DecidedBy = Literal["settled", "gone", "time", "trigger", "full", "expected", "stop"]
Point = npt.NDArray[np.float32]


@dataclass(eq=False)
class LineTrack:
    """One line of an item through its readings; `quad` is where it stands, or would, in the newest frame."""

    quad: Quad
    reads: deque[TextLine] = field(default_factory=lambda: deque(maxlen=KEPT_READS))
    n_reads: int = 0

    @property
    def last(self) -> TextLine:
        return self.reads[-1]

    @property
    def is_whole(self) -> bool:
        """Whether it was seen other than cut by the picture's edge."""
        return bool(self.reads) and not is_cut(self.reads[-1])

    def add(self, line: TextLine) -> None:
        self.quad = line.box.quad
        self.n_reads += 1
        keep(self.reads, line)


FieldKey = tuple[str, str, int | str]  # name; barcode or print; the number of its line's track, or its code's text


@dataclass(eq=False)
class FieldTrack:
    """One field of an item through its readings; `lines` are the tracks of its lines in the newest of them."""

    reads: deque[Field] = field(default_factory=lambda: deque(maxlen=KEPT_READS))
    n_reads: int = 0
    lines: tuple[int, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it was read other than in a line that is cut."""
        return bool(self.reads) and not is_cut(self.reads[-1])


Read = TypeVar("Read", TextLine, Field)


def is_cut(read: TextLine | Field) -> bool:
    """Whether the picture's edge cuts it, so that a part may be missing."""
    return "cut" in read.flags


def keep(reads: deque[Read], read: Read) -> None:
    """Adds one reading; one that is cut counts only while none is whole."""
    if reads and is_cut(read) and not is_cut(reads[-1]):
        return
    if reads and is_cut(reads[-1]) and not is_cut(read):
        reads.clear()
    reads.append(read)


@dataclass(frozen=True, eq=False)
class Best:
    """A frame with its reading, and the indices of the `lines` and `codes` that are the item's."""

    frame: Frame
    reading: Reading
    lines: tuple[int, ...]
    codes: tuple[int, ...]

    def part(self) -> Reading:
        """What of the reading is the item's."""
        lines = {n: at for at, n in enumerate(self.lines)}
        codes = {n: at for at, n in enumerate(self.codes)}
        fields = [
            replace(
                each,
                lines=tuple(lines[n] for n in each.lines if n in lines),
                codes=tuple(codes[n] for n in each.codes if n in codes),
            )
            for each in self.reading.fields
            if lines.keys() & set(each.lines) or codes.keys() & set(each.codes)
        ]
        return replace(
            self.reading,
            lines=tuple(self.reading.lines[n] for n in self.lines),
            codes=tuple(self.reading.codes[n] for n in self.codes),
            fields=tuple(fields),
        )


@dataclass(eq=False)
class Draft:
    """What is known of one item. Times of frames are monotonic s (`*_mono`) and unix s (`*_at`).

    `began_mono` is its first sight, or its trigger; from `until_mono` on the item of the next trigger is there. `seen`
    counts the readings that show it. `best` is the frame that shows it best.
    """

    camera: str
    region: str | None
    number: int
    began_mono: float
    began_at: float
    until_mono: float = float("inf")
    seen: int = 0
    first: Reading | None = None
    last: Reading | None = None
    last_mono: float = float("-inf")
    decided: bool = False
    lines: list[LineTrack] = field(default_factory=list)
    fields: dict[FieldKey, FieldTrack] = field(default_factory=dict)
    codes: dict[tuple[str, str], Code] = field(default_factory=dict)
    best: Best | None = None
    best_score: float = -1.0
    calm_reads: int = 0  # readings since anything but weights changed
    said: tuple[object, ...] = ()

    @property
    def id(self) -> str:
        """Stable: of the camera, the region, the frame or trigger it began with, and its number among those there."""
        first = -1 if self.first is None else self.first.seq
        key = f"{self.camera}\0{self.region}\0{self.number}\0{first}\0{self.began_at!r}"
        return hashlib.sha256(key.encode()).hexdigest()[:24]

    def add(
        self,
        frame: Frame,
        reading: Reading,
        tracks: Mapping[int, int | None],
        codes: Iterable[int],
        mono: float,
    ) -> None:
        """One reading that shows the item: `tracks` gives each of its lines that are the item's, by index in the
        reading, the number of its track, None for a new one; `codes` are indices of codes."""
        self.seen += 1
        if self.seen == 1:
            self.first = reading
        self.last, self.last_mono = reading, mono
        numbers = self._add_lines(reading, tracks)
        code_numbers = list(codes)
        for n in code_numbers:
            code = reading.codes[n]
            if len(self.codes) < MAX_CODES or (code.symbology, code.text) in self.codes:
                self.codes[code.symbology, code.text] = code
        for found in reading.fields:
            self._add_field(found, reading, numbers, code_numbers)
        score = sum(
            line.confidence * (CUT_WORTH if is_cut(line) else 1.0) for line in (reading.lines[n] for n in tracks)
        )
        score += len(code_numbers)
        if score > self.best_score:
            self.best, self.best_score = Best(frame, reading, tuple(sorted(tracks)), tuple(code_numbers)), score
        said = self._said()
        self.calm_reads = self.calm_reads + 1 if said == self.said else 1
        self.said = said

    def _add_lines(self, reading: Reading, tracks: Mapping[int, int | None]) -> dict[int, int]:
        numbers: dict[int, int] = {}
        for n, known in tracks.items():
            if known is None and len(self.lines) >= MAX_LINES:
                continue
            number = len(self.lines) if known is None else known
            if known is None:
                self.lines.append(LineTrack(reading.lines[n].box.quad))
            self.lines[number].add(reading.lines[n])
            numbers[n] = number
        return numbers

    def _add_field(self, found: Field, reading: Reading, numbers: Mapping[int, int], codes: list[int]) -> None:
        ours = [numbers[n] for n in found.lines if n in numbers]
        of_code = [n for n in found.codes if n in codes]
        if not ours and not of_code:
            return  # of another item
        by_code = bool(of_code) and (found.source == "barcode" or not ours)
        place: int | str = reading.codes[of_code[0]].text if by_code else ours[0]
        key = (found.name, "code" if found.source == "barcode" else "print", place)
        track = self.fields.setdefault(key, FieldTrack())
        keep(track.reads, found)
        track.n_reads += 1
        track.lines = tuple(ours)

    def _said(self) -> tuple[object, ...]:
        """What the newest reading says: the same again means that the item is in full view."""
        fields = frozenset((key, track.reads[-1].value) for key, track in self.fields.items())
        return (len(self.lines), tuple(track.last.text for track in self.lines), fields, len(self.codes))

    def any_cut(self) -> bool:
        """Whether the newest reading has a line of it that ends at the picture's edge."""
        return any(is_cut(track.last) for track in self.lines)

    def item(self, decided_by: DecidedBy, now_mono: float) -> Item:
        """What all readings together say, without a verdict."""
        kept = [n for n, track in enumerate(self.lines) if not self._is_flicker(track)]
        voted = {n: (*vote_line(self.lines[n].reads), self.lines[n].n_reads) for n in kept}
        order = self._in_order(kept)
        lines = tuple(
            ItemLine(
                replace(voted[n][0], box=replace(voted[n][0].box, quad=self.lines[n].quad)), voted[n][2], voted[n][1]
            )
            for n in order
        )
        first, last = self.first, self.last
        best = None if self.best is None else self.best.reading
        return Item(
            id=self.id,
            camera=self.camera,
            region=self.region,
            first_seen_at=self.began_at if first is None else first.captured_at,
            last_seen_at=self.began_at if last is None else last.captured_at,
            first_seq=0 if first is None else first.seq,
            last_seq=0 if last is None else last.seq,
            width_px=1 if last is None else last.width_px,
            height_px=1 if last is None else last.height_px,
            n_reads=self.seen,
            agreement=sum(line.agreement for line in lines) / len(lines) if lines else 1.0,
            decided_by=decided_by,
            decided_after_ms=max(0.0, (now_mono - self.began_mono) * 1e3),
            lines=lines,
            fields=self._voted_fields({track: at for at, track in enumerate(order)}),
            codes=tuple(self.codes.values()),
            language=None if best is None else best.language,
            quality=() if best is None else best.quality,
        )

    def glimpse(self, frame: Frame, reading: Reading, mono: float) -> None:
        """A reading of the time in which the item must be there, which shows nothing of it."""
        self.first = self.first or reading
        self.last, self.last_mono = reading, mono
        self.best = self.best or Best(frame, reading, (), ())

    def shift(self, by: Point) -> None:
        """Moves all lines and codes by so many px: where they stand in the newest frame, shown there or not."""
        for track in self.lines:
            track.quad = Quad(track.quad.points + by)
        for key, code in self.codes.items():
            self.codes[key] = replace(code, quad=Quad(code.quad.points + by))

    def _in_order(self, tracks: list[int]) -> list[int]:
        """Tracks as a person would read them, region by region."""
        regions = dict.fromkeys(self.lines[n].last.region for n in tracks)
        ordered: list[int] = []
        for region in regions:
            there = [n for n in tracks if self.lines[n].last.region == region]
            ordered += [there[at] for at in reading_order([self.lines[n].quad for n in there])]
        return ordered

    def _is_flicker(self, track: LineTrack) -> bool:
        return track.n_reads == 1 and self.seen >= LINE_FLICKER

    def _voted_fields(self, place: Mapping[int, int]) -> tuple[ItemField, ...]:
        """Fields, with `place` giving each kept track its index among the item's lines."""
        code_place = {text: at for at, (_, text) in enumerate(self.codes)}
        fields = []
        for (_, _, where), track in self.fields.items():
            if isinstance(where, int) and (where not in place or self._is_misread(track, self.lines[where])):
                continue
            best, share = vote_field(track.reads)
            lines = tuple(place[n] for n in track.lines if n in place)
            codes = (code_place[where],) if isinstance(where, str) and where in code_place else ()
            fields.append(ItemField(replace(best, lines=lines, codes=codes), track.n_reads, share))
        return tuple(fields)

    @staticmethod
    def _is_misread(field: FieldTrack, line: LineTrack) -> bool:
        """Whether few readings of its line have the field, or only such as the picture's edge cut."""
        return field.n_reads * FIELD_FLICKER < line.n_reads or (line.is_whole and not field.is_whole)
