from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest

from edge_agent.records import Code, Correction, Field, Quad, Reading, TextBox, TextLine
from edge_agent.settings.cameras import CameraConfig
from edge_agent.settings.expected import Rule
from edge_agent.verify.expectation import Expectation, of_camera
from edge_agent.verify.judge import Judgement, fit_of, judge_reading

TODAY = date(2026, 11, 30)
QUAD = Quad(np.array([[0, 0], [90, 0], [90, 20], [0, 20]], np.float32))
GS1 = "010950600013435217270831" + "10L2345B"


def line(
    text: str, *, region: str | None = None, doubtful: tuple[int, ...] = (), flags: tuple[str, ...] = ()
) -> TextLine:
    return TextLine(text, 0.99, TextBox(QUAD, 0.9), flags, doubtful=doubtful, region=region)


def field(name: str, value: str, **more: Any) -> Field:
    return Field(**{"name": name, "value": value, "text": value, "confidence": 0.99, "lines": (0,), **more})


def code(text: str, identifier: str = "]d2", region: str | None = None) -> Code:
    return Code("DataMatrix", text, QUAD, region, identifier)


def judged(
    *rules: dict[str, Any],
    fields: tuple[Field, ...] = (),
    lines: tuple[TextLine, ...] = (line("LOT L2345B"),),
    codes: tuple[Code, ...] = (),
    clock_trusted: bool = True,
) -> Judgement:
    reading = Reading("line1", 1, 0.0, 640, 480, lines=lines, fields=fields, codes=codes)
    expectation = Expectation("job", tuple(Rule.model_validate_json(json.dumps(rule)) for rule in rules))
    judgement = judge_reading(reading, expectation, TODAY, clock_trusted)
    assert judgement is not None
    return judgement


def test_reason_names_rule_expected_and_seen() -> None:
    judgement = judged({"field": "lot", "pattern": "L9999A"}, fields=(field("lot", "L23458"),))
    (reason,) = judgement.reasons
    assert judgement.verdict == "FAIL"
    assert (reason.rule, reason.expected, reason.seen, reason.why) == (
        "lot: pattern L9999A",
        "L9999A",
        "L23458",
        "differs",
    )


def test_nothing_expected_gives_no_verdict() -> None:
    assert judge_reading(Reading("a", 1, 0.0, 9, 9), Expectation("job"), TODAY) is None


@pytest.mark.parametrize(
    ("value", "verdict"),
    [("2027-02-28", "PASS"), ("2027-02-27", "FAIL"), ("2027-02-28T", "NO_READ"), ("", "NO_READ")],
)
def test_expiry_is_compared_with_today_to_the_day(value: str, verdict: str) -> None:
    assert judged({"date": "expiry >= today + 90d"}, fields=(field("expiry_date", value),)).verdict == verdict


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        ("mfg <= today", "NO_READ"),  # 2026-11 may be the 1st to the 30th: all of them
        ("mfg <= today - 1d", "NO_READ"),
        ("mfg <= 2026-12-01", "PASS"),
        ("mfg < 2026-11-01", "FAIL"),
        ("mfg = 2026-11-15", "PASS"),
        ("mfg + 1y > today", "PASS"),
        ("expiry > mfg", "PASS"),
        ("mfg > expiry", "FAIL"),
        ("expiry >= mfg + 24m", "NO_READ"),
    ],
)
def test_month_of_a_date_is_all_of_its_days(rule: str, verdict: str) -> None:
    month = field("manufacture_date", "2026-11", flags=("month_precision",))
    expiry = field("expiry_date", "2028-11-15")
    expected = "PASS" if rule == "mfg <= today" else verdict
    assert judged({"date": rule}, fields=(month, expiry)).verdict == expected


def test_ambiguous_date_never_passes_and_fails_only_where_both_ways_do() -> None:
    both_good = field("expiry_date", "2027-04-03", flags=("ambiguous",), alternatives=("2027-03-04",))
    judgement = judged({"date": "expiry >= today"}, fields=(both_good,))
    assert (judgement.verdict, judgement.reasons[0].why) == ("NO_READ", "ambiguous")
    assert judgement.reasons[0].seen == "2027-04-03 or 2027-03-04"
    both_bad = field("expiry_date", "2025-04-03", flags=("ambiguous",), alternatives=("2025-03-04",))
    assert judged({"date": "expiry >= today"}, fields=(both_bad,)).verdict == "FAIL"
    one_bad = field("expiry_date", "2027-04-03", flags=("ambiguous",), alternatives=("2025-03-04",))
    assert judged({"date": "expiry >= today"}, fields=(one_bad,)).verdict == "NO_READ"


