from __future__ import annotations

import random
from datetime import date, timedelta

import pytest

from edge_agent.stages.dates import find_dates, gs1_date
from edge_agent.stages.label_date import MONTH, DateOrder, DateRules, LabelDate
from edge_agent.stages.label_text import label_text
from edge_agent.stages.months import month_number

RULES = DateRules("DMY", date(2026, 11, 30))


def keyed(text: str, rules: DateRules = RULES) -> LabelDate:
    (found,) = find_dates(label_text(text).text, rules, keyed=True)
    return found


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("14.06.2029", "2029-06-14"),
        ("31/08/2027", "2027-08-31"),
        ("2027-08-31", "2027-08-31"),
        ("25 12 2027", "2027-12-25"),
        ("20270831", "2027-08-31"),
        ("31082027", "2027-08-31"),
        ("12AUG2026", "2026-08-12"),
        ("05 Feb. 2026", "2026-02-05"),
        ("3. März 2027", "2027-03-03"),
        ("30 août 2027", "2027-08-30"),
        ("15 de marzo de 2027", "2027-03-15"),
        ("8 dicembre 2027", "2027-12-08"),
        ("January 11, 2028", "2028-01-11"),
        ("1st June 2027", "2027-06-01"),
        ("2027年8月31日", "2027-08-31"),
        ("2027 年 8 月 31 日", "2027-08-31"),
        ("٣١/٠٨/٢٠٢٧", "2027-08-31"),
        ("2027년 8월 31일", "2027-08-31"),
        ("2027年8月31", "2027-08-31"),
        ("15 Jänner 2027", "2027-01-15"),
        ("31 maj 2027", "2027-05-31"),
        ("31. augusti 2027", "2027-08-31"),
        ("AUG-31-2027", "2027-08-31"),
        ("AUG/31/2027", "2027-08-31"),
        ("AUG312027", "2027-08-31"),
        ("AUG 31, 27", "2027-08-31"),
        ("MAY-05-27", "2027-05-05"),
        ("2027-08-31T14:32:00Z", "2027-08-31"),
        ("20270831T1432", "2027-08-31"),
        ("31/08/2614:32", None),
        ("17.09.2026 14:32", "2026-09-17"),
        ("14:32 17.09.26", "2026-09-17"),
        ("06:15:07 31 AUG 27", "2027-08-31"),
        ("2026-02-28 06:15 L3", "2026-02-28"),
    ],
)
def test_full_dates_are_read(text: str, printed: str | None) -> None:
    found = keyed(text)
    if printed is None:
        assert found.flags
    else:
        assert (found.printed, found.flags) == (printed, ())


@pytest.mark.parametrize(
    "text",
    [
        "08/2027",
        "08.27",
        "2027-08",
        "202708",
        "2027년 8월",
        "AUG 2027",
        "AUG 27",
        "Août 2027",
        "2027年8月",
        "08 2027",
        "082027",
        "0827",
    ],
)
def test_month_without_day_keeps_its_precision_and_lasts_to_its_end(text: str) -> None:
    found = keyed(text)
    assert (found.printed, found.latest) == ("2027-08", "2027-08-31")
    assert "month_precision" in found.flags
    assert "ambiguous" not in found.flags or found.alternative


@pytest.mark.parametrize(
    "text",
    ["KW 12/27", "KW12/2027", "KW 10 2027", "Week 10/27", "Woche 10/2027", "Semaine 10/2027", "sem. 10/27", "WK 1O/27",
     "12/27 KW", "2027/10 KW"],
)  # fmt: skip
def test_week_is_never_a_month(text: str) -> None:
    assert find_dates(text, RULES, keyed=True) == ()


def test_date_beside_a_week_or_a_september_is_read() -> None:
    assert keyed("Week 35 31.08.2027").printed == "2027-08-31"
    assert keyed("31.08.2027 KW 35/27").printed == "2027-08-31"
    assert keyed("15 SETT 2027").printed == "2027-09-15"


@pytest.mark.parametrize(
    "text", ["2027年8月?日", "2027年8月■日", "2027年8月日", "2027年8月3 1日", "2027年8月3?日", "2027年8月311日"]
)
def test_lost_day_before_its_sign_makes_no_month(text: str) -> None:
    assert not [found for found in find_dates(text, RULES, keyed=True) if not set(found.flags) - {"month_precision"}]


