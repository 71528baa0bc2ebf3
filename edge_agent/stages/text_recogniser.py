"""TextRecogniser: what do the boxes say? Crops go through a CTC network (Graves et al., 2006) in batches of like
width: `preprocess` (crops, batches), `engine.infer` (best class per step), `Alphabet.spell` (text, confidence)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.backends.base import Engine
from edge_agent.records import Quad, TextBox, TextLine
from edge_agent.stages.images import Image, warp_quad
from edge_agent.stages.lattice import NOTHING, Alphabet, Spelling, doubtful, joined, spaced, stripped
from edge_agent.stages.word_gaps import STROKE, WORD_GAP, lost_spaces

TALL = 1.5  # height over width from which a box may hold turned text
STACKED = 3.0  # height over width above which a box is no lone upright character

# Whether lines stand on their heads is tried on a few that are read badly: it costs as much as reading them did.
BADLY = 0.8  # confidence below which a line is
LONG = 2.5  # width over height of a line that is worth trying
PROBES = 2
PAGE = 0.1  # how much more confident a line must be to stand otherwise than its page

TOO_SMALL_PX = 12.5  # height of a box: text of size 8 (12 px) loses letters, that of size 10 (13 px) does not

# How near to the frame's border a text counts as cut, in heights of its box. Boxes of cut texts were seen to stop up
# to 0.24 short of it at their ends, where the cut went through a space or a thin letter, and 0.01 across.
CUT_END = 0.25
CUT_SIDE = 0.05


@dataclass(frozen=True)
class RecogniserSettings:
    """What the model wants (`height_px`, `widths_px`, `pad_value`) and how batches are cut.

    `batch_cost_px` is what one more engine call costs, in columns of crop: batches are chosen to keep
    calls * batch_cost_px + padded columns smallest. Batches are as wide as a rung of the ladder `widths_px`, or,
    with `width_step_px`, as any multiple of it from the first rung to the last: for engines that take any shape. They
    hold as many rows as one of `batch_sizes` says, the last ones empty where there are fewer crops.
    """

    height_px: int = 48
    widths_px: tuple[int, ...] = (64, 128, 192, 256, 320, 384, 448, 512, 640, 768, 960, 1280, 1600)
    width_step_px: int | None = None
    batch_sizes: tuple[int, ...] = (1, 2, 4, 8)
    batch_cost_px: int = 100
    pad_value: int = 127
    min_confidence: float = 0.5
    doubt_margin: float = 3.0


@dataclass(frozen=True)
class Batch:
    """Crops read in one call: `members` are indices of quads, `width_px` a rung of the ladder."""

    members: tuple[int, ...]
    width_px: int


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of a line that is read on its own; `spaced`: a space stands between it and the part before."""

    quad: Quad
    spaced: bool = False


