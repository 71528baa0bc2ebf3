"""Records: frozen values, honest geometry, strict JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from edge_agent.records import (
    Character,
    Code,
    Correction,
    Field,
    Frame,
    Lattice,
    Quad,
    Reading,
    TextBox,
    TextLine,
    field_to_json,
    json_bytes,
    rfc3339,
)


def test_frame_image_cannot_be_written() -> None:
    frame = Frame("line1", 0, 0.0, 0.0, np.zeros((4, 6, 3), np.uint8))
    with pytest.raises(ValueError, match="read-only"):
        frame.image[0, 0, 0] = 1
    assert (frame.width_px, frame.height_px) == (6, 4)


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 4), (0, 6, 3)])
def test_frame_refuses_other_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected uint8"):
        Frame("line1", 0, 0.0, 0.0, np.zeros(shape, np.uint8))


def test_quad_measures_along_and_across_the_text() -> None:
    quad = Quad(np.array([[0, 0], [0, 10], [-4, 10], [-4, 0]], np.float32))  # reads downwards
    assert quad.width_px == 10
    assert quad.height_px == 4
    assert quad.angle_deg == 90


def test_quad_refuses_points_that_are_not_finite() -> None:
    with pytest.raises(ValueError, match="finite"):
        Quad(np.full((4, 2), np.nan, np.float32))


def test_reading_id_is_stable_and_unique_per_capture() -> None:
    first = Reading("line1", 7, 1000.25, 640, 480)
    assert first.id == Reading("line1", 7, 1000.25, 640, 480, backend="other").id
    assert len({first.id, Reading("line1", 8, 1000.25, 640, 480).id, Reading("line2", 7, 1000.25, 640, 480).id}) == 3


def test_reading_becomes_strict_json() -> None:
    quad = Quad(np.array([[1, 2], [9, 2], [9, 5], [1, 5]], np.float32))
    reading = Reading("line1", 7, 0.0, 640, 480, (TextLine("LOT \ud83d1", 0.5, TextBox(quad, 0.9)),))
    parsed = json.loads(json_bytes(reading.to_json()).decode("utf-8"))
    assert parsed["captured_at"] == "1970-01-01T00:00:00.000Z"
    assert parsed["lines"][0]["quad"] == [[1.0, 2.0], [9.0, 2.0], [9.0, 5.0], [1.0, 5.0]]


def test_json_names_the_doubtful_characters_and_the_region_alone() -> None:
    quad = Quad(np.array([[1, 2], [9, 2], [9, 5], [1, 5]], np.float32))
    characters = (Character("A", 0.99, 9.0, ""), Character("O", 0.6, 0.75439, "0"))
    lattice = Lattice(
        ("", "O"), np.zeros((1, 2), np.float32), ("O",), np.zeros(1, np.float32), np.zeros((2, 2), np.int32)
    )
    line = TextLine("AO", 0.8, TextBox(quad, 0.9), (), characters, (1,), "date", lattice)
    written = Reading("line1", 7, 0.0, 640, 480, (line,), quality=("glare",)).to_json()
    assert written["quality"] == ["glare"]
    assert written["lines"][0]["region"] == "date"
    assert written["lines"][0]["doubtful"] == [{"at": 1, "text": "O", "rival": "0", "margin": 0.754}]
    assert "lattice" not in written["lines"][0] and "lattice" not in repr(line)


def test_lattice_refuses_arrays_that_do_not_fit_together() -> None:
    steps = np.zeros((0, 2), np.int32)
    with pytest.raises(ValueError, match=r"expected \(1, 2\)"):
        Lattice(("", "O"), np.zeros((2, 2), np.float32), ("O",), np.zeros(1, np.float32), steps)
    with pytest.raises(ValueError, match="blank"):
        Lattice(("O",), np.zeros((1, 1), np.float32), ("O",), np.zeros(1, np.float32), steps)


def test_json_has_null_where_a_number_is_not_finite() -> None:
    value = {"nan": math.nan, "inf": np.float32("inf"), "n": np.int64(3), "a": np.arange(2), "b": np.bool_(True)}

    def refuse(word: str) -> None:
        raise AssertionError(word)

    parsed = json.loads(json_bytes(value), parse_constant=refuse)
    assert parsed == {"nan": None, "inf": None, "n": 3, "a": [0, 1], "b": True}


def test_rfc3339_is_utc_with_milliseconds() -> None:
    assert rfc3339(1764504000.1234) == "2025-11-30T12:00:00.123Z"


@pytest.mark.parametrize(("field", "certain"), [
    (Field("lot", "A1", "A1", 1.0, (0,)), True),
    (Field("expiry_date", "2027-08-31", "08/2027", 1.0, (0,), ("month_precision",)), True),
    (Field("expiry_date", "2027-08-31", "08/2027", 1.0, (0,), ("month_precision", "cut")), False),
    (Field("expiry_date", "", "31/02/2027", 1.0, (0,)), False),
    (Field("lot", "L0", "LO", 1.0, (0,), corrections=(Correction(1, "O", "0"),)), False),
])  # fmt: skip
def test_a_field_is_certain_only_with_a_value_and_without_doubt(field: Field, certain: bool) -> None:
    assert field.certain is certain
    assert field_to_json(field)["certain"] is certain


def test_what_a_code_says_and_which_language_stand_in_the_reading() -> None:
    quad = Quad(np.array([[1, 2], [9, 2], [9, 5], [1, 5]], np.float32))
    code = Code("Code128", "01095060001343521727083110A\x1d21B", quad, "cap", "]C1")
    found = Field("lot", "A", "A", 1.0, (), ("from_gs1",), "barcode", codes=(0,))
    parsed = json.loads(json_bytes(Reading("c", 1, 0.0, 9, 9, fields=(found,), codes=(code,), language="de").to_json()))
    assert parsed["language"] == "de"
    assert parsed["codes"][0]["text"] == code.text
    assert parsed["codes"][0]["region"] == "cap"
    assert parsed["fields"][0] | {"source": "barcode", "codes": [0], "lines": []} == parsed["fields"][0]
