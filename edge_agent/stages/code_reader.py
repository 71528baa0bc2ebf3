"""CodeReader: bar codes and 2D codes in a picture, decoded by zxing-cpp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import zxingcpp

from edge_agent.records import Code, Quad

MAX_TEXT_CHARS = 4096  # of one code: the largest QR code holds 7089 digits


class CodeReader:
    """Decodes codes at any angle, light on dark too. Keeps nothing between pictures; any thread may call."""

    def read(self, image: npt.NDArray[np.uint8], formats: Sequence[str]) -> tuple[Code, ...]:
        """The codes in `image`, uint8 (H, W, 3) BGR, top to bottom; `formats` such as EAN13 (config.CodeFormat): the
        fewer, the faster.

        Quads are px in `image`, clockwise from the code's own top-left. A code whose checksum fails is none. A code
        that stands there twice with one content is told twice.
        """
        if not formats or 0 in image.shape:
            return ()
        wanted = zxingcpp.barcode_formats_from_str(",".join(formats))
        found = zxingcpp.read_barcodes(np.ascontiguousarray(image), formats=wanted, text_mode=zxingcpp.TextMode.Plain)
        codes = [_code(one) for one in found if one.valid and one.text]
        return tuple(sorted(codes, key=lambda code: tuple(code.quad.points[:, ::-1].min(axis=0))))


def _code(found: zxingcpp.Barcode) -> Code:
    at = found.position
    corners = [(p.x, p.y) for p in (at.top_left, at.top_right, at.bottom_right, at.bottom_left)]
    return Code(
        symbology=found.format.name,
        text=found.text[:MAX_TEXT_CHARS],
        quad=Quad(np.array(corners, np.float32)),
        identifier=found.symbology_identifier,
    )
