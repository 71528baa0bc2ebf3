"""Doubts: a value with a character that could be another says so, unless something settles which of the two it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone

import numpy as np
import pytest

from edge_agent.patterns import Pattern
from edge_agent.records import Character, Code, Field, TextLine
from edge_agent.settings.fields import FieldsConfig
from edge_agent.stages.catalogue import Catalogue, Product
from edge_agent.stages.field_extractor import FieldExtractor
from tests.stages.labels import line, spelled

NOW = datetime(2026, 11, 30, tzinfo=timezone.utc).timestamp()
EXTRACTOR = FieldExtractor(FieldsConfig(), None, lambda: NOW)


def doubted(text: str, rivals: Mapping[int, tuple[str, float]], y: float = 0) -> TextLine:
    """A line as read, in which the characters at some places have a rival with that share of their probability."""
    characters = tuple(
        Character(char, 0.9, 1.0, rivals[at][0]) if at in rivals else Character(char, 0.99, 9.0, "")
        for at, char in enumerate(text)
    )
    lattice = spelled(text)
    log_p = lattice.log_p.copy()
    for at, (rival, share) in rivals.items():
        log_p[slice(*lattice.steps[at]), lattice.alphabet.index(rival)] = np.log(share)
    lattice = replace(lattice, log_p=log_p)
    return replace(line(text, y=y), characters=characters, doubtful=tuple(sorted(rivals)), lattice=lattice)


def only(name: str, *lines: TextLine, mask: str | None = None) -> Field:
    masks = {} if mask is None else {name: Pattern.parse(mask)}
    (found,) = [field for field in EXTRACTOR.extract(lines, (), lambda region: masks) if field.name == name]
    return found


def test_doubtful_character_of_a_lot_makes_it_uncertain() -> None:
    found = only("lot", doubted("LOT A0B1O8", {8: ("0", 0.3)}))
    assert (found.value, found.flags, found.certain) == ("A0B1O8", ("doubtful",), False)


def test_doubtful_character_of_the_key_or_of_another_field_does_not() -> None:
    text = "LOT A71 EXP 14/08/2027"
    assert only("lot", doubted(text, {1: ("0", 0.3), 10: ("3", 0.3)})).certain
    assert not only("lot", doubted(text, {4: ("4", 0.3)})).certain
    assert only("expiry_date", doubted(text, {4: ("4", 0.3)})).certain


@pytest.mark.parametrize(("rival", "certain"), [("G", True), ("/", True), ("8", False), ("l", False)])
def test_date_is_doubtful_only_where_the_other_character_makes_another_date(rival: str, certain: bool) -> None:
    found = only("expiry_date", doubted("EXP 13.06.2027", {8: (rival, 0.3)}))  # a G is a 6, an l a 1
    assert (found.value, found.certain) == ("2027-06-13", certain)


def test_date_that_does_not_exist_or_lies_far_away_is_no_doubt() -> None:
    assert only("expiry_date", doubted("EXP 30.06.2027", {4: ("8", 0.3)})).certain, "the 80th of June"
    assert only("expiry_date", doubted("EXP 30.06.2027", {10: ("7", 0.3)})).certain, "7027"


def test_check_digit_settles_one_digit_and_not_two_that_keep_it() -> None:
    assert only("barcode_digits", doubted("EAN 4006381333931", {10: ("4", 0.3)})).certain
    kept, broken = {7: ("4", 0.3), 9: ("0", 0.3)}, {7: ("4", 0.3), 9: ("9", 0.3)}  # both weigh 3: 6 + 8 = 4 + 0 mod 10
    assert only("barcode_digits", doubted("EAN 4006381333931", kept)).flags == ("doubtful",)
    assert only("barcode_digits", doubted("EAN 4006381333931", broken)).certain


@pytest.mark.parametrize(("mask", "certain"), [("A9A9A9", True), ("A9A9*9", False), ("??????", False)])
def test_pattern_whose_place_takes_only_one_of_the_two_settles_it(mask: str, certain: bool) -> None:
    found = only("lot", doubted("LOT A0B1O8", {8: ("0", 0.3)}), mask=mask)
    assert (found.value, found.corrections, found.certain) == ("A0B1O8", (), certain)


def test_pattern_does_not_settle_it_against_a_third_character_that_is_as_near() -> None:
    seen = doubted("LOT A0B1O8", {5: ("O", 0.3)})
    assert only("lot", seen, mask="A9A9A9").certain
    assert seen.lattice is not None
    log_p = seen.lattice.log_p.copy()
    log_p[slice(*seen.lattice.steps[5]), seen.lattice.alphabet.index("8")] = np.log(0.2)
    assert not only("lot", replace(seen, lattice=replace(seen.lattice, log_p=log_p)), mask="A9A9A9").certain


def test_sign_that_no_code_holds_is_no_doubt() -> None:
    text = "S/N 7K-00921|"  # so that the lattice knows the sign
    seen = doubted(text, {4: ("|", 0.3)})
    cut = replace(seen, text=text[:-1], characters=seen.characters[:-1])
    assert only("serial_number", cut).certain
    assert not only("serial_number", doubted("S/N 7K-00921", {6: (".", 0.3)})).certain


def test_code_of_capitals_holds_no_small_letter() -> None:
    assert only("lot", doubted("LOT A123", {5: ("l", 0.3)})).certain
    assert not only("lot", doubted("LOT A123", {4: ("4", 0.3)})).certain
    assert not only("lot", doubted("LOT a123", {5: ("l", 0.3)})).certain
    assert not only("lot", doubted("LOT 4123", {5: ("l", 0.3)})).certain


def test_words_settle_letters_and_not_their_numbers() -> None:
    found = only("ingredients", doubted("Ingredients: Olive oil 70 g1", {14: ("I", 0.3), 13: ("0", 0.3)}))
    assert found.certain
    assert not only("ingredients", doubted("Ingredients: Olive oil 70 g", {23: ("1", 0.3)})).certain
    assert not only("ingredients", doubted("Ingredients: Olive oil 70 g", {19: ("f", 0.3)})).certain


def test_doubt_without_a_known_rival_stays() -> None:
    assert not only("lot", replace(line("LOT L4711A"), doubtful=(5,))).certain


def test_a_code_that_says_the_same_settles_it_and_one_that_differs_does_not() -> None:
    seen = doubted("LOT AB12", {6: ("7", 0.3)})
    for content, flags in (("AB12", ()), ("AB72", ("doubtful", "contradicts_code"))):
        code = Code("DataMatrix", f"010950600013435210{content}", line("", y=300).box.quad, identifier="]d2")
        printed = [f for f in EXTRACTOR.extract([seen], [code]) if f.name == "lot" and f.source != "barcode"]
        assert [f.flags for f in printed] == [flags], content


def test_a_month_of_a_code_does_not_settle_the_day() -> None:
    seen = doubted("EXP 14.08.2027", {5: ("6", 0.3)})
    for day, certain in (("14", True), ("00", False)):
        code = Code("DataMatrix", f"01095060001343521727 08{day}".replace(" ", ""), seen.box.quad, identifier="]d2")
        fields = EXTRACTOR.extract([seen], [code])
        assert [f.certain for f in fields if f.name == "expiry_date" and f.source != "barcode"] == [certain]


def test_content_of_a_gs1_text_is_doubtful_where_its_own_characters_are() -> None:
    text = "(01)09506000134352(17)270831(10)AB12"
    fields = {f.name: f for f in EXTRACTOR.extract([doubted(text, {34: ("7", 0.3)})])}
    assert fields["lot"].flags == ("from_gs1", "doubtful")
    assert fields["expiry_date"].certain
    assert not fields["barcode_digits"].certain, "it holds the lot, too"
    fields = {f.name: f for f in EXTRACTOR.extract([doubted(text, {8: ("7", 0.3)})])}
    assert all(f.certain for f in fields.values()), "the number's check digit"


def test_number_of_a_product_is_doubtful_and_its_letters_are_not() -> None:
    catalogue = Catalogue((Product("4711", "Oat Biscuits 500 g"),))
    extractor = FieldExtractor(FieldsConfig(), None, lambda: NOW, catalogue=catalogue)
    for at, rival, certain in ((0, "0", True), (13, "6", False), (13, "S", True)):
        fields = extractor.extract([doubted("Oat Biscuits 500 g", {at: (rival, 0.3)})])
        products = [field for field in fields if field.name.startswith("product")]
        assert len(products) == 2 and all(field.certain is certain for field in products), (at, rival)
