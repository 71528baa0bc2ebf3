"""CodeReader: bar codes and 2D codes in a picture, decoded by zxing-cpp.

A bar code has one check digit, and a blurred one of 2 px a bar comes out wrong with a check digit that holds (measured
on a moving label: 15 of 16 reads, nearly each another number). So a bar code counts only where it says the same when
its part of the picture is read again, enlarged. 2D codes correct their errors and need no second look.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt
import zxingcpp

from edge_agent.records import Code, Quad

MATRICES = frozenset({"Aztec", "DataMatrix", "MicroQRCode", "PDF417", "QRCode", "RMQRCode"})
MARGIN = 0.15  # of a bar code's width, about it: its quiet zone must be seen
WIDE_PX = 1000  # a bar code as wide is enlarged less
MAX_TEXT_CHARS = 4096  # of one code: the largest QR code holds 7089 digits


class CodeReader:
    """Decodes codes at any angle, light on dark too. Keeps nothing between pictures; any thread may call."""

    def read(self, image: npt.NDArray[np.uint8], formats: Sequence[str]) -> tuple[Code, ...]:
        """The codes in `image`, uint8 (H, W, 3) BGR, top to bottom; `formats` such as EAN13, of
        settings.fields.CodeFormat: the fewer, the faster.

        Quads are px in `image`, clockwise from the code's own top-left. A code whose checksum fails is none, nor is a
        bar code that says something else on a second look. A code that stands there twice is told twice.
        """
        if not formats or 0 in image.shape:
            return ()
        wanted = zxingcpp.barcode_formats_from_str(",".join(formats))
        found = (_code(one) for one in _decoded(image, wanted))
        codes = [code for code in found if code.symbology in MATRICES or _stands(code, image, wanted)]
        return tuple(sorted(codes, key=lambda code: tuple(code.quad.points[:, ::-1].min(axis=0))))


def _decoded(image: npt.NDArray[np.uint8], formats: zxingcpp.BarcodeFormats) -> list[zxingcpp.Barcode]:
    picture = np.ascontiguousarray(image)
    found = zxingcpp.read_barcodes(picture, formats=formats, text_mode=zxingcpp.TextMode.Plain)
    return [one for one in found if one.valid and one.text]


def _stands(code: Code, image: npt.NDArray[np.uint8], formats: zxingcpp.BarcodeFormats) -> bool:
    """Whether the code's part of the picture, enlarged, gives its text and no other."""
    (left, top), (right, bottom) = code.quad.points.min(axis=0), code.quad.points.max(axis=0)
    margin = 2 + MARGIN * max(right - left, bottom - top)
    rows = slice(max(0, int(top - margin)), int(bottom + margin) + 1)
    columns = slice(max(0, int(left - margin)), int(right + margin) + 1)
    factor = 2.0 if max(right - left, bottom - top) < WIDE_PX else 1.5
    enlarged = cv2.resize(image[rows, columns], None, fx=factor, fy=factor, interpolation=cv2.INTER_CUBIC)
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
