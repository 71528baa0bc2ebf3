from __future__ import annotations

import pytest

from edge_agent.stages.codes import (
    check_digit_holds,
    find_code,
    find_gtin,
    find_marked_lot,
    find_trailing_code,
    upc_a_of,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" L2345B", "L2345B"),
        (" A0B1O8", "A0B1O8"),
        (" # XK90213", "XK90213"),
        (": BC-2291/4", "BC-2291/4"),
        (" No. 20240117", "20240117"),
        (" 2O25W47-03", "2O25W47-03"),
        (" 1234 5678 9012", "123456789012"),
        (" L 2214 B", "L2214B"),
        (" 4711 500 g e", "4711"),
        (" 4711 14:32", "4711"),
        (" 08/2026 A123", "A123"),
        (" TX500-009912.", "TX500-009912"),
    ],
)
def test_code_is_taken_as_printed(text: str, value: str) -> None:
    found = find_code(text)
    assert found is not None
    assert (found.value, found.flags) == (value, ())


@pytest.mark.parametrize(
    ("text", "value"),
    [(" A12 B", "A12"), (" A12,B13", "A12"), (" A12 / B13", "A12"), (" 26-120 A", "26-120"), (" AB 12 CD", "AB12")],
)
def test_what_stands_alone_behind_a_code_may_be_a_piece_of_it(text: str, value: str) -> None:
    found = find_code(text)
    assert found is not None
    assert (found.value, found.flags) == (value, ("incomplete",))


@pytest.mark.parametrize(
    "text", [" 5A MADE IN ITALY", " A12 31.08.2027", " A12 12AUG27", " A12 500 g", " A12 14:33", " A12 see lid 7"]
)
def test_words_dates_and_amounts_behind_a_code_are_no_piece_of_it(text: str) -> None:
    found = find_code(text)
    assert found is not None
    assert found.flags == ()


def test_code_of_letters_alone_says_so() -> None:
    found = find_code(". FNVCKTDSLJ")
    assert found is not None
    assert found.flags == ("no_digits",)
    assert find_code(" see bottom of pack") is None
    assert find_code("") is None


def test_marked_lot_keeps_its_marker() -> None:
    found = find_marked_lot("12/08/26 L4711")
    assert found is not None
    assert found.value == "L4711"
    assert find_marked_lot("1.5 L 12") is None
    assert find_marked_lot("XL4711") is None


@pytest.mark.parametrize("text", ["4006381333931", "4 006381 333931", "4006381-333931", "GTIN: 4006381333931"])
def test_gtin_is_read_whatever_its_grouping(text: str) -> None:
    found = find_gtin(text, keyed=True)
    assert found is not None
    assert (found.value, found.flags) == ("4006381333931", ())


@pytest.mark.parametrize("text", ["8709 2221 6898", "870922216898"])
def test_failed_check_digit_is_told_and_grouping_has_no_meaning(text: str) -> None:
    found = find_gtin(text, keyed=False)
    assert found is not None
    assert (found.value, found.flags) == ("870922216898", ("check_failed",))


def test_letters_in_a_gtin_are_mended_only_where_the_check_digit_holds() -> None:
    found = find_gtin("B410076 472540", keyed=False)
    assert found is not None
    assert (found.value, found.flags) == ("8410076472540", ("repaired",))
    assert find_gtin("B410076 472541", keyed=False) is None


@pytest.mark.parametrize("text", ["2109B3300417", "20270820", "LOT 12345678", "00 49 40 5550123", "123456789"])
def test_other_numbers_are_no_gtin_without_a_key(text: str) -> None:
    assert find_gtin(text, keyed=False) is None


@pytest.mark.parametrize(
    ("printed", "whole"),
    [
        ("04252614", "042100005264"),
        ("01234505", "012000003455"),
        ("01234531", "012300000451"),
        ("01234543", "012340000053"),
        ("01234565", "012345000065"),
        ("04252615", None),
        ("96385074", None),
        ("0425261", None),
    ],
)
def test_eight_digits_of_upc_e_stand_for_twelve(printed: str, whole: str | None) -> None:
    assert upc_a_of(printed) == whole
    if whole is not None:
        found = find_gtin(f"UPC {printed}", keyed=True)
        assert found is not None and (found.value, found.flags) == (printed, ())


def test_check_digit_catches_every_single_wrong_digit() -> None:
    good = "09506000134352"
    assert check_digit_holds(good)
    for at in range(len(good)):
        for digit in set("0123456789") - {good[at]}:
            assert not check_digit_holds(good[:at] + digit + good[at + 1 :])


@pytest.mark.parametrize(("text", "value"), [("Unit ID 4471-22", "4471-22"), ("Trace no. TR-5521", "TR-5521")])
def test_trailing_code_ends_a_text_of_words(text: str, value: str) -> None:
    found = find_trailing_code(text)
    assert found is not None
    assert found.value == value == text[found.start : found.end]


@pytest.mark.parametrize(
    "text",
    [
        "4471-22",
        "GreaseEP2 Industria18",
        "Open 14:32",
        "Since 12.05.1950",
        "Type B1",
        "",
        "Alcohol 99.95%",
        "Store at 2225 °C",
    ],
)
def test_other_ends_are_no_trailing_code(text: str) -> None:
    assert find_trailing_code(text) is None
