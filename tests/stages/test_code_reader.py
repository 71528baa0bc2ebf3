"""CodeReader: codes drawn by the library's own writer, read back at any angle."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import zxingcpp

from edge_agent.stages.code_reader import CodeReader

FORMATS = ("EAN13", "EAN8", "UPCA", "Code128", "DataMatrix", "QRCode")
GS1 = "(01)09506000134352(17)280131(10)AB12(21)77"
GS1_CONTENT = "01095060001343521728013110AB12\x1d2177"


def drawn(text: str, kind: str, *, gs1: bool = False, scale: int = 4) -> np.ndarray:
    """The code in BGR with a quiet zone about it."""
    code = zxingcpp.create_barcode(text, getattr(zxingcpp.BarcodeFormat, kind), **({"gs1": True} if gs1 else {}))
    grey = np.array(code.to_image(scale=scale))
    return cv2.cvtColor(cv2.copyMakeBorder(grey, 40, 40, 40, 40, cv2.BORDER_CONSTANT, value=255), cv2.COLOR_GRAY2BGR)


@pytest.mark.parametrize(
    ("kind", "text", "identifier"),
    [
        ("EAN13", "4006381333931", "]E0"),
        ("EAN8", "96385074", "]E4"),
        ("Code128", "SN-204411", "]C0"),
        ("QRCode", "https://example.com/a", "]Q1"),
        ("DataMatrix", "L4711A", "]d1"),
    ],
)
def test_a_code_is_read_with_its_symbology(kind: str, text: str, identifier: str) -> None:
    (code,) = CodeReader().read(drawn(text, kind), FORMATS)
    assert (code.symbology, code.text, code.identifier) == (kind, text, identifier)


@pytest.mark.parametrize("kind", ["Code128", "DataMatrix", "QRCode"])
def test_gs1_content_keeps_its_separators_and_says_that_it_is_gs1(kind: str) -> None:
    (code,) = CodeReader().read(drawn(GS1, kind, gs1=True), FORMATS)
    assert (code.text, code.identifier) == (GS1_CONTENT, {"Code128": "]C1", "DataMatrix": "]d2", "QRCode": "]Q3"}[kind])


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_a_turned_code_has_its_quad_where_it_stands(turns: int) -> None:
    image = np.rot90(drawn("4006381333931", "EAN13"), turns).copy()
    (code,) = CodeReader().read(image, FORMATS)
    height, width = image.shape[:2]
    assert np.abs(code.quad.centre - [width / 2, height / 2]).max() < 30
    assert code.quad.points.min() >= 30
    assert abs(code.quad.angle_deg - (-90 * turns + 540) % 360 + 180) % 360 < 3


def test_only_the_formats_asked_for_are_looked_for() -> None:
    image = drawn("4006381333931", "EAN13")
    assert CodeReader().read(image, ("QRCode",)) == ()
    assert CodeReader().read(image, ()) == ()


def test_several_codes_come_top_to_bottom() -> None:
    both = np.full((700, 600, 3), 255, np.uint8)
    for text, top in (("UPPER", 20), ("LOWER", 380)):
        code = drawn(text, "Code128", scale=3)
        both[top : top + code.shape[0], 10 : 10 + code.shape[1]] = code[:, :590]
    assert [code.text for code in CodeReader().read(both, FORMATS)] == ["UPPER", "LOWER"]


@pytest.mark.parametrize("shape", [(1, 1, 3), (3, 4000, 3), (0, 5, 3)])
def test_pictures_without_codes_give_none(shape: tuple[int, ...]) -> None:
    assert CodeReader().read(np.zeros(shape, np.uint8), FORMATS) == ()


def test_a_view_into_a_larger_picture_is_taken() -> None:
    image = np.full((600, 900, 3), 200, np.uint8)
    code = drawn("96385074", "EAN8")
    image[50 : 50 + code.shape[0], 100 : 100 + code.shape[1]] = code
    view = image[40 : 60 + code.shape[0], 90 : 120 + code.shape[1]]
    assert [c.text for c in CodeReader().read(view, FORMATS)] == ["96385074"]