class TextRecogniser:
    """Reads quads with a recogniser engine (`image` uint8 (N, height, W, 3) BGR -> `index` int32 (N, T), the best
    class of each step, `probability` float32 (N, T) and perhaps `code_margin` float32 (N, T, C)). `charset[i]` is the
    text of class i, class 0 the blank; `codes` are the classes that the margins are of."""

    def __init__(
        self, engine: Engine, charset: Sequence[str], settings: RecogniserSettings, codes: Sequence[int] = ()
    ) -> None:
        self.engine = engine
        self.charset = tuple(charset)
        self.alphabet = Alphabet(charset, codes)
        self.settings = settings

    def recognise(self, image: Image, boxes: Sequence[TextBox], upright: bool = False) -> tuple[TextLine, ...]:
        """One line per box that could be read with enough confidence, in the boxes' order.

        Unless text is known to be `upright`: a tall box is read in every direction its shape allows and the most
        confident one wins, so that a lone upright `1` is not turned and a text running up or down is; and where long
        lines are read badly, it is looked whether they stand on their heads.
        """
        return self.believed(self.read_boxes(image, boxes, upright))

    def read_boxes(self, image: Image, boxes: Sequence[TextBox], upright: bool = False) -> list[TextLine | None]:
        """The same, one for each box, however little they are believed; None where nothing was read."""
        ways = [(box.quad,) if upright else directions(box.quad) for box in boxes]
        read = self._read_ways(image, boxes, ways)
        return read if upright else self._read_on_their_heads(image, boxes, read)

    def believed(self, read: Sequence[TextLine | None]) -> tuple[TextLine, ...]:
        """Those that were read with enough confidence."""
        return tuple(line for line in read if confidence_of(line) >= self.settings.min_confidence and line is not None)

    def other_way_up(
        self, image: Image, boxes: Sequence[TextBox], read: Sequence[TextLine | None]
    ) -> list[TextLine | None] | None:
        """The boxes read the other way up than they were; None where a line of them reads well in its one way alone: it
        tells which way is up. The longest PROBES lines are tried first, so that it mostly costs no more."""
        order = sorted(range(len(boxes)), key=lambda n: (read[n] is None, -boxes[n].quad.width_px))
        over: list[TextLine | None] = [None] * len(boxes)
        for chosen in (order[:PROBES], order[PROBES:]):
            for n, line in self._turned(image, boxes, chosen, read).items():
                over[n] = line
                if confidence_of(read[n]) > max(BADLY, confidence_of(line) + PAGE):
                    return None
        return over

    def _read_ways(
        self, image: Image, boxes: Sequence[TextBox], ways: Sequence[Sequence[Quad]]
    ) -> list[TextLine | None]:
        """Of each box the most confident of its ways to be read; None where nothing was read. A lone character that can
        be read as the box stands is turned only where that is plainly surer: many read either way."""
        choices = [(n, quad) for n, quads in enumerate(ways) for quad in quads]
        best: list[TextLine | None] = [None] * len(boxes)
        for (n, quad), spelling in zip(choices, self.read_quads(image, [quad for _, quad in choices]), strict=True):
            upright = best[n] if len(spelling.text) == 1 and quad is not boxes[n].quad else None
            surer_by = PAGE if upright is not None and upright.box.quad is boxes[n].quad else 0.0
            if spelling.text and spelling.confidence > confidence_of(best[n]) + surer_by:
                flags = flags_of(quad, image.shape[1], image.shape[0])
                best[n] = self._line(spelling, TextBox(quad, boxes[n].score), flags)
        return best

    def _read_on_their_heads(
        self, image: Image, boxes: Sequence[TextBox], read: list[TextLine | None]
    ) -> list[TextLine | None]:
        """The same lines, or those read the other way up where that is the better way for a long bad one and then for
        the page as a whole."""
        level = [n for n, box in enumerate(boxes) if len(directions(box.quad)) == 1]
        widths = {n: boxes[n].quad.width_px for n in level if boxes[n].quad.width_px > LONG * boxes[n].quad.height_px}
        bad = sorted((n for n in widths if confidence_of(read[n]) < BADLY), key=lambda n: -widths[n])
        if sum(widths[n] for n in bad) * 2 < sum(widths.values()):
            return read  # most of the page reads well as it is
        probes = bad[:PROBES]
        over = self._turned(image, boxes, probes, read)
        if not any(confidence_of(over[n]) > max(BADLY, confidence_of(read[n]) + PAGE) for n in probes):
            return read
        over = {**over, **self._turned(image, boxes, [n for n in level if n not in over], read)}
        gain = sum(boxes[n].quad.width_px * (confidence_of(over[n]) - confidence_of(read[n])) for n in level)
        if gain <= 0:
            return read
        # what reads both ways, 8 or SOS, stands as the page does
        better = {n: over[n] for n in level if confidence_of(over[n]) + PAGE > confidence_of(read[n])}
        return [better.get(n, line) for n, line in enumerate(read)]

    def _turned(
        self, image: Image, boxes: Sequence[TextBox], chosen: Sequence[int], read: Sequence[TextLine | None]
    ) -> dict[int, TextLine | None]:
        """Some of the boxes read the other way up than they were."""
        stood = [boxes[n] if (line := read[n]) is None else line.box for n in chosen]
        heads = [Quad(np.roll(box.quad.points, 2, axis=0)) for box in stood]
        lines = self._read_ways(image, [boxes[n] for n in chosen], [(quad,) for quad in heads])
        return dict(zip(chosen, lines, strict=True))

    def _line(self, spelling: Spelling, box: TextBox, flags: tuple[str, ...]) -> TextLine:
        return TextLine(
            spelling.text,
            spelling.confidence,
            box,
            flags,
            spelling.characters,
            doubtful(spelling.characters, self.settings.doubt_margin),
            lattice=spelling.lattice,
        )

    def read_quads(self, image: Image, quads: Sequence[Quad]) -> list[Spelling]:
        """What each quad says, in the same order, without spaces at its ends; NOTHING where nothing was read."""
        pieces = [(n, piece) for n, quad in enumerate(quads) for piece in split_wide(image, quad, self.settings)]
        widths = [crop_width(piece.quad, self.settings) for _, piece in pieces]
        read = [NOTHING] * len(pieces)
        for batch in plan_batches(widths, self.settings):
            crops = self._crops(image, batch, pieces, widths)
            outputs = self.engine.infer({"image": crops})
            step_px = batch.width_px / outputs["index"].shape[1]
            for row, member in enumerate(batch.members):
                spelling = self.alphabet.spell(
                    outputs["index"][row],
                    outputs["probability"][row],
                    outputs["code_margin"][row] if "code_margin" in outputs else None,
                )
                read[member] = spaced(spelling, lost_spaces(crops[row, :, : widths[member]], spelling, step_px))
        parts: list[list[tuple[Spelling, bool]]] = [[] for _ in quads]
        for (n, piece), spelling in zip(pieces, read, strict=True):
            parts[n].append((spelling, piece.spaced))
        return [stripped(joined(of_one)) for of_one in parts]

    def warm_up(self) -> None:
        """Runs once at every rung of the ladder, so that no shape is met for the first time at run time."""
        for width_px in self.settings.widths_px:
            self.engine.infer({"image": np.zeros((1, self.settings.height_px, width_px, 3), np.uint8)})

    def _crops(
        self, image: Image, batch: Batch, pieces: Sequence[tuple[int, Piece]], widths: Sequence[int]
    ) -> npt.NDArray[np.uint8]:
        rows = batch_rows(len(batch.members), self.settings)
        shape = (rows, self.settings.height_px, batch.width_px, 3)
        crops = np.full(shape, self.settings.pad_value, np.uint8)
        for row, member in enumerate(batch.members):
            crops[row, :, : widths[member]] = warp_quad(
                image, pieces[member][1].quad, widths[member], self.settings.height_px
            )
        return crops