@pytest.mark.parametrize("flag", ["repaired", "incomplete", "clock_untrusted", "order_conflict", "cut", "new_flag"])
def test_uncertain_field_passes_no_kind_of_rule_and_breaks_none(flag: str) -> None:
    fields = (
        field("expiry_date", "2027-04-03", flags=(flag,)),
        field("lot", "L2345B", flags=(flag,)),
    )
    for rule in (
        {"date": "expiry >= today"},
        {"date": "expiry < today"},
        {"field": "lot"},
        {"field": "lot", "text": "L2345B"},
        {"field": "lot", "text": "OTHER"},
        {"field": "lot", "pattern": "L9999A"},
        {"field": "lot", "one_of": ["L2345B"]},
        {"field": "lot", "one_of": ["OTHER"]},
        {"field": "lot", "catalogue": "L2345B"},
        {"field": "lot", "equals": "expiry"},
    ):
        judgement = judged(rule, fields=fields)
        assert (judgement.verdict, judgement.reasons[0].why) == ("NO_READ", "uncertain"), rule
        assert flag in judgement.reasons[0].seen


def test_field_that_contradicts_its_pattern_or_the_code_beyond_doubt_is_wrong_not_unread() -> None:
    lot = field("lot", "L23458", flags=("pattern_mismatch",))
    assert judged({"field": "lot", "pattern": "L9999A"}, fields=(lot,)).verdict == "FAIL"
    doubtful = field("lot", "L23458", flags=("pattern_mismatch", "cut"))
    assert judged({"field": "lot", "pattern": "L9999A"}, fields=(doubtful,)).verdict == "NO_READ"
    printed = field("lot", "L2345C", flags=("contradicts_code",))
    by_code = field("lot", "L2345B", flags=("contradicts_code",), source="barcode", lines=(), codes=(0,))
    rule = {"field": "print.lot", "equals": "code.lot"}
    assert judged(rule, fields=(printed, by_code), codes=(code(GS1),)).verdict == "FAIL"


def test_products_number_is_found_in_a_gs1_code() -> None:
    whole = field("barcode_digits", "01=09521234567011;17=270831", source="barcode", lines=(), codes=(0,))
    for rule, verdict in (
        ({"field": "code.gtin", "text": "09521234567011"}, "PASS"),
        ({"field": "code.gtin", "one_of": ["09521234567028"]}, "FAIL"),
    ):
        assert judged(rule, fields=(whole,), codes=(code(GS1),)).verdict == verdict


def test_corrected_field_is_not_passed() -> None:
    corrected = field("lot", "L2345B", corrections=(Correction(5, "8", "B"),))
    judgement = judged({"field": "lot", "pattern": "L9999A"}, fields=(corrected,))
    assert (judgement.verdict, judgement.reasons[0].seen) == ("NO_READ", "L2345B (8 taken for B)")


def test_untrusted_clock_passes_nothing_that_counts_from_today() -> None:
    expiry = (field("expiry_date", "2027-04-03"), field("manufacture_date", "2026-04-03"))
    judgement = judged({"date": "expiry >= today"}, fields=expiry, clock_trusted=False)
    assert (judgement.verdict, judgement.reasons[0].why) == ("NO_READ", "clock_untrusted")
    assert judged({"date": "expiry < today"}, fields=expiry, clock_trusted=False).verdict == "NO_READ"
    assert judged({"date": "expiry > mfg"}, fields=expiry, clock_trusted=False).verdict == "PASS"


def test_month_later_ends_on_the_months_last_day() -> None:
    reading = Reading("a", 1, 0.0, 9, 9, fields=(field("expiry_date", "2027-02-28", lines=()),))
    rule = Expectation("job", (Rule(date="expiry = today + 1m"),))
    judgement = judge_reading(reading, rule, date(2027, 1, 31))
    assert judgement is not None and judgement.verdict == "PASS"


