from __future__ import annotations

import pytest

from edge_agent.stages.quantities import METRIC, bare_count, best_quantity, find_quantities, only_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,25 kg", "1.25 kg"),
        ("500g", "500 g"),
        ("NET WT 500 g", "500 g"),
        ("4 x 125 g", "4 x 125 g"),
        ("6×0,33 L", "6 x 0.33 l"),
        ("12 fl oz", "12 fl oz"),
        ("12 fI oz", "12 fl oz"),
        ("16 oz (454 g)", "454 g"),
        ("0.75 L 13.5% vol", "0.75 l"),
        ("1½ l", "1.5 l"),
        ("2.5千克", "2.5 kg"),
        ("250毫升", "250 ml"),
        ("100 tablets", "100 pcs"),
        ("24 Stück", "24 pcs"),
        ("1 000 g", "1000 g"),
        ("1.250,50 g", "1250.5 g"),
        ("169 PCS", "169 pcs"),
        ("500ge", "500 g"),
        ("1LE", "1 l"),
        ("12 FL OZ (355 mL)", "355 ml"),
        ("12 FL. OZ.", "12 fl oz"),
        ("NET WT 2 LB. 3 OZ.", "35 oz"),
        ("2 lb 3 oz (992 g)", "992 g"),
        ("330 mle", "330 ml"),
        ("180 ge", "180 g"),
        ("750  ml", "750 ml"),
        ("Bag of500g", "500 g"),
        ("0.75 L 13.5% v0l", "0.75 l"),
    ],
)
def test_quantities_are_spelled_one_way(text: str, value: str) -> None:
    assert best_quantity(find_quantities(text, keyed=True)).value == value


def test_thousands_or_decimals_is_ambiguous() -> None:
    (found,) = find_quantities("1.000 g", keyed=True)
    assert (found.value, found.alternative, found.flags) == ("1000 g", "1 g", ("ambiguous",))
    (found,) = find_quantities("0,500 kg", keyed=True)
    assert (found.value, found.flags) == ("0.5 kg", ())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I.5L", "1.5 l"),
        ("A73ml", "473 ml"),
        ("100toblets", "100 pcs"),
        ("0.75 Ll3,5% vol", "0.75 l"),
        ("0.75 L13.5% val", "0.75 l"),
        ("Vol.0.75L", "0.75 l"),
        ("75o g", "750 g"),
        ("o,5 l", "0.5 l"),
        ("6 x330 m1", "6 x 330 ml"),
        ("Gx 250 nl", "6 x 250 ml"),
        ("2,5 kq", "2.5 kg"),
        (": 250 9", "250 g"),
        ("0,75 I", "0.75 l"),
        ("33 el", "33 cl"),
        ("You qet250grams", "250 g"),
        ("Makc2 lltres", "2 l"),
        ("size250m1", "250 ml"),
        ("20 Beute1", "20 pcs"),
        ("100 tab1ets", "100 pcs"),
    ],
)
def test_misread_number_or_unit_is_mended_and_flagged(text: str, value: str) -> None:
    (found,) = find_quantities(text, keyed=True)
    assert (found.value, found.flags) == (value, ("repaired",))


@pytest.mark.parametrize(
    "text",
    [
        "LOT 4711",
        "EXP 03/2026",
        "S/N 12-3g5",
        "5W-30",
        "3.5.2 g",
        "500 volts",
        "g",
        "①g",
        "1. 25 kg",
        "3 Mode1",
        "5 Club1",
    ],
)
def test_what_is_no_quantity_gives_none(text: str) -> None:
    assert find_quantities(text, keyed=False) == ()


def test_text_that_says_nothing_else_is_a_quantity_without_a_key() -> None:
    found = only_quantity("500 g e")
    assert found is not None
    assert found.value == "500 g"
    assert only_quantity("Ibuprofen 200 mg Film-coated Tablets") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("70 cl 40% vol", "70 cl"), ("13,5 % VOL 0,75 L e", "0.75 l"), ("℮500g", "500 g"), ("500 g C", "500 g")],
)
def test_strength_and_the_estimated_sign_may_stand_beside_it(text: str, value: str) -> None:
    found = only_quantity(text)
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize("text", ["1 25 kg", "1. 25 kg", "500 g 7", "500 g B", "24 mAh 500 g"])
def test_what_else_stands_beside_it_may_be_a_piece_of_it(text: str) -> None:
    assert only_quantity(text) is None


@pytest.mark.parametrize(("text", "value"), [("(29 8 g)", "8 g"), ("0,7 5 l", "5 l"), ("1 80 ge", "80 g")])
def test_digits_before_an_amount_may_be_a_piece_of_it(text: str, value: str) -> None:
    (found,) = find_quantities(text, keyed=True)
    assert (found.value, found.flags) == (value, ("incomplete",))


@pytest.mark.parametrize("text", ["0 g", "00 g", "0,0 l", "001l", "12 le", "5 el perro", "Vani1le", "Tanda3398I"])
def test_what_nobody_sells_gives_none_even_behind_a_phrase(text: str) -> None:
    assert find_quantities(text, keyed=True) == ()


@pytest.mark.parametrize("text", ["250 9", "90 9", "0,5 1", "Zimmer 250 9", "Serie 0,5 I"])
def test_numbers_alone_are_no_amount_without_a_phrase(text: str) -> None:
    assert only_quantity(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12 fl oz (355 nL)", "355 ml"),
        ("NET WT 16 oz(4S4g)", "454 g"),
        ("2 lb (9O7 g)", "907 g"),
        ("1 oz 28 q", "28 g"),
    ],
)
def test_misread_metric_amount_that_agrees_with_the_one_before_it_is_mended(text: str, value: str) -> None:
    found = best_quantity(find_quantities(text, keyed=True))
    assert (found.value, found.flags) == (value, ("repaired",))


@pytest.mark.parametrize("text", ["16 oz (4S g)", "12 fl oz (355 q)", "16 oz", "12 fl oz S55 nL", "2 x 16 oz (4S4g)"])
def test_misread_metric_amount_that_does_not_agree_counts_for_nothing(text: str) -> None:
    found = find_quantities(text, keyed=True)
    assert [q.unit in METRIC for q in found] == [False]


def test_pints_and_ounces_together_are_no_amount_that_is_known() -> None:
    (found,) = find_quantities("1 PT 0.9 FL OZ", keyed=False)
    assert (found.value, found.flags) == ("1 pt", ("incomplete",))


def test_number_before_a_comma_that_is_too_long_is_no_piece_of_the_amount() -> None:
    assert [q.value for q in find_quantities("LOT 4711, 500 g", keyed=False)] == ["500 g"]


def test_bare_count_is_pieces_and_says_that_it_assumes() -> None:
    found = bare_count(": 24")
    assert found is not None
    assert (found.value, found.flags) == ("24 pcs", ("unit_assumed",))
    assert bare_count("24 g") is None
    grouped = bare_count(" 1,000")
    assert grouped is not None and grouped.value == "1000 pcs"


def test_amount_of_letters_alone_counts_before_a_unit_and_says_so() -> None:
    found = bare_count(" SL")
    assert found is not None
    assert (found.value, found.flags) == ("5 l", ("repaired",))
    assert bare_count(" OL") is None