def confidence_of(line: TextLine | None) -> float:
    """The line's, 0 where nothing was read."""
    return 0.0 if line is None else line.confidence


def flags_of(quad: Quad, width_px: int, height_px: int) -> tuple[str, ...]:
    """What is wrong with how a text of this quad lies in a picture."""
    found = [("cut", touches_edge(quad, width_px, height_px)), ("too_small", quad.height_px < TOO_SMALL_PX)]
    return tuple(flag for flag, is_so in found if is_so)


def directions(quad: Quad) -> tuple[Quad, ...]:
    """The quad, and for a tall one also (beyond STACKED: only) its text running down and running up."""
    if quad.height_px < TALL * quad.width_px:
        return (quad,)
    down, up = Quad(np.roll(quad.points, -1, axis=0)), Quad(np.roll(quad.points, 1, axis=0))
    return (down, up) if quad.height_px > STACKED * quad.width_px else (quad, down, up)


def touches_edge(quad: Quad, width_px: int, height_px: int) -> bool:
    """Whether the text comes so near to the frame's border, at its ends or along them, that a part may be cut off."""
    top_left, top_right, bottom_right, bottom_left = quad.points
    along = reach((top_right + bottom_right) - (top_left + bottom_left), CUT_END * quad.height_px)
    across = reach((bottom_left + bottom_right) - (top_left + top_right), CUT_SIDE * quad.height_px)
    widened = (quad.points - along, quad.points + along, quad.points - across, quad.points + across)
    low, high = np.min(widened, axis=(0, 1)), np.max(widened, axis=(0, 1))
    return bool((low <= 0).any() or high[0] >= width_px - 1 or high[1] >= height_px - 1)