def test_absent_field_is_not_read_rather_than_wrong() -> None:
    for rule in ({"field": "lot"}, {"date": "mfg <= today"}, {"field": "lot", "one_of": ["A"]}, {"gs1": ["01"]}):
        judgement = judged(rule)
        assert (judgement.verdict, judgement.reasons[0].why) == ("NO_READ", "absent"), rule


def test_lot_must_stand_in_the_list() -> None:
    rule = {"field": "lot", "one_of": ["L1111A", "L2345B"]}
    assert judged(rule, fields=(field("lot", "L2345B"),)).verdict == "PASS"
    assert judged(rule, fields=(field("lot", "L2345C"),)).verdict == "FAIL"


def test_text_may_stand_anywhere_and_lose_its_spaces() -> None:
    lines = (line("ACME"), line("STOREINACOOL DRY PLACE"))
    assert judged({"text": "store in a cool"}, lines=lines).verdict != "PASS"
    assert judged({"text": "STORE IN A COOL"}, lines=lines).verdict == "PASS"


def test_text_that_stands_there_otherwise_differs_and_one_that_is_not_there_was_not_read() -> None:
    rule = {"text": "KEEP REFRIGERATED"}
    assert judged(rule, lines=(line("KEEP REFRIGERATEO"),)).reasons[0].why == "differs"
    assert judged(rule, lines=(line("KEEP REFRIGERATEO", doubtful=(16,)),)).reasons[0].why == "uncertain"
    assert judged(rule, lines=(line("LOT L2345B"),)).reasons[0].why == "absent"


def test_catalogue_entry_may_be_misread_but_no_number_of_it() -> None:
    rule = {"catalogue": "Grinder TD-700 Blue"}
    assert judged(rule, lines=(line("GRINDER TD-700 8LUE"),)).verdict != "PASS"  # a digit more than the entry
    assert judged(rule, lines=(line("Grindor TD-700 Blue"),)).verdict == "PASS"
    assert judged(rule, lines=(line("Grinder"), line("TD-700 Blue"))).verdict == "PASS"
    assert judged(rule, lines=(line("Grinder TD-500 Blue"),)).verdict == "FAIL"
    assert judged({"catalogue": "Oat Milk 500 ml"}, lines=(line("Oat Milk 500 ml"),)).verdict == "PASS"
    assert judged({"catalogue": "Oat Milk 500 ml"}, lines=(line("Oat Milk 500 g"),)).verdict == "FAIL"


def product(value: str, *others: str, name: str = "product_name", text: str = "", **more: Any) -> Field:
    flags = (*(("ambiguous",) if others else ()), "from_catalogue")
    return field(name, value, **{"text": text or value, "alternatives": others, "flags": flags, **more})


def test_catalogue_of_the_settings_knows_twins_and_ids() -> None:
    line_b = (line("Balm Forte B 30 ml"),)
    b = (product("Balm Forte B 30 ml"), product("P-2", name="product_id", text="Balm Forte B 30 ml"))
    rule_a, rule_b = {"catalogue": "Balm Forte A 30 ml"}, {"catalogue": "Balm Forte B 30 ml"}
    assert judged(rule_a, lines=line_b).verdict == "PASS", "likeness alone takes one twin for the other"
    reason = judged(rule_a, lines=line_b, fields=b).reasons[0]
    assert (reason.verdict, reason.why, reason.seen) == ("FAIL", "differs", "Balm Forte B 30 ml")
    assert judged(rule_b, lines=line_b, fields=b).verdict == "PASS"
    for rule in ({"catalogue": "P-2"}, {"field": "product_id", "catalogue": "P-2"}):
        assert judged(rule, lines=line_b, fields=b).verdict == "PASS"
    for rule in (
        {"catalogue": "P-1"},
        {"field": "product_id", "catalogue": "P-1"},
        {"field": "product", "catalogue": "Balm Forte A 30 ml"},
    ):
        assert judged(rule, lines=line_b, fields=b).verdict == "FAIL"
    assert judged({"catalogue": "P-2"}, lines=line_b).reasons[0].why == "absent", "no catalogue, no ids"


