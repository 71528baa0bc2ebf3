"""CodeReader: bar codes and 2D codes in a picture, decoded by zxing-cpp.

A bar code has one check digit, and a blurred one of 2 px a bar comes out wrong with a check digit that holds (measured
on a moving label: 15 of 16 reads, nearly each another number). So a bar code counts only where it says the same when
its part of the picture is read again, enlarged. 2D codes correct their errors and need no second look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import cv2
import numpy as np
import numpy.typing as npt
import zxingcpp

from edge_agent.records import Code, Quad
from edge_agent.stages.code_places import Grey, bar_places, edges, matrix_places
from edge_agent.stages.zoom import Window

MATRICES = frozenset({"Aztec", "DataMatrix", "MicroQRCode", "PDF417", "QRCode", "RMQRCode"})
PLACED_MATRICES = frozenset({"DataMatrix", "MicroQRCode", "QRCode", "RMQRCode"})  # looked for where modules can be
ANYWHERE = frozenset({"Aztec"})  # what zxing-cpp finds of it depends on how much is around it
SHRINK = 3  # codes are looked for in the picture and in it made so many times smaller, again and again
SMALL_PX = 500  # the longer side of a picture that is made no smaller, and searched as a whole
SPARE = (
    0.1  # of a code's longer side: so far apart, two looks have found one code; a bar code may be seen in part alone
)
MARGIN = 0.15  # of a bar code's width, about it: its quiet zone must be seen
WIDE_PX = 1000  # a bar code as wide is enlarged less
MAX_TEXT_CHARS = 4096  # of one code: the largest QR code holds 7089 digits


class CodeReader:
    """Decodes codes at any angle, light on dark too. Keeps nothing between pictures; any thread may call."""

    def read(self, image: npt.NDArray[np.uint8], formats: Sequence[str]) -> tuple[Code, ...]:
        """The codes in `image`, uint8 (H, W, 3) BGR, top to bottom; `formats` such as EAN13 (config.CodeFormat): the
        fewer, the faster.

        Quads are px in `image`, clockwise from the code's own top-left. A code whose checksum fails is none, nor is a
        bar code that says something else on a second look. A code that stands there twice is told twice.
        """
        if not formats or 0 in image.shape:
            return ()
        grey = np.asarray(cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_BGR2GRAY), np.uint8)
        codes: list[Code] = []
        for code in _found(grey, formats):
            if not any(_is_same(code, known) for known in codes):
                codes.append(code)
        bars = [name for name in formats if name not in MATRICES]
        codes = [code for code in codes if code.symbology in MATRICES or _stands(code, grey, bars)]
        return tuple(sorted(codes, key=lambda code: tuple(code.quad.points[:, ::-1].min(axis=0))))


def _found(grey: Grey, formats: Sequence[str]) -> Iterator[Code]:
    """Codes of the picture and of it made smaller, in its px; some of them several times."""
    for layer, times in _layers(grey):
        for names, window in _searches(layer, formats):
            for code in _decoded(window.of(layer), names):
                points = code.quad.points + np.array([window.left, window.top], np.float32)
                yield replace(code, quad=Quad(points * times))


def _layers(grey: Grey) -> Iterator[tuple[Grey, int]]:
    """The picture, and how many times smaller it is than at first."""
    times = 1
    yield grey, times
    while max(grey.shape) > SMALL_PX and min(grey.shape) >= SHRINK:
        high, wide = (side // SHRINK for side in grey.shape)
        part = grey[: high * SHRINK, : wide * SHRINK]
        grey = np.asarray(cv2.resize(part, (wide, high), interpolation=cv2.INTER_AREA), np.uint8)
        times *= SHRINK
        yield grey, times


def _searches(grey: Grey, formats: Sequence[str]) -> Iterator[tuple[Sequence[str], Window]]:
    """Which formats to look for in which parts of a picture."""
    whole = Window(0, 0, grey.shape[1], grey.shape[0])
    if max(grey.shape) <= SMALL_PX:
        yield formats, whole
        return
    anywhere = [name for name in formats if name in ANYWHERE]
    matrices = [name for name in formats if name in PLACED_MATRICES]
    others = [name for name in formats if name not in ANYWHERE | PLACED_MATRICES]
    seen = edges(grey)
    for names, windows in ((matrices, matrix_places(*seen)), (others, bar_places(*seen))):
        if windows is None:
            anywhere += names
        elif names:
            yield from ((names, window) for window in windows)
    if anywhere:
        yield anywhere, whole


def _decoded(grey: Grey, formats: Sequence[str]) -> list[Code]:
    wanted = zxingcpp.barcode_formats_from_str(",".join(formats))
    found = zxingcpp.read_barcodes(grey, formats=wanted, text_mode=zxingcpp.TextMode.Plain, try_downscale=False)
    return [_code(one) for one in found if one.valid and one.text]


def _is_same(one: Code, other: Code) -> bool:
    """Whether both are one code, found twice: they say the same, and one stands where the other does."""
    if (one.symbology, one.text) != (other.symbology, other.text):
        return False
    return _is_around(one.quad, other.quad) or _is_around(other.quad, one.quad)


def _is_around(quad: Quad, other: Quad) -> bool:
    """Whether the middle of the other lies in the quad, give or take what two looks differ by."""
    low, high = quad.points.min(axis=0), quad.points.max(axis=0)
    spare = SPARE * (high - low).max()
    return bool((low - spare <= other.centre).all() and (other.centre <= high + spare).all())


def _stands(code: Code, grey: Grey, formats: Sequence[str]) -> bool:
    """Whether the bar code's part of the picture, enlarged, gives its text and no other."""
    (left, top), (right, bottom) = code.quad.points.min(axis=0), code.quad.points.max(axis=0)
    margin = 2 + MARGIN * max(right - left, bottom - top)
    rows = slice(max(0, int(top - margin)), int(bottom + margin) + 1)
    columns = slice(max(0, int(left - margin)), int(right + margin) + 1)
    factor = 2.0 if max(right - left, bottom - top) < WIDE_PX else 1.5
    enlarged = cv2.resize(grey[rows, columns], None, fx=factor, fy=factor, interpolation=cv2.INTER_CUBIC)
    return {one.text for one in _decoded(np.asarray(enlarged, np.uint8), formats)} == {code.text}


def _code(found: zxingcpp.Barcode) -> Code:
    at = found.position
    corners = [(p.x, p.y) for p in (at.top_left, at.top_right, at.bottom_right, at.bottom_left)]
    return Code(
        symbology=found.format.name,
        text=found.text[:MAX_TEXT_CHARS],
        quad=Quad(np.array(corners, np.float32)),
        identifier=found.symbology_identifier,
    )
