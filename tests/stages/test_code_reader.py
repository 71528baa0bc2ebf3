"""CodeReader: codes drawn by the library's own writer, read back at any angle."""

from __future__ import annotations

import itertools

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


def placed(*codes: tuple[str, str, int, tuple[int, int]], size: tuple[int, int] = (1280, 720)) -> np.ndarray:
    """A noisy frame with codes: kind, text, px a module, and where their quiet zone begins."""
    frame = np.full((size[1], size[0], 3), 190, np.uint8)
    for kind, text, scale, (left, top) in codes:
        code = drawn(text, kind, scale=scale)[20:-20, 20:-20]
        frame[top : top + code.shape[0], left : left + code.shape[1]] = code
    noise = np.random.default_rng(0).normal(0, 5, (*frame.shape[:2], 1))
    return np.clip(frame + noise, 0, 255).astype(np.uint8)


def test_codes_all_over_a_large_frame_are_each_told_once_where_they_stand() -> None:
    codes = (
        ("DataMatrix", "L4711A", 3, (8, 8)),
        ("QRCode", "https://example.com/a", 4, (900, 20)),
        ("EAN13", "4006381333931", 3, (300, 200)),
        ("DataMatrix", "BIG", 14, (500, 420)),
        ("DataMatrix", "L4711A", 3, (1180, 620)),
        ("PDF417", "PDF417 LOT 4711", 3, (20, 500)),
        ("Aztec", "AZTEC", 4, (60, 300)),
    )
    found = CodeReader().read(placed(*codes), (*FORMATS, "PDF417", "Aztec"))
    assert sorted(code.text for code in found) == sorted(text for _, text, _, _ in codes)
    for kind, text, scale, (left, top) in codes:
        side = drawn(text, kind, scale=scale).shape
        middle = np.array([left + side[1] / 2 - 20, top + side[0] / 2 - 20])
        assert any(code.text == text and np.abs(code.quad.centre - middle).max() < 20 for code in found), text


@pytest.mark.parametrize("scale", [2, 6, 12, 24, 40])
def test_a_code_of_any_size_is_found_in_a_frame_of_12_megapixels(scale: int) -> None:
    frame = placed(("DataMatrix", "L4711A", scale, (1800, 900)), size=(4000, 3000))
    (code,) = CodeReader().read(frame, ("DataMatrix",))
    width = drawn("L4711A", "DataMatrix", scale=scale).shape[1]
    assert np.abs(code.quad.centre - [1800 + width / 2 - 20, 900 + width / 2 - 20]).max() < scale + 6


def test_two_like_codes_side_by_side_are_told_twice() -> None:
    frame = placed(("EAN8", "96385074", 3, (100, 100)), ("EAN8", "96385074", 3, (500, 130)))
    assert [code.text for code in CodeReader().read(frame, FORMATS)] == ["96385074"] * 2


def test_a_2d_code_beside_a_bar_code_does_not_speak_against_it() -> None:
    frame = placed(("EAN8", "96385074", 3, (100, 100)), ("DataMatrix", "L4711A", 3, (100, 250)))
    assert {code.text for code in CodeReader().read(frame, FORMATS)} == {"96385074", "L4711A"}


@pytest.mark.parametrize("shape", [(1, 1, 3), (3, 4000, 3), (0, 5, 3)])
def test_pictures_without_codes_give_none(shape: tuple[int, ...]) -> None:
    assert CodeReader().read(np.zeros(shape, np.uint8), FORMATS) == ()


def test_a_view_into_a_larger_picture_is_taken() -> None:
    image = np.full((600, 900, 3), 200, np.uint8)
    code = drawn("96385074", "EAN8")
    image[50 : 50 + code.shape[0], 100 : 100 + code.shape[1]] = code
    view = image[40 : 60 + code.shape[0], 90 : 120 + code.shape[1]]
    assert [c.text for c in CodeReader().read(view, FORMATS)] == ["96385074"]


def blurred(text: str, blur: int, shift_px: float, *, upside_down: bool) -> np.ndarray:
    """An EAN-13 of 2 px a bar on a label, between the pixels and out of focus, as a moving one is."""
    bars = np.array(zxingcpp.create_barcode(text, zxingcpp.BarcodeFormat.EAN13).to_image(scale=2))
    label = np.full((bars.shape[0] + 80, bars.shape[1] + 80), 235, np.uint8)
    label[40:-40, 40:-40] = np.where(bars > 0, 235, 30)
    moved = np.array([[0.98, 0, shift_px], [0, 0.98, shift_px]], np.float32)
    turned = np.rot90(label, 2 if upside_down else 0).copy()
    seen = cv2.GaussianBlur(
        cv2.warpAffine(turned, moved, label.shape[::-1], borderValue=235), (0, 0), 0.5 + 0.15 * blur
    )
    noise = np.random.default_rng(blur).normal(0, 3, seen.shape)
    return cv2.cvtColor(np.clip(seen + noise, 0, 255).astype(np.uint8), cv2.COLOR_GRAY2BGR)


def test_a_bar_code_is_told_only_where_a_second_look_agrees() -> None:
    right = first_looks_wrong = 0
    for text in ("9521234567042", "4006381333931", "9521234567059", "5901234123457"):
        for blur, shift_px, upside_down in itertools.product(range(1, 8), (0.0, 0.25, 0.5, 0.75), (False, True)):
            image = blurred(text, blur, shift_px, upside_down=upside_down)
            seen = zxingcpp.read_barcodes(image, formats=zxingcpp.barcode_formats_from_str(",".join(FORMATS)))
            first_looks_wrong += any(code.text != text for code in seen)
            told = [code.text for code in CodeReader().read(image, FORMATS)]
            assert told in ([], [text])
            right += bool(told)
    assert first_looks_wrong, "else this would hold nothing"
    assert right > 30