def reach(direction: npt.NDArray[np.float32], length_px: float) -> npt.NDArray[np.float32]:
    """A vector of that direction and of `length_px`, at least 1."""
    return np.asarray(direction * (max(length_px, 1.0) / max(float(np.linalg.norm(direction)), 1e-6)), np.float32)


def crop_width(quad: Quad, settings: RecogniserSettings) -> int:
    """Width in px of the quad's crop at the model's height, at least 1, at most the ladder's last rung."""
    width_px = int(np.ceil(settings.height_px * quad.width_px / max(quad.height_px, 1.0)))
    return min(max(width_px, 1), settings.widths_px[-1])


def plan_batches(widths: Sequence[int], settings: RecogniserSettings) -> list[Batch]:
    """Groups crops of like width: sorted, then cut by dynamic programming where calls and padding cost least."""
    order = sorted(range(len(widths)), key=lambda n: widths[n])
    rungs = [batch_width(widths[n], settings) for n in order]
    cost = [0.0] * (len(order) + 1)
    start = [0] * (len(order) + 1)
    for end in range(1, len(order) + 1):
        cost[end], start[end] = min(
            (cost[first] + settings.batch_cost_px + batch_rows(end - first, settings) * rungs[end - 1], first)
            for first in range(max(0, end - settings.batch_sizes[-1]), end)
        )
    batches = []
    end = len(order)
    while end:
        batches.append(Batch(tuple(order[start[end] : end]), rungs[end - 1]))
        end = start[end]
    return batches[::-1]


def batch_rows(crops: int, settings: RecogniserSettings) -> int:
    """Rows of the smallest batch that takes so many crops."""
    return next(size for size in settings.batch_sizes if size >= crops)


def batch_width(width_px: int, settings: RecogniserSettings) -> int:
    """Width in px of the narrowest batch that takes a crop of `width_px`."""
    if settings.width_step_px is None:
        return next(rung for rung in settings.widths_px if rung >= width_px)
    steps = -(-width_px // settings.width_step_px)
    return min(max(steps * settings.width_step_px, settings.widths_px[0]), settings.widths_px[-1])


def split_wide(image: Image, quad: Quad, settings: RecogniserSettings) -> list[Piece]:
    """The quad, or the pieces of one too wide for the ladder, cut where the text is thinnest."""
    width_px = int(np.ceil(settings.height_px * quad.width_px / max(quad.height_px, 1.0)))
    limit = settings.widths_px[-1]
    if width_px <= limit:
        return [Piece(quad)]
    strip = cv2.cvtColor(warp_quad(image, quad, min(width_px, 30_000), settings.height_px), cv2.COLOR_BGR2GRAY)
    contrast = np.ptp(strip, axis=0).astype(np.float32)
    ink = cv2.blur(contrast[None], (9, 1))[0]
    cuts, width_px = [0], strip.shape[1]
    while width_px - cuts[-1] > limit:
        window = slice(cuts[-1] + limit * 3 // 4, cuts[-1] + limit)
        cuts.append(window.start + int(np.argmin(ink[window])))
    spaced = [False, *(gap_px(contrast, cut) >= WORD_GAP * settings.height_px for cut in cuts[1:])]
    shares = [cut / width_px for cut in [*cuts, width_px]]
    quads = [part_of(quad, left, right) for left, right in itertools.pairwise(shares)]
    return [Piece(part, space) for part, space in zip(quads, spaced, strict=True)]


def gap_px(contrast: npt.NDArray[np.float32], at: int) -> int:
    """How many columns around `at` hold no stroke; `contrast` is the range of grey of each column of a line."""
    strokes = np.flatnonzero(contrast >= STROKE * np.percentile(contrast, 90))
    after = int(np.searchsorted(strokes, at))
    if after in (0, len(strokes)) or strokes[after] == at:
        return 0
    return int(strokes[after] - strokes[after - 1] - 1)


def part_of(quad: Quad, left: float, right: float) -> Quad:
    """The part of a quad between two shares (0..1) of its length."""
    top_left, top_right, bottom_right, bottom_left = quad.points
    top, bottom = top_right - top_left, bottom_right - bottom_left
    return Quad(
        np.stack(
            [top_left + left * top, top_left + right * top, bottom_left + right * bottom, bottom_left + left * bottom]
        )
    )