def test_product_that_may_be_its_twin_passes_for_neither() -> None:
    lines = (line("Balm Forte 30 ml"), line("LOT A7"))
    either = (
        product("Balm Forte A 30 ml", "Balm Forte B 30 ml", text="Balm Forte 30 ml"),
        product("P-1", "P-2", name="product_id", text="Balm Forte 30 ml"),
    )
    for entry in ("Balm Forte A 30 ml", "Balm Forte B 30 ml", "P-1", "P-2"):
        reason = judged({"catalogue": entry}, lines=lines, fields=either).reasons[0]
        assert (reason.verdict, reason.why) == ("NO_READ", "ambiguous")
        assert " or " in reason.seen
    neither = judged({"catalogue": "Balm Forte C 30 ml"}, lines=lines, fields=either)
    assert neither.verdict == "FAIL", "whichever it is, it is not this one"


def test_entry_that_the_catalogue_does_not_have_still_passes_by_its_own_words() -> None:
    lines = (line("Balm Forte A 30 ml"), line("Rye Crisps"))
    twin = (product("Balm Forte B 30 ml", text="Balm Forte A 30 ml"),)
    assert judged({"catalogue": "Balm Forte A 30 ml"}, lines=lines, fields=twin).verdict == "PASS"
    assert judged({"catalogue": "Rye Crispz"}, lines=lines, fields=twin).verdict == "PASS"
    doubted = (product("Rye Crisps", flags=("doubtful", "from_catalogue")),)
    assert (
        judged({"catalogue": "Rye Crisps"}, lines=(line("Rye Crisps, cut", flags=("cut",)),), fields=doubted)
        .reasons[0]
        .why
        == "uncertain"
    )


@pytest.mark.parametrize(
    ("seen", "expected", "verdict"),
    [
        ("036000291452", "0036000291452", "PASS"),
        ("04006381333931", "4006381333931", "PASS"),
        ("4006381333931", "4 006381 333931", "PASS"),
        ("01=04006381333931;17=270831", "4006381333931", "PASS"),
        ("96385074", "00000096385074", "PASS"),
        ("02=04006381333931;37=24", "4006381333931", "FAIL"),
        ("14006381333938", "4006381333931", "FAIL"),
        ("00=340123450000000017", "340123450000000017", "FAIL"),
    ],
)
def test_product_s_number_is_the_same_however_many_digits_it_is_printed_with(
    seen: str, expected: str, verdict: str
) -> None:
    coded = field("barcode_digits", seen, source="barcode", lines=(), codes=(0,))
    for rule in ({"field": "gtin", "text": expected}, {"field": "code.gtin", "one_of": ["96385081", expected]}):
        assert judged(rule, fields=(coded,), codes=(code("x"),)).verdict == verdict
    printed = field("barcode_digits", expected.replace(" ", ""))
    equal = {"field": "print.gtin", "equals": "code.gtin"}
    assert judged(equal, fields=(coded, printed), codes=(code("x"),)).verdict == verdict


def test_amount_is_the_same_in_whatever_unit() -> None:
    printed, coded = field("weight_volume", "1250 g"), field("weight_volume", "1.25 kg", source="barcode", lines=())
    for rule in ({"field": "quantity", "text": "1,25 kg"}, {"field": "quantity", "one_of": ["1 kg", "1.25kg"]}):
        assert judged(rule, fields=(printed,)).verdict == "PASS"
    assert judged({"field": "quantity", "text": "125 g"}, fields=(printed,)).verdict == "FAIL"
    assert (
        judged({"field": "quantity", "text": "4 x 125 g"}, fields=(field("weight_volume", "500 g"),)).verdict == "FAIL"
    )
    both = (printed, replace(coded, codes=(0,)))
    equal = {"field": "print.quantity", "equals": "code.quantity"}
    assert judged(equal, fields=both, codes=(code("x"),)).verdict == "PASS"


def test_codes_of_several_products_pass_for_none_and_a_pallet_s_is_no_product_s() -> None:
    def coded(value: str) -> Field:
        return field("barcode_digits", value, source="barcode", lines=(), codes=(0,))

    rule, pallet = {"field": "gtin", "text": "4006381333931"}, coded("00=340123450000000017")
    both = (coded("4006381333931"), coded("01=04006381333931;10=A"), pallet)
    assert judged(rule, fields=both, codes=(code("x"),)).verdict == "PASS"
    several = judged(rule, fields=(*both, coded("96385074")), codes=(code("x"),)).reasons[0]
    assert (several.verdict, several.why) == ("NO_READ", "ambiguous")