@pytest.mark.parametrize(
    ("order", "text", "printed", "flags"),
    [
        ("DMY", "12.09.2027", "2027-09-12", ()),
        ("DMY", "05/06/27", "2027-06-05", ()),
        ("MDY", "12.09.2027", "2027-12-09", ()),
        ("DMY", "03/25/2027", "2027-03-25", ("order_conflict",)),
        ("DMY", "27/08/31", "2031-08-27", ("ambiguous",)),  # whether its year comes first nobody vouched for
        ("YMD", "05/06/2027", "2027-06-05", ("ambiguous",)),
    ],
)
def test_order_that_is_vouched_for_settles_day_and_month(
    order: DateOrder, text: str, printed: str, flags: tuple[str, ...]
) -> None:
    found = keyed(text, DateRules(order, date(2026, 11, 30), trusts_order=True))
    assert (found.printed, found.flags) == (printed, flags)


def test_both_orders_possible_is_ambiguous_with_the_other_reading() -> None:
    found = keyed("12/08/26")
    assert (found.printed, found.alternative) == ("2026-08-12", "2026-12-08")
    assert "ambiguous" in found.flags
    assert keyed("12/08/26", DateRules("MDY", RULES.today)).printed == "2026-12-08"
    assert keyed("26/08/12", DateRules("YMD", RULES.today)).printed == "2026-08-12"
    assert keyed("08/08/2026").flags == ()


def test_date_of_the_other_order_is_read_and_says_so() -> None:
    assert (keyed("03/25/27").printed, keyed("03/25/27").flags) == ("2027-03-25", ("order_conflict",))
    assert keyed("2027-25-03").flags == ("order_conflict",)


@pytest.mark.parametrize(
    ("text", "order", "printed", "other"),
    [
        ("26.08.12", "DMY", "2012-08-26", "2026-08-12"),
        ("27/08/31", "DMY", "2031-08-27", "2027-08-31"),
        ("27-12-31", "DMY", "2031-12-27", "2027-12-31"),
        ("27AUG31", "DMY", "2031-08-27", "2027-08-31"),
        ("27 AUG 31", "MDY", "2031-08-27", "2027-08-31"),
        ("31.08.27", "YMD", "2031-08-27", "2027-08-31"),
    ],
)
def test_date_years_off_tells_the_nearer_one_that_it_is_from_its_other_end(
    text: str, order: DateOrder, printed: str, other: str
) -> None:
    found = keyed(text, DateRules(order, RULES.today))
    assert (found.printed, found.alternative) == (printed, other)
    assert "ambiguous" in found.flags


@pytest.mark.parametrize(
    ("text", "order", "printed"),
    [
        ("27/12/26", "DMY", "2026-12-27"),
        ("25.08.27", "DMY", "2027-08-25"),
        ("27.08.31", "YMD", "2027-08-31"),
        ("27AUG28", "DMY", "2028-08-27"),
        ("20/12/30", "DMY", "2030-12-20"),
    ],
)
def test_configured_order_decides_where_the_date_is_not_far_off(text: str, order: DateOrder, printed: str) -> None:
    found = keyed(text, DateRules(order, RULES.today))
    assert (found.printed, found.flags) == (printed, ())


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("AUG 31", "DMY"),
        ("08/31", "DMY"),
        ("0831", "DMY"),
        ("AUG 28", "MDY"),
        ("08/28", "MDY"),
        ("08.28", "YMD"),
        ("02/29", "MDY"),
    ],
)
def test_month_before_what_may_be_its_day_is_never_plain(text: str, order: DateOrder) -> None:
    assert "incomplete" in keyed(text, DateRules(order, RULES.today)).flags


@pytest.mark.parametrize(
    ("text", "order"),
    [("AUG 28", "DMY"), ("08/28", "DMY"), ("AUG 2031", "MDY"), ("28/08", "YMD"), ("08/2031", "DMY"), ("08/33", "MDY")],
)
def test_month_before_what_can_only_be_its_year_is_plain(text: str, order: DateOrder) -> None:
    assert keyed(text, DateRules(order, RULES.today)).flags == ("month_precision",)


