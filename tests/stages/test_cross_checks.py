"""What codes mean, and what they say about the print."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from edge_agent.records import Code, Field, Quad
from edge_agent.stages.code_fields import fields_of_codes
from edge_agent.stages.cross_checks import with_codes, with_contradictions
from edge_agent.stages.label_date import DateRules

RULES = DateRules("DMY", date(2026, 11, 30))
QUAD = Quad(np.array([[0, 0], [9, 0], [9, 9], [0, 9]], np.float32))
GS1_FLAG = ("from_gs1",)
GS1 = "0109506000134352172707001126021310AB12\x1d21S-77\x1d3103001250"


def code(text: str, symbology: str = "DataMatrix", identifier: str = "]d2") -> Code:
    return Code(symbology, text, QUAD, None, identifier)


def printed(name: str, value: str, *flags: str, alternatives: tuple[str, ...] = ()) -> Field:
    return Field(name, value, value, 0.9, (0,), flags, alternatives=alternatives)


def told(fields: list[Field]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(field.name, field.value, field.flags) for field in fields]


def test_gs1_elements_become_fields() -> None:
    found = fields_of_codes([code(GS1)], RULES)
    assert told(found) == [
        ("barcode_digits", "01=09506000134352;17=270700;11=260213;10=AB12;21=S-77;3103=001250", ()),
        ("expiry_date", "2027-07-31", ("month_precision", "from_gs1")),
        ("manufacture_date", "2026-02-13", ("from_gs1",)),
        ("lot", "AB12", ("from_gs1",)),
        ("serial_number", "S-77", ("from_gs1",)),
        ("weight_volume", "1.25 kg", ("from_gs1",)),
    ]
    assert all(field.certain and field.source == "barcode" and field.codes == (0,) for field in found)


@pytest.mark.parametrize(
    ("one", "wanted"),
    [
        (code("4006381333931", "EAN13", "]E0"), [("barcode_digits", "4006381333931", ())]),
        (code("0036000291452", "EAN13", "]E0"), [("barcode_digits", "036000291452", ())]),
        # a bare EAN is no purchase order (400), and what is no GS1 by its symbology is none by its digits
        (code("4006381333931", "Code128", "]C0"), []),
        (code("010950600013435210A", "Code128", "]C0"), []),
        (code("0109506000134353", "Code128", "]C1"), [("barcode_digits", "01=09506000134353", ("check_failed",))]),
        (code("17270231", "Code128", "]C1"), [("barcode_digits", "17270231", ("check_failed",))]),
        (code("0109506000134352", "DataMatrix", "]d5"), [("barcode_digits", "01=09506000134352", ())]),
        (code("37248\x1d1512345", "QRCode", "]Q4"), [("barcode_digits", "372481512345", ("check_failed",))]),
        (
            code("10abc\x1d3922199", "Aztec", "]z1"),
            [("barcode_digits", "10=abc;3922=199", ()), ("lot", "abc", GS1_FLAG)],
        ),
        # elements as they are printed, in a code that is not GS1's
        (
            code("(01)09506000134352(3103)000500(10)a1", "QRCode", "]Q1"),
            [
                ("barcode_digits", "01=09506000134352;3103=000500;10=a1", ()),
                ("weight_volume", "0.5 kg", GS1_FLAG),
                ("lot", "a1", GS1_FLAG),
            ],
        ),
        (code("(01)09506000134353(10)a1", "QRCode", "]Q1"), []),
        (code("see (10)a1", "QRCode", "]Q1"), []),
        (code("https://www.example.com/a", "QRCode", "]Q1"), [("contact", "example.com/a", ())]),
        (
            code("https://id.example.com/01/09506000134352/10/AB?17=270831", "QRCode", "]Q1"),
            [
                ("barcode_digits", "01=09506000134352;10=AB;17=270831", ()),
                ("lot", "AB", ("from_gs1",)),
                ("expiry_date", "2027-08-31", ("from_gs1",)),
            ],
        ),
    ],
)
def test_a_code_says_what_its_form_proves(one: Code, wanted: list[tuple[str, str, tuple[str, ...]]]) -> None:
    assert told(fields_of_codes([one], RULES)) == wanted


def test_the_century_of_a_code_follows_the_clock() -> None:
    later = DateRules("DMY", date(2061, 1, 1))
    assert [f.value for f in fields_of_codes([code("17620131")], later)][1] == "2062-01-31"
    assert fields_of_codes([code("17620131")], DateRules("DMY", None))[1].flags == ("clock_untrusted", "from_gs1")


def test_print_that_agrees_stays_plain_and_both_are_told() -> None:
    coded = fields_of_codes([code("1010AB"), code("17270831")], RULES)
    both = with_codes([printed("lot", "10AB"), printed("expiry_date", "2027-08-31", "month_precision")], coded)
    assert [(f.name, f.source, f.certain) for f in both if f.name in ("lot", "expiry_date")] == [
        ("lot", "barcode", True),
        ("expiry_date", "barcode", True),
        ("lot", "rule", True),
        ("expiry_date", "rule", True),
    ]


@pytest.mark.parametrize(
    ("text", "other", "flags"),
    [
        ("17270812", "2027-12-08", ()),
        ("17271208", "2027-12-08", ("order_conflict",)),
        ("17120827", "2012-08-27", ("order_conflict",)),
        ("17271130", "2027-11-30", ()),  # of two dates behind one key the other one
    ],
)
def test_a_code_settles_an_ambiguous_date_but_not_against_the_order(
    text: str, other: str, flags: tuple[str, ...]
) -> None:
    coded = fields_of_codes([code(text)], RULES)
    *_, settled = with_codes([printed("expiry_date", "2027-08-12", "ambiguous", alternatives=(other,))], coded)
    assert (settled.value, settled.flags, settled.alternatives) == (coded[-1].value, flags, ())
    assert settled.certain == (not flags)


@pytest.mark.parametrize(
    ("name", "text", "wrong"), [("lot", "10AB12", "CD34"), ("expiry_date", "17270831", "2027-09-30")]
)
def test_print_and_code_that_differ_both_say_so(name: str, text: str, wrong: str) -> None:
    both = [f for f in with_codes([printed(name, wrong)], fields_of_codes([code(text)], RULES)) if f.name == name]
    assert [("contradicts_code" in f.flags, f.certain) for f in both] == [(True, False), (True, False)]


def test_a_doubtful_reading_does_not_speak_against_a_code() -> None:
    coded = fields_of_codes([code("17270831")], RULES)
    *sure, doubted = with_codes([printed("expiry_date", "2027-08-01", "repaired")], coded)
    assert all(field.certain for field in sure)
    assert doubted.flags == ("repaired", "contradicts_code")


@pytest.mark.parametrize(
    ("field", "one"),
    [
        (printed("barcode_digits", "4006381333937", "check_failed"), code("4006381333931", "EAN13", "]E0")),
        (printed("barcode_digits", "400638133393"), code("4006381333931", "EAN13", "]E0")),
        (printed("lot", "A81O"), code("10AB10")),
    ],
)
def test_print_that_is_a_misread_code_says_so_and_the_code_stays_plain(field: Field, one: Code) -> None:
    *sure, misread = with_codes([field], fields_of_codes([one], RULES))
    assert misread.flags[-1] == "misread"
    assert all(f.certain for f in sure)


def test_another_bar_code_on_the_label_is_no_contradiction() -> None:
    coded = fields_of_codes([code("4006381333931", "EAN13", "]E0")], RULES)
    assert with_codes([printed("barcode_digits", "8711253001202")], coded)[-1].certain


def test_a_gs1_text_in_brackets_counts_against_the_other_lines() -> None:
    gs1 = printed("expiry_date", "2027-08-12", "from_gs1")
    fields = with_codes([gs1, printed("expiry_date", "2027-08-12", "ambiguous", alternatives=("2027-12-08",))], [])
    assert [f.value for f in fields] == ["2027-08-12", "2027-08-12"]
    assert all(f.certain for f in fields)


def test_an_expiry_before_the_manufacture_is_told_on_every_field_that_says_so() -> None:
    fields = with_contradictions(
        [
            printed("expiry_date", "2026-01-01"),
            printed("expiry_date", "2026-01-01"),
            printed("manufacture_date", "2026-02"),
        ]
    )
    assert all(f.flags == ("contradicts",) for f in fields)


def test_print_without_its_day_agrees_with_a_code_of_any_day_of_that_month() -> None:
    coded = fields_of_codes([code("17270815")], RULES)
    for value, flags in (("2027-08-31", ()), ("2027-09-30", ("contradicts_code",))):
        (_, *kept) = with_codes(
            [printed("expiry_date", value, "month_precision")], [f for f in coded if f.name == "expiry_date"]
        )
        assert kept[0].flags == ("month_precision", *flags)


def test_print_in_brackets_is_held_against_the_code_like_any_other() -> None:
    text = "0109506000134352172708311" + "0AB12"
    for lot, flag in (("A812", "misread"), ("CD34", "contradicts_code")):
        hri = [
            printed("barcode_digits", f"01=09506000134352;17=270831;10={lot}"),
            printed("expiry_date", "2027-08-31", "from_gs1"),
            printed("lot", lot, "from_gs1"),
        ]
        fields = with_codes(hri, fields_of_codes([code(text)], RULES))
        by_print = {f.name: f for f in fields if f.source == "rule"}
        assert by_print["lot"].flags == ("from_gs1", flag)
        assert by_print["expiry_date"].certain
        assert by_print["barcode_digits"].flags == (("misread",) if flag == "misread" else ()), "the lot says it"
        by_code = {f.name: f for f in fields if f.source == "barcode"}
        assert by_code["lot"].certain == (flag == "misread")


def test_two_prints_of_a_lot_that_differ_both_say_so() -> None:
    fields = with_codes([printed("lot", "A812", "from_gs1"), printed("lot", "AB12")], [])
    assert [f.flags for f in fields] == [("from_gs1", "contradicts_code"), ("contradicts_code",)]


def test_short_print_below_a_upc_e_code_says_what_it_says() -> None:
    coded = fields_of_codes([code("0042100005264", "UPCE", "]E0")], RULES)
    assert with_codes([printed("barcode_digits", "04252614")], coded)[-1].certain


def test_number_of_the_case_is_no_misreading_of_the_product_s() -> None:
    coded = fields_of_codes([code("14006381333938", "ITF14", "]I1")], RULES)
    assert with_codes([printed("barcode_digits", "4006381333931")], coded)[-1].certain
    misread = with_codes([printed("barcode_digits", "4006381333938", "check_failed")], coded)[-1]
    assert misread.flags == ("check_failed", "misread")
