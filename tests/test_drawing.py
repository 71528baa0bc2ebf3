"""Drawing: outlines on the picture, everything readable beside it, nothing over the text."""

from __future__ import annotations

import numpy as np
import pytest

from edge_agent import drawing
from edge_agent.drawing import Letters, PillowLetters, StrokeLetters, annotated, fitted, free_spot, line_colours
from edge_agent.records import Field, Quad, Reading, TextBox, TextLine

LETTERS = [pytest.param(StrokeLetters(), id="strokes"), pytest.param(PillowLetters(), id="pillow")]


def line(text: str, left: float, top: float, right: float, bottom: float) -> TextLine:
    quad = Quad(np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float32))
    return TextLine(text, 0.97, TextBox(quad, 0.9))


def reading(lines: tuple[TextLine, ...], fields: tuple[Field, ...] = (), reason: str | None = None) -> Reading:
    return Reading("line1", 7, 0.0, 640, 480, lines, fields, reason=reason)


LINES = (line("LOT A7K2093", 200, 100, 400, 130), line("EXP 2027-08-31", 200, 150, 420, 180))
FIELDS = (Field("lot", "A7K2093", "A7K2093", 0.97, (0,)), Field("expiry_date", "2027-08-31", "2027-08-31", 0.9, (1,)))
PAPER = np.full((480, 640, 3), 255, np.uint8)


@pytest.fixture(params=LETTERS)
def letters(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Letters:
    chosen: Letters = request.param
    monkeypatch.setattr(drawing, "choose_letters", lambda: chosen)
    return chosen


def test_the_picture_keeps_its_pixels_and_gets_a_panel(letters: Letters) -> None:
    before = PAPER.copy()
    result = annotated(PAPER, reading(LINES, FIELDS))
    assert result.dtype == np.uint8
    assert result.shape[1] > 640
    assert np.array_equal(before, PAPER), "the frame that came in is not drawn upon"
    assert (result[300:480, 0:640] == 255).all(), "nothing is drawn where there is no text"
    assert (result[105:125, 206:394] == 255).all(), "nothing is drawn over the text itself"


def test_each_field_has_its_colour_on_the_picture_and_in_the_panel(letters: Letters) -> None:
    result = annotated(PAPER, reading(LINES, FIELDS))
    for number, colour in line_colours(reading(LINES, FIELDS)).items():
        same = (result == np.array(colour)).all(axis=2)
        assert same[:, :640].sum() > 300, f"line {number} is not outlined"
        assert same[:, 640:].sum() > 100, f"line {number} is not in the panel"


def test_what_does_not_fit_the_panel_is_counted(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(type(letters), "write", lambda self, p, x, y, text, size, colour: written.append(text))
    many = tuple(line(f"text {n}", 10, 3 * n, 60, 3 * n + 2) for n in range(150))
    annotated(PAPER, reading(many))
    shown = [text for text in written if text.startswith("text ")]
    assert 10 < len(shown) < 150
    assert f"... {150 - len(shown)} more" in written


@pytest.mark.parametrize("reason", ["no_text", None])
def test_no_text_is_said(letters: Letters, monkeypatch: pytest.MonkeyPatch, reason: str | None) -> None:
    written: list[str] = []
    monkeypatch.setattr(type(letters), "write", lambda self, p, x, y, text, size, colour: written.append(text))
    annotated(PAPER, reading((), reason=reason), "image.png")
    assert written == ["image.png", "no text found"]


@pytest.mark.parametrize("size", [(1, 1), (16, 3000), (3000, 16), (2160, 3840)])
def test_any_size_of_picture_can_be_drawn(letters: Letters, size: tuple[int, int]) -> None:
    image = np.zeros((*size, 3), np.uint8)
    far = (line("off the picture", -500, -500, -300, -480), line("beyond", 1e6, 1e6, 1e6 + 5, 1e6 + 5))
    result = annotated(image, reading((*LINES, *far), FIELDS))
    assert result.shape[0] >= size[0]
    assert result.shape[1] > size[1]


@pytest.mark.parametrize("text", ["", " ", "Größe 5 µm", "漢字", "a\u0000b\x1b[31m\n", "\ud83d", "\u202eabc", "🙂"])
def test_any_text_can_be_drawn(letters: Letters, text: str) -> None:
    annotated(PAPER, reading((line(text, 100, 100, 300, 130),)))


def test_long_text_is_cut_to_fit(letters: Letters) -> None:
    text = "one very long line of text " * 20
    short = fitted(text, 200, 20, letters)
    assert short.endswith("...")
    assert letters.width_px(short, 20) <= 200
    assert letters.width_px(text[: len(short) - 2] + "...", 20) > 200, "it could have been longer"
    assert fitted("short", 200, 20, letters) == "short"


def test_a_chip_goes_where_it_hides_no_text() -> None:
    beside, size, within = (100, 100, 200, 120), (40, 18), (640, 480)
    left_taken, right_taken = (50, 90, 98, 130), (202, 90, 300, 130)
    assert free_spot(beside, size, [beside], within, 4)[2] < 100
    assert free_spot(beside, size, [beside, left_taken], within, 4)[0] > 200
    spot = free_spot(beside, size, [beside, left_taken, right_taken], within, 4)
    assert spot[3] <= 100
    assert free_spot((0, 0, 30, 18), size, [(0, 0, 30, 18)], within, 4)[0] >= 30, "not outside the picture"


def test_letters_of_other_scripts_come_from_a_font_that_has_them() -> None:
    if not any(drawing.Path(path).is_file() for path in drawing.FONTS):
        pytest.skip("none of the fonts for other scripts is installed")
    own = drawing._fonts(20)[0]
    assert drawing._font_for("LOT A7K2093", 20) is own
    assert drawing._font_for("Größe", 20) is not own


def test_strokes_show_a_question_mark_for_what_they_lack() -> None:
    strokes = StrokeLetters()
    assert strokes.width_px("Größe", 20) == strokes.width_px("Gr??e", 20)