@pytest.mark.parametrize(
    "text",
    ["31/02/2027", "30.02.27", "2027-13-32", "31 JUN 2027", "31 SEP 2026", "29.02.2027", "00/2027", "08/0000",
     "AUG 0000", "0000-08", "0000年8月"],
)  # fmt: skip
def test_date_that_does_not_exist_is_invalid_and_never_rolled_over(text: str) -> None:
    found = keyed(text)
    assert found.flags == ("invalid",)
    assert (found.printed, found.latest) == ("", "")
    assert find_dates(text, RULES, keyed=False) == ()


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("Z4.12.20Z6", "2026-12-24"),
        ("31/08/Z026", "2026-08-31"),
        ("09/2B", "2028-09"),
        ("O5Feb 2026", "2026-02-05"),
        ("16/0212026", "2026-02-16"),
        ("20Z70820", "2027-08-20"),
        ("January l1, 2028", "2028-01-11"),
        ("20Z6-02-Z806:15L3", "2026-02-28"),
        ("12:08/26", "2026-08-12"),
        ("5 Septenber 2027", "2027-09-05"),
        ("19MAY2o28", "2028-05-19"),
        ("16 NovZ026", "2026-11-16"),
        ("2028年D4月l7日", "2028-04-17"),
        ("2 028年0A月17日", "2028-04-17"),
        ("18/032027", "2027-03-18"),
        ("1510.2026", "2026-10-15"),
        ("21/06127 14:05", "2027-06-21"),
        ("I3/1012027", "2027-10-13"),
        ("2026108/2T", "2026-08-27"),
        ("13.11,2026", "2026-11-13"),
        ("27.02,28", "2028-02-27"),
        ("22.12.202 6", "2026-12-22"),
        ("2 027.09.3O", "2027-09-30"),
        ("20 270820", "2027-08-20"),
        ("28 OC7Z026", "2026-10-28"),
    ],
)
def test_letters_for_digits_are_mended_behind_a_key_and_flagged(text: str, printed: str) -> None:
    found = keyed(text)
    assert found.printed == printed
    assert "repaired" in found.flags
    assert not [d for d in find_dates(text, RULES, keyed=False) if d.printed != printed]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("2A.12.2026", "2026-12-24"),
        ("3O/06/2026", "2026-06-30"),
        ("0S Feb2026", "2026-02-05"),
        ("202G/08/27", "2026-08-27"),
        ("24/07 /202G", "2026-07-24"),
        ("31.07.20 29", "2029-07-31"),
    ],
)
def test_misread_character_beside_what_reads_as_a_date_belongs_to_it(text: str, printed: str) -> None:
    found = keyed(text)
    assert (found.printed, "repaired" in found.flags) == (printed, True)


@pytest.mark.parametrize("text", ["B.08.2027", "A1.08.2027", "1 3/10/2027", "31/02/2O27", "02/2O28 31/02/2027"])
def test_what_may_be_more_than_one_misread_character_stays_in_doubt(text: str) -> None:
    assert all({"incomplete", "invalid"} & set(found.flags) for found in find_dates(text, RULES, keyed=True))


@pytest.mark.parametrize(("text", "printed"), [("08/27,12 pcs", "2027-08"), ("08.27, 12 pcs", "2027-08")])
def test_number_behind_a_comma_is_no_year(text: str, printed: str) -> None:
    assert keyed(text).printed == printed


@pytest.mark.parametrize("text", ["AUG 26, 2027L2 345B", "Feb 24, 20252345B"])
def test_two_digits_before_a_comma_and_more_are_no_year(text: str) -> None:
    assert not [found for found in find_dates(text, RULES, keyed=True) if not set(found.flags) - {MONTH}]


@pytest.mark.parametrize(
    "text", ["18JN2025", "1208/261471", "see lid", "L2345B", "7719", "09128", "2026060 6", "14:32", "", "1 2 3"]
)
def test_what_is_no_date_gives_none(text: str) -> None:
    assert find_dates(text, RULES, keyed=True) == ()


@pytest.mark.parametrize(
    "text", ["LOT L2345B", "Batch 7719", "1,25 kg", "S/N 2109-33-00417", "P/N 03/2026", "Tel 01 55 50 12 34", "v1.2.3"]
)
def test_lines_without_a_date_have_none(text: str) -> None:
    assert find_dates(text, RULES, keyed=False) == ()