def test_gs1_code_holds_its_identifiers_with_right_check_digits_and_dates() -> None:
    rule = {"gs1": ["01", "17", "10"]}
    assert judged(rule, codes=(code(GS1),)).verdict == "PASS"
    missing = judged({"gs1": ["01", "21"]}, codes=(code(GS1),))
    assert (missing.verdict, missing.reasons[0].seen.endswith("(21) is missing")) == ("FAIL", True)
    wrong = judged(rule, codes=(code(GS1.replace("134352", "134353")),))
    assert (wrong.verdict, "(01) is wrong" in wrong.reasons[0].seen) == ("FAIL", True)
    assert judged(rule, codes=(code("4006381333931", "]E0"),)).reasons[0].why == "absent"


def test_print_is_held_against_the_code() -> None:
    rule = {"field": "print.expiry", "equals": "code.expiry"}
    printed = field("expiry_date", "2027-08-31", flags=("month_precision",))

    def by_code(value: str) -> Field:
        return field("expiry_date", value, source="barcode", lines=(), codes=(0,))

    codes = (code(GS1),)
    assert judged(rule, fields=(printed, by_code("2027-08-31")), codes=codes).verdict == "PASS"
    assert judged(rule, fields=(printed, by_code("2027-09-30")), codes=codes).verdict == "FAIL"
    assert judged(rule, fields=(printed,)).reasons[0].why == "absent"
    assert judged(rule, fields=(by_code("2027-08-31"),), codes=codes).reasons[0].why == "absent"


def test_code_of_a_month_equals_a_print_of_a_day_in_it_only_where_one_of_them_has_no_day() -> None:
    rule = {"field": "print.mfg", "equals": "code.mfg"}
    by_code = field("manufacture_date", "2026-08-12", source="barcode", lines=(), codes=(0,))
    printed = field("manufacture_date", "2026-08", flags=("month_precision",))
    assert judged(rule, fields=(printed, by_code), codes=(code(GS1),)).verdict == "PASS"
    other_day = field("manufacture_date", "2026-08-13")
    assert judged(rule, fields=(other_day, by_code), codes=(code(GS1),)).verdict == "FAIL"


def test_number_that_only_begins_like_the_other_is_another() -> None:
    rule = {"field": "print.serial", "equals": "code.serial"}
    for printed, coded, verdict in (
        ("7K00921", "7K009214", "FAIL"),
        ("7K009214", "7K00921", "FAIL"),
        ("7K00921", "7K00921", "PASS"),
    ):
        by_code = field("serial_number", coded, source="barcode", lines=(), codes=(0,))
        fields = (field("serial_number", printed), by_code)
        assert judged(rule, fields=fields, codes=(code(GS1),)).verdict == verdict


@pytest.mark.parametrize(
    "rule", [{"field": "print.expiry", "equals": "code.expiry"}, {"date": "print.expiry = code.expiry"}]
)
def test_expiry_printed_without_its_day_equals_every_day_of_its_month(rule: dict[str, Any]) -> None:
    printed = field("expiry_date", "2027-08-31", flags=("month_precision",))
    for coded, verdict in (("2027-08-15", "PASS"), ("2027-08-31", "PASS"), ("2027-09-01", "FAIL")):
        by_code = field("expiry_date", coded, source="barcode", lines=(), codes=(0,))
        assert judged(rule, fields=(printed, by_code), codes=(code(GS1),)).verdict == verdict


@pytest.mark.parametrize(
    ("name", "rule", "right", "wrong"),
    [
        ("lot", {"field": "lot", "one_of": ["L2345B"]}, "L2345B", "L9999X"),
        ("serial_number", {"field": "serial", "pattern": "A9"}, "A1", "B22"),
        ("expiry_date", {"date": "expiry >= today"}, "2027-04-03", "2025-04-03"),
    ],
)
def test_label_that_says_two_things_passes_by_neither(name: str, rule: dict[str, Any], right: str, wrong: str) -> None:
    lines = (line("one"), line("two"))
    good, bad = field(name, right), field(name, wrong, confidence=0.5, lines=(1,))
    for fields in ((good, bad), (bad, good)):
        judgement = judged(rule, fields=fields, lines=lines)
        assert (judgement.verdict, judgement.reasons[0].why) == ("NO_READ", "ambiguous")
    assert judged(rule, fields=(good, field(name, right, lines=(1,))), lines=lines).verdict == "PASS"
    both_wrong = (bad, field(name, wrong + "9" if name != "expiry_date" else "2024-04-03", lines=(0,)))
    assert judged(rule, fields=both_wrong, lines=lines).verdict == "FAIL"
    doubted = field(name, wrong, lines=(1,), flags=("repaired",))
    assert judged(rule, fields=(good, doubted), lines=lines).verdict == "PASS"


