"""Masks: decoded again under a pattern, told what was changed, and nothing changed without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from edge_agent.patterns import Pattern
from edge_agent.records import Correction, Field, TextLine
from edge_agent.settings.fields import CustomFieldConfig, FieldsConfig
from edge_agent.stages.field_extractor import FieldExtractor
from tests.stages.labels import line, spelled

NOW = datetime(2026, 11, 30, tzinfo=timezone.utc).timestamp()


def extractor(**masks: str) -> FieldExtractor:
    config = FieldsConfig(custom={name: CustomFieldConfig(mask=mask) for name, mask in masks.items()})
    return FieldExtractor(config, None, lambda: NOW)


def read(text: str, rivals: Mapping[str, tuple[str, float]] | None = None) -> TextLine:
    return replace(line(text), lattice=spelled(text, rivals))


def only(fields: tuple[Field, ...]) -> Field:
    (found,) = fields
    return found


def test_what_the_network_held_possible_is_taken_where_the_mask_asks_for_it() -> None:
    seen = read("LOT L47I1A", {"I": ("1", 0.2)})
    found = only(extractor(lot="L9999A").extract([seen]))
    assert (found.value, found.text, found.corrections) == ("L4711A", "L47I1A", (Correction(3, "I", "1"),))
    assert not found.certain
    assert found.flags == ()


def test_a_text_that_fits_is_taken_as_it_is() -> None:
    found = only(extractor(lot="L9999A").extract([read("LOT L4711A")]))
    assert (found.value, found.corrections, found.certain) == ("L4711A", (), True)


def test_no_character_is_changed_without_a_mask() -> None:
    found = only(extractor(serial_number="9999").extract([read("LOT A0B1O8", {"O": ("0", 0.49)})]))
    assert (found.value, found.corrections, found.certain) == ("A0B1O8", (), True)


@pytest.mark.parametrize("rivals", [{}, {"I": ("1", 1e-5)}])
def test_what_the_network_held_impossible_stays_as_read_and_is_flagged(rivals: Mapping[str, tuple[str, float]]) -> None:
    found = only(extractor(lot="L9999A").extract([read("LOT L47I1A", rivals)]))
    assert (found.value, found.flags, found.certain) == ("L47I1A", ("pattern_mismatch",), False)


def test_without_a_lattice_it_is_only_told_whether_the_value_fits() -> None:
    fits, fails = (only(extractor(lot="L9999A").extract([line(f"LOT {code}")])) for code in ("L4711A", "L47I1A"))
    assert (fits.value, fits.flags) == ("L4711A", ())
    assert (fails.value, fails.flags) == ("L47I1A", ("pattern_mismatch",))


def test_spaces_that_group_are_no_mismatch() -> None:
    assert only(extractor(lot="9999 9999").extract([line("LOT 1234 5678")])).value == "1234 5678"
    assert only(extractor(lot="99999999").extract([line("LOT 1234 5678")])).value == "12345678"


def test_a_mask_reaches_over_all_that_stands_behind_the_key() -> None:
    found = only(extractor(lot="AA -99999").extract([line("Batch No. QF -20931")]))
    assert (found.value, found.flags) == ("QF -20931", ())


def test_a_date_is_read_from_the_text_that_the_mask_allows() -> None:
    dates = extractor(expiry_date="99/99/9999")
    found = only(dates.extract([read("EXP 2B/08/2027", {"B": ("8", 0.3)})]))
    assert (found.value, found.text, found.corrections) == ("2027-08-28", "2B/08/2027", (Correction(1, "B", "8"),))
    assert only(dates.extract([line("EXP 28.08.2027")])).flags == ("pattern_mismatch",)


@pytest.mark.parametrize("text", ["EXP 1208/261471", "EXP 12:08/26 L4711"])
def test_a_string_that_does_not_fit_is_not_published_as_a_valid_date(text: str) -> None:
    found = extractor(expiry_date="99/99/99").extract([line(text)])
    assert all(not field.certain for field in found if field.name == "expiry_date")
    assert any(field.name == "expiry_date" for field in found)


def test_a_mask_names_a_word_that_no_key_names() -> None:
    found = extractor(lot="L9999A").extract([line("12/08/2026 L4711A 07:31"), line("Oat Biscuits", y=200)])
    assert [(f.name, f.value) for f in found if f.name == "lot"] == [("lot", "L4711A")]
    assert extractor(lot="999").extract([line("Room 123")]) == (), "too short to be told by its form"


def test_masks_of_a_region_go_before_the_configured_ones() -> None:
    lines = [replace(line("LOT A12"), region="cap"), replace(line("LOT 4711", y=200), region="side")]
    masks = {"cap": {"lot": Pattern.parse("A99")}}
    found = extractor(lot="9999").extract(lines, masks=lambda region: masks.get(str(region), {}))
    assert [(f.value, f.flags) for f in found] == [("A12", ()), ("4711", ())]


def test_a_lot_from_a_gs1_text_is_held_against_the_mask() -> None:
    text = "(01)09506000134352(10)AB12"
    lots = [f for f in extractor(lot="AA99").extract([line(text)]) if f.name == "lot"]
    assert [(f.value, f.flags) for f in lots] == [("AB12", ("from_gs1",))]
    lots = [f for f in extractor(lot="A999").extract([line(text)]) if f.name == "lot"]
    assert [f.flags for f in lots] == [("from_gs1", "pattern_mismatch")]


@pytest.mark.parametrize(
    ("text", "mask", "value"),
    [("S/N O921", "A999", "O921"), ("S/N O921", "999", "921"), ("SN O0123", "9999", "0123")],
)
def test_mask_says_whether_the_end_of_a_phrase_is_the_beginning_of_the_code(text: str, mask: str, value: str) -> None:
    found = only(extractor(serial_number=mask).extract([line(text)]))
    assert (found.value, found.text, found.flags, found.certain) == (value, value, (), True)
    doubted = only(extractor().extract([line(text)]))
    assert (doubted.flags, value in (doubted.value, *doubted.alternatives)) == (("ambiguous",), True)