@pytest.mark.parametrize(
    "text",
    ["AA.08.2027", "xx AUG 2027", "2027-08-AA", "202g-06-30 x", "16/05/20 27", "1 3MAR28", "2029-2-03", "/03/2026",
     "AUG 25, 2Q30", "02/20 28"],
)  # fmt: skip
def test_date_beside_a_lost_piece_is_never_plain(text: str) -> None:
    assert {"incomplete", "repaired"} & set(keyed(text).flags)


@pytest.mark.parametrize(
    "text",
    ["■1 AUG 2027", "'1 AUG 2027", "*8.8.2027", "■■ AUG 2027", "3■.08.2027", "■■.08.2027", " .08.2027", "AOG-05-27",
     "31*08.2027", "31 AUG 20■7", "31.08.20*7", "2027-10-1■", "2027-10-■1"],
)  # fmt: skip
def test_date_beside_what_was_no_character_is_never_plain(text: str) -> None:
    assert "incomplete" in keyed(text).flags


@pytest.mark.parametrize(
    "text",
    ["27.10.■1", "28-09-■8", "061920■30", "20*30-07-25", "2030-01 07L2345", "19.11.20 29L2345", "NOV 10- 2031",
     "JAN 01 20 26", "14:32 1.1.27", "14:3 11.08.27", "AUG-:2-2030", "DECS04-2029", "2/31-NOV-18"],
)  # fmt: skip
def test_date_with_a_piece_split_off_is_never_plain(text: str) -> None:
    for order in ("DMY", "MDY", "YMD"):
        assert all(set(found.flags) - {MONTH} for found in find_dates(text, DateRules(order, RULES.today), keyed=True))


@pytest.mark.parametrize(
    "text",
    ["27. 1.27", "8.1 .2029", "1' APR 2030", "3/ OCT 2024", "1/. NOV 2027", "3  JUL 31", "EXP .8APR24", "2026-JAN- 6",
     "2024年10月1 日", "2030-12-1.", "2024-12-2:", "2027-10-1I", "2027-10-1-", "/3 NOV 2029"],
)  # fmt: skip
def test_one_digit_beside_what_may_have_been_another_is_never_plain(text: str) -> None:
    assert all(set(found.flags) - {MONTH} for found in find_dates(text, RULES, keyed=True))


@pytest.mark.parametrize("text", ["JUL-.1-2026", "MAY -6 2031", "OCT /9, 25", "DEC 2.27", "JUN2-2031"])
def test_month_name_with_a_lost_digit_behind_is_never_plain(text: str) -> None:
    assert all(set(found.flags) - {MONTH} for found in find_dates(text, DateRules("MDY", RULES.today), keyed=True))


def test_hours_are_no_day_and_no_year() -> None:
    assert all(found.flags for found in find_dates("2027 10 14:32", RULES, keyed=True))
    assert not [found for found in find_dates("31.08.20:32", RULES, keyed=True) if found.printed == "2020-08-31"]


@pytest.mark.parametrize(
    "text",
    ["1. APR 2030", "5-FEB-26", "5. Feb. 2026", "1/5/2027", "7. 8. 2027", "1 AUG '27", "AUG 5, 2027", "2027. 8. 3."],
)
def test_one_digit_day_joined_as_usual_is_told_without_doubt(text: str) -> None:
    assert not set(keyed(text).flags) - {"ambiguous"}


@pytest.mark.parametrize(
    "text",
    [
        "*31.08.2027",
        "■ 31.08.2027",
        "31.08.27*",
        "(1 AUG 2027)",
        "- 08/2027",
        ". 08.2027",
        "*08/2027*",
        "● 08/27 #",
        "bis08/2027",
    ],
)
def test_sign_beside_a_whole_date_is_none_of_it(text: str) -> None:
    assert not set(keyed(text).flags) - {"month_precision"}


def test_key_words_are_never_months() -> None:
    assert month_number("EXP") is None
    assert month_number("BBE") is None
    assert month_number("mayzo") is None  # of MAYZO27, one letter from marzo and from mayo


@pytest.mark.parametrize("text", [": 2027", " end 2027", ": Ende 2027", " fin de 2027"])
def test_year_alone_is_whole_behind_its_phrase(text: str) -> None:
    assert keyed(text).flags == ("year_precision",)


