"""Lost days: what is left of a whole date is told from a month that was printed without its day."""

from __future__ import annotations

import random
import re
from datetime import date, datetime, timezone

import numpy as np
import pytest

from edge_agent.records import Field, Quad, TextBox, TextLine
from edge_agent.settings.fields import FieldsConfig
from edge_agent.stages.dates import find_dates
from edge_agent.stages.field_extractor import FieldExtractor
from edge_agent.stages.label_date import MONTH, DateRules

RULES = DateRules("DMY", date(2026, 11, 30))
EXTRACTOR = FieldExtractor(FieldsConfig(), None, lambda: datetime(2026, 11, 30, tzinfo=timezone.utc).timestamp())


def on_one_row(*texts: tuple[str, int]) -> list[Field]:
    """The fields of texts that begin so many px from the left."""
    lines = []
    for text, left in texts:
        right = left + 18 * len(text)
        quad = Quad(np.array([[left, 0], [right, 0], [right, 30], [left, 30]], np.float32))
        lines.append(TextLine(text, 1.0, TextBox(quad, 1.0)))
    return list(EXTRACTOR.extract(lines))


@pytest.mark.parametrize(
    "text",
    [" .09.2027", " -09-2027", "-09-2027", ":.09.2027", " -Sep-27", "2027-09-", "2027/09/", "2027.09.", "2027-09- ",
     "2027-09 -", "12 .2027", "12. 2027", "2027 -12", "2027- 12", "12/ 27", "Sep, 2027", "Sep , 2027", "Sep  2027",
     "Sep- 2027", "1 2027", "2027-1", "December 25 #027", "12 Sep 20", "Sep 12, 20", "1Sep 2027", "1 Sep2027",
     "Sep2, 2027", "25 2 2027", "2027-12-2", "20 -08-31", "Septem  12 2027"],
)  # fmt: skip
def test_what_is_left_of_a_whole_date_is_never_plain(text: str) -> None:
    assert all(set(found.flags) - {MONTH} for found in find_dates(text, RULES, keyed=True))


@pytest.mark.parametrize(
    "text",
    ["09.2027", ".09.2027", ". 09.2027", " - 09.2027", ":-09/2027", "09 / 2027", "09-2027", "09 2027", "9/2027",
     "09/27", "2027-09", "2027/9", "2027.09", "202709", "09.2027.", "09/2027, ", "2027-09 - ", "2027-09, ",
     "Sep 2027", "SEP2027", "Sep. 2027", "SEP-2027", "Sep/27", "Sept '27", "septiembre de 2027", "2027年9月"],
)  # fmt: skip
def test_month_printed_without_a_day_is_plain(text: str) -> None:
    (found,) = find_dates(text, RULES, keyed=True)
    assert (found.printed, found.flags) == ("2027-09", (MONTH,))


@pytest.mark.parametrize(
    "texts",
    [
        [("BBE", 0), (".09.2027", 120)],
        [("BBE", 0), ("- 09.2027", 120)],
        [("BBE 2027-09", 0), ("2", 220)],
        [("BBE 2027-09", 0), ("-12", 210)],
        [("BBE 2027-09", 0), ("■", 210)],
        [("BBE 2.2027", 0), ("1.", 200)],
    ],
)
def test_piece_of_a_date_in_a_box_of_its_own_is_told(texts: list[tuple[str, int]]) -> None:
    (found,) = on_one_row(*texts)
    assert found.name == "expiry_date"
    assert "incomplete" in found.flags


@pytest.mark.parametrize(
    "texts",
    [
        [("BBE", 0), ("09.2027", 120)],
        [("BBE 09.2027", 0), ("14:32", 220)],
        [("BBE 09.2027", 0), ("6", 600)],
        [("BBE 12.09.2027", 0), ("6", 280)],
        [("1", 0), ("BBE 09.2027", 40)],
    ],
)
def test_other_text_beside_a_date_is_no_piece_of_it(texts: list[tuple[str, int]]) -> None:
    (found,) = [field for field in on_one_row(*texts) if field.name == "expiry_date"]
    assert not set(found.flags) - {MONTH, "ambiguous"}


FORMS = ("%d.%m.%Y", "%d/%m/%y", "%Y-%m-%d", "%d %b %Y", "%d%b%Y", "%b %d, %Y", "%d-%m-%Y", "%Y/%m/%d", "%Y%m%d",
         "%d%m%y", "%B %d %Y", "%d. %B %Y", "%m/%Y", "%Y-%m", "%b %Y", "%b-%y", "%d.%m.%y", "%d%m%Y", "%y%m%d",
         "%d-%b-%y", "%d/%b/%Y", "%d %m %Y", "%d %m %y")  # fmt: skip
# What is left reads as another date that labels print just so, and nothing in the text says otherwise.
CANNOT_BE_TOLD = re.compile(
    r"\d\d?[./-](\d\d|\d{4})|\d{4}[./-]\d\d|\d\d \d{4}|\d{4}|\d{6}"  # the day, or digits of month and year, are gone
    r"|[A-Z]+[ /-]?(\d{4}|\d\d)"
    r"|\d( |\. |-|/|)[A-Z]+( |-|/|)(\d{4}|\d\d)|[A-Z]+ \d,? \d{4}"  # one digit of the day is gone
    r"|\d\d?[./-]\d[./-]\d+|\d{4}/\d\d?/\d\d?"  # one of the day or month, where neither is padded
    r"|(\d\d[./-]){2}\d\d"  # two of the year, and the date reads from its other end
)


def test_damaged_dates_are_told_where_the_text_can_tell() -> None:
    rng = random.Random(7)
    plainly_wrong = 0
    for _ in range(5000):
        day = date(2027, 1, 1) + date.resolution * rng.randrange(1000)
        form = rng.choice(FORMS)
        text = day.strftime(form).upper()
        at, length = rng.randrange(len(text)), rng.randint(1, 3)
        mark = rng.choice(("", " ", "#" * length, "■" * length))
        left = text[:at] + mark + text[at + length :]
        if at + length > len(text) or not text[at : at + length].strip(" ./,-"):
            continue
        wanted = day.isoformat() if "%d" in form else day.isoformat()[:7]
        for found in find_dates(f" {left.rstrip()}", RULES, keyed=True):
            if not set(found.flags) - {MONTH} and found.printed != wanted:
                plainly_wrong += 1
                assert CANNOT_BE_TOLD.fullmatch(left.strip()), f"{text!r} left as {left!r} gave {found}"
    assert plainly_wrong < 150
