from __future__ import annotations

import pytest

from edge_agent.stages.half_keys import half_keys
from edge_agent.stages.key_phrases import find_key_phrases, lexicon_table


def found(text: str) -> list[tuple[str, str]]:
    keys = find_key_phrases(text)
    return [(key.name, text[key.start : key.end]) for key in half_keys(text, keys, lexicon_table())]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("E 12/2027", [("expiry_date", "E")]),
        ("P: 13.01.2026 E: 13.01.2028", [("manufacture_date", "P"), ("expiry_date", "E")]),
        ("F.V. 18/05/2028", [("expiry_date", "F.V.")]),
        ("L: 2345B", [("lot", "L")]),
        ("B: A4471", [("lot", "B")]),
        ("S1N: 8841007", [("serial_number", "S1N")]),
        ("Pack S/NBT2207-118", [("serial_number", "S/N")]),
        ("PC: 04012345678901", [("barcode_digits", "PC")]),
    ],
)
def test_letter_counts_before_such_a_value(text: str, wanted: list[tuple[str, str]]) -> None:
    assert sorted(found(text)) == sorted(wanted)


@pytest.mark.parametrize(
    "text",
    ["Green E 12/2027", "E 471", "L: 20.03.2027", "B: 500 g", "L: 120 x 80 cm", "VITAMIN E", "PER 100 g", "SIN 100"],
)
def test_letter_before_anything_else_is_a_letter(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("MH: 27.02.2028", "expiry_date"),
        ("SE BY 09.12.26", "expiry_date"),
        ("Us betore 2029-10", "expiry_date"),
        ("Chage 118820", "lot"),
        ("OT# 0091", "lot"),
    ],
)
def test_piece_of_a_phrase_counts_where_one_field_alone_has_it(text: str, name: str) -> None:
    assert [each for each, _ in found(text)] == [name]


@pytest.mark.parametrize(
    "text", ["DM 19/09/2027", "Note 4471", "Series 500", "Vat 0917-3", "Pesto 190 g", "rice fl0ur, oil", "Loe", "LO TE"]
)
def test_what_two_fields_have_or_is_a_word_or_has_no_value_is_no_piece(text: str) -> None:
    assert found(text) == []


def test_phrase_that_stands_there_needs_no_half_of_one() -> None:
    assert found("LOT A123 EP 08/2027") == []
    assert found("LOT A123 E 08/2027") == [("expiry_date", "E")]