@pytest.mark.parametrize("text", [": JL 2027", " UL 2027", ": NOU 2027", " J.2027", ": A0G 2027"])
def test_year_behind_what_may_be_left_of_a_month_is_incomplete(text: str) -> None:
    assert "incomplete" in keyed(text).flags


def test_window_follows_the_clock_and_is_off_without_one() -> None:
    assert keyed("14.06.2033", DateRules("DMY", date(2031, 1, 1))).flags == ()
    assert keyed("14.06.2093").flags == ("implausible",)
    untrusted = keyed("14.06.2093", DateRules("DMY", None))
    assert (untrusted.printed, untrusted.flags) == ("2093-06-14", ("clock_untrusted",))
    assert find_dates("14.06.2093", RULES, keyed=False) == ()


def test_two_digit_year_is_the_nearest_to_the_clock() -> None:
    assert DateRules("DMY", date(2026, 1, 1)).full_year("26") == 2026
    assert DateRules("DMY", date(2026, 1, 1)).full_year("99") == 1999
    assert DateRules("DMY", date(2095, 1, 1)).full_year("02") == 2102
    assert DateRules("DMY", None).full_year("26") == 2026


@pytest.mark.parametrize(
    ("digits", "latest", "flags"),
    [
        ("270800", "2027-08-31", ("month_precision",)),
        ("260200", "2026-02-28", ("month_precision",)),
        ("280200", "2028-02-29", ("month_precision",)),
        ("260131", "2026-01-31", ()),
        ("270231", "", ("invalid",)),
        ("271300", "", ("invalid",)),
    ],
)
def test_gs1_day_00_is_the_whole_month(digits: str, latest: str, flags: tuple[str, ...]) -> None:
    found = gs1_date(digits, RULES)
    assert (found.latest, found.flags) == (latest, flags)


# What OCR makes of a character, digits for other digits excepted: those no rule can see.
BENT = {"0": "OQDo", "1": "lI|i", "2": "Zz", "4": "A", "5": "S", "6": "Gb", "7": "T", "8": "B", "9": "g", "/": "l|I",
        "-": "~_", ".": ",: ", " ": "", "E": "F", "U": "V", "O": "0", "B": "8"}  # fmt: skip
FORMS = ("%d/%m/%Y", "%d.%m.%Y", "%Y-%m-%d", "%d/%m/%y", "%d %b %Y", "%d%b%Y", "%b %d, %Y", "%Y%m%d", "%d %B %Y")


def test_one_bent_character_never_gives_another_date_in_silence() -> None:
    rng = random.Random(5)
    for _ in range(6000):
        day = date(2024, 1, 1) + timedelta(rng.randrange(2500))
        text = day.strftime(rng.choice(FORMS)).upper()
        at = rng.randrange(len(text))
        bent = text[:at] + rng.choice(BENT.get(text[at], text[at]) or [""]) + text[at + 1 :]
        bent += rng.choice(["", "", " 14:32", " L2345B"])
        for found in find_dates(label_text(bent).text, RULES, keyed=True):
            plain = not set(found.flags) - {"month_precision"}
            assert not plain or found.printed == day.isoformat(), f"{text!r} bent to {bent!r} gave {found}"


SHORT_FORMS = ("%d.%m.%y", "%d %m %Y", "%d%b%y", "%m/%Y", "%b %Y", "%m.%y", "%d%m%y", "%Y年%m月%d日", "%b-%d-%Y")


def test_one_blotted_character_never_gives_another_date_in_silence() -> None:
    rng = random.Random(6)
    for form in (*FORMS, *SHORT_FORMS):
        for _ in range(12):
            text = (day := date(2024, 1, 1) + timedelta(rng.randrange(2500))).strftime(form).upper()
            wanted = day.isoformat() if "%d" in form else day.isoformat()[:7]
            for at in range(len(text)):
                blotted = text[:at] + rng.choice("■*?#") + text[at + 1 :] + rng.choice(["", " 14:32", " L2345B"])
                for found in find_dates(blotted, RULES, keyed=True):
                    plain = not set(found.flags) - {MONTH}
                    assert not plain or found.printed == wanted, f"{text!r} blotted to {blotted!r} gave {found}"


def test_an_accented_letter_is_no_digit() -> None:
    assert find_dates(label_text("5 May ä7").text, RULES, keyed=True) == ()
