from __future__ import annotations

import pytest

from edge_agent.stages.key_phrases import allowed_errors, find_key_phrases
from edge_agent.stages.label_text import label_text, skeleton
from edge_agent.stages.lexicon import LEXICON


def names(text: str) -> list[str]:
    return [key.name for key in find_key_phrases(label_text(text).text)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("BESTBEFORE12AUG2026", "expiry_date"),
        ("FXP03/2026", "expiry_date"),
        ("EXPAUG2027", "expiry_date"),
        ("Mindestenshaltbarbis: Z4.12.20Z6", "expiry_date"),
        ("À consommer de préférerce avantle3O/06/2027", "expiry_date"),
        ("有效期至2027年", "expiry_date"),
        ("F echadefabrlcación: 19/01/2026", "manufacture_date"),
        ("Bullt: 08/24", "manufacture_date"),
        ("LOTL2345B", "lot"),
        ("Lof #XK90213", "lot"),
        ("C harge 48821", "lot"),
        ("Nº de serie: ES004", "serial_number"),
        ("Ser,-Nr.:KM-0044l7", "serial_number"),
        ("NETWT500g", "weight_volume"),
        ("1ngredients: oats", "ingredients"),
        ("MadeinGermany", "other"),
    ],
)
def test_phrase_is_found_glued_split_and_bent(text: str, name: str) -> None:
    assert names(text) == [name]


@pytest.mark.parametrize(
    "text",
    [
        "Chocolate Series 500",
        "HOT SAUCE 330",
        "DSN 123456",
        "107 g",
        "Model T Charger",
        "A0B1O8",
        "Organic Oat Biscuits",
    ],
)
def test_words_and_codes_that_only_look_like_phrases_are_none(text: str) -> None:
    assert [name for name in names(text) if name != "other"] == []


def test_longest_phrase_wins() -> None:
    (key,) = find_key_phrases("Best before end of: 12/2027")
    assert (key.name, key.start, key.end) == ("expiry_date", 0, 18)
    assert [k.name for k in find_key_phrases("Packed by Delta Foods")] == ["address"]
    assert [k.name for k in find_key_phrases("Packed on 12/2027")] == ["manufacture_date"]


def test_several_phrases_of_one_line_come_left_to_right() -> None:
    assert names("LOT A123 EXP 08/2026 MFG 08/2025") == ["lot", "expiry_date", "manufacture_date"]


def test_wordy_phrase_counts_only_where_a_sentence_starts() -> None:
    assert names("Each box contains 12") == []
    assert names("Contains: milk") == ["ingredients"]


@pytest.mark.parametrize(
    "text", ["Powder for Injection", "Sterile Wound Dressing", "Sterile Saline Solution", "Tablets - for oral use"]
)
def test_what_a_line_is_not_is_said_where_a_sentence_starts_and_as_it_is_spelled(text: str) -> None:
    assert names(text) == []
    assert names("For injection") == names("Sterile R") == names("20 tablets. For oral use")[-1:] == ["other"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("BATCH QTY 500", ["other"]),
        ("Lot weight: 500 kg", ["other"]),
        ("BATCH TIME 12:30", ["other"]),
        ("DO NOT SELL BEFORE 27.08.2027", ["other"]),
        ("LOT A1 do not sell before 27.08.2027", ["lot", "other"]),
        ("SELL BEFORE 27.08.2027", ["expiry_date"]),
        ("Not for sale before 27.08.2027", ["other"]),
        ("Not for sale beyond 27.08.2027", []),
        ("BATCH 500", ["lot"]),
    ],
)
def test_what_a_batch_has_is_no_lot_and_when_sale_begins_no_expiry(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_no_letter_may_be_wrong_in_a_short_phrase_beyond_lookalikes() -> None:
    assert allowed_errors(7) == 0
    assert names("EXQ 12/2027") == []


def test_a_phrase_belongs_to_one_field() -> None:
    owners: dict[str, set[str]] = {}
    for name, rows in LEXICON.items():
        for phrase in "|".join(rows).split("|"):
            assert phrase == phrase.strip() and phrase, f"{name}: {phrase!r}"
            owners.setdefault(skeleton(phrase).chars, set()).add(name)
    shared = {chars: found for chars, found in owners.items() if len(found) > 1}
    assert shared == {}