def test_two_codes_with_different_products_pass_by_neither() -> None:
    other = code("010952123456701117270831" + "10L2345B")
    judgement = judged({"gs1": ["01", "17", "10"]}, codes=(code(GS1), other))
    assert (judgement.verdict, judgement.reasons[0].why) == ("NO_READ", "ambiguous")
    assert judged({"gs1": ["01", "17", "10"]}, codes=(code(GS1), code(GS1))).verdict == "PASS"


@pytest.mark.parametrize("text", ["NET 500 g", "NET 500ge", "500gBEST BEFORE", "500 g, chilled", "500 g (2 x 250)"])
def test_amount_stands_beside_what_is_glued_to_it(text: str) -> None:
    assert judged({"text": "500 g"}, lines=(line(text),)).verdict == "PASS"


def test_text_that_is_read_but_for_one_end_was_not_read() -> None:
    cut = judged({"text": "Keep refrigerated"}, lines=(line("Keep refrigerate"),))
    assert (cut.verdict, cut.reasons[0].why) == ("NO_READ", "uncertain")
    assert judged({"text": "Keep refrigerated"}, lines=(line("Keep dehydrated"),)).verdict == "FAIL"


def test_print_equals_what_a_code_holds_bare() -> None:
    rule = {"field": "print.serial", "equals": "code.text"}
    serial = field("serial_number", "24K0917731")
    assert judged(rule, fields=(serial,), codes=(code("24K0917731", "]Q1"),)).verdict == "PASS"
    assert judged(rule, fields=(serial,), codes=(code("24K0917732", "]Q1"),)).verdict == "FAIL"
    assert judged(rule, fields=(serial,)).reasons[0].why == "absent"
    two = judged(rule, fields=(serial,), codes=(code("24K0917731", "]Q1"), code("24K0917732", "]Q1")))
    assert (two.verdict, two.reasons[0].why) == ("NO_READ", "uncertain")
    assert judged({"field": "code.text", "pattern": "99A9999999"}, codes=(code("24K0917731", "]Q1"),)).verdict == "PASS"


@pytest.mark.parametrize("text", ["NET 1500 g", "NET 1.500 g", "NET 1 500 g", "NET 0,500 g", "500 gal"])
def test_amount_does_not_stand_in_another_amount(text: str) -> None:
    verdict = "PASS" if text == "500 gr5" else "NO_READ or FAIL"
    assert judged({"text": "500 g"}, lines=(line(text),)).verdict in verdict


def test_text_of_nothing_but_what_is_not_compared_stands_nowhere() -> None:
    assert judged({"text": "\u200b"}, lines=(line("KEEP DRY"),)).verdict == "NO_READ"
    for rule in ({"text": " "}, {"catalogue": "\u2003"}, {"field": "lot", "one_of": ["A", "\t"]}):
        with pytest.raises(ValueError, match="nothing but spaces"):
            Rule.model_validate_json(json.dumps(rule))


def test_text_whose_own_characters_are_in_doubt_is_not_passed() -> None:
    rule = {"text": "L2345B"}
    assert judged(rule, lines=(line("LOT L2345B", doubtful=(9,)),)).reasons[0].why == "uncertain"
    assert judged(rule, lines=(line("LOT L2345B", doubtful=(1,)),)).verdict == "PASS"
    assert judged(rule, lines=(line("LOT L2345B", flags=("too_small",)),)).reasons[0].why == "uncertain"
    assert judged(rule, lines=(line("L2345B", doubtful=(0,)), line("L2345B"))).verdict == "PASS"
    pattern = {"pattern": "L9999A"}
    assert judged(pattern, lines=(line("LOT L2345B", doubtful=(9,)),)).reasons[0].why == "uncertain"
    assert judged(pattern, lines=(line("LOT L2345B", doubtful=(1,)),)).verdict == "PASS"


def test_catalogue_entry_with_another_unit_or_number_is_another() -> None:
    rule = {"catalogue": "Oat Biscuits 1.5 kg"}
    assert judged(rule, lines=(line("OAT BISCUITS 1,5 KG"),)).verdict == "PASS"
    for other in ("Oat Biscuits 1.5 g", "Oat Biscuits 5.1 kg", "Oat Biscuits 15 kg"):
        assert judged(rule, lines=(line(other),)).verdict != "PASS", other
    assert judged(rule, lines=(line("OAT BISCUITS 1.5 KG", doubtful=(13,)),)).reasons[0].why == "uncertain"
    assert judged(rule, lines=(line("OAT BISCUITS 1.5 KG", doubtful=(0,)),)).verdict == "PASS"


def test_rule_of_a_region_looks_at_that_region_alone() -> None:
    lines = (line("LOT A1", region="side"), line("LOT B2", region="top"))
    fields = (field("lot", "A1", lines=(0,)), field("lot", "B2", lines=(1,)))
    reading = Reading("line1", 1, 0.0, 640, 480, lines=lines, fields=fields)

    def verdict(region: str, value: str) -> str:
        expectation = Expectation("job", (), {region: (Rule(field="lot", text=value),)})
        judgement = judge_reading(reading, expectation, TODAY)
        assert judgement is not None
        return judgement.verdict

    assert verdict("top", "B2") == "PASS"
    assert verdict("top", "A1") == "FAIL"
    assert verdict("back", "A1") == "NO_READ"


def test_one_broken_rule_fails_whatever_else_is_not_read() -> None:
    rules = ({"field": "lot", "text": "L2345B"}, {"field": "serial"}, {"field": "lot", "one_of": ["X"]})
    judgement = judged(*rules, fields=(field("lot", "L2345B"),))
    assert (judgement.verdict, [reason.verdict for reason in judgement.reasons]) == (
        "FAIL",
        ["PASS", "NO_READ", "FAIL"],
    )


def test_expectation_of_the_settings_has_an_id_that_changes_with_its_rules() -> None:
    def expected(*rules: dict[str, Any]) -> str | None:
        camera = CameraConfig(
            kind="folder", source="x", expected=tuple(Rule.model_validate_json(json.dumps(rule)) for rule in rules)
        )
        found = of_camera(camera)
        return None if found is None else found.id

    one, same, other = expected({"field": "lot"}), expected({"field": "lot"}), expected({"field": "serial"})
    assert one == same != other
    assert one is not None and one.startswith("config-")
    assert expected() is None


def test_patterns_of_printed_fields_reach_the_decoder_under_the_fields_own_names() -> None:
    rules = (Rule(field="serial", pattern="9999"), Rule(field="code.lot", pattern="A9"), Rule(pattern="99"))
    region = (Rule(field="print.lot", pattern="L9999A"),)
    expectation = Expectation("job", rules, {"top": region})
    assert {name: mask.text for name, mask in expectation.masks(None).items()} == {"serial_number": "9999"}
    assert {name: mask.text for name, mask in expectation.masks("top").items()} == {
        "serial_number": "9999",
        "lot": "L9999A",
    }


def test_fit_counts_the_rules_that_would_hold_were_all_certain() -> None:
    rules = (Rule(text="9066"), Rule(field="lot", pattern="L9999A"), Rule(date="expiry >= today"))
    expectation = Expectation("job", rules)
    lines = (line("SIS 9066", doubtful=(5,), flags=("cut",)), line("LOT L2345B"))
    fields = (field("lot", "L2345B", flags=("doubtful",)), field("expiry_date", "2027-08-31", flags=("invalid",)))
    reading = Reading("line1", 1, 0.0, 640, 480, lines=lines, fields=fields)
    assert fit_of(reading, expectation, TODAY) == 3
    assert fit_of(Reading("line1", 1, 0.0, 640, 480, lines=(line("9906 SIS"),)), expectation, TODAY) == 0
    assert fit_of(reading, Expectation("nothing"), TODAY) == 0
