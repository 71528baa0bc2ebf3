from __future__ import annotations

import sys

import pytest

from edge_agent.stages.label_text import label_text, skeleton, unaccented


def test_plain_text_stays_as_it_is() -> None:
    assert label_text("LOT L2345B").text == "LOT L2345B"


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("LOT\x00A1\x1b[31m", "LOT A1 [31m"),
        ("A\u202eB\u200d\ufeffC", "ABC"),
        ("X\ud83dY", "X\ufffdY"),
        ("有效期至：２０２７", "有效期至:2027"),
        ("٣١/٠٨/٢٠٢٧ ۳ ३ ๓", "31/08/2027 3 3 3"),
        ("1½ l", "1½ l"),
        ("10² ①", "10  ①"),
        ("Nº 5", "No 5"),
        ("02–03—04", "02-03-04"),
    ],
)
def test_odd_characters_become_plain_ones(raw: str, clean: str) -> None:
    assert label_text(raw).text == clean


def test_seen_gives_back_the_raw_characters() -> None:
    text = label_text("\u202eLOT № ２０２７\x00!")
    at = text.text.index("No")
    assert text.seen(at, at + 2) == "№"
    assert text.seen(text.text.index("2"), text.text.index("2") + 4) == "２０２７"
    assert text.seen(3, 3) == ""


def test_skeleton_is_the_same_for_what_ocr_swaps() -> None:
    assert skeleton("L0T").chars == skeleton("lot").chars == skeleton("1OT").chars
    assert skeleton("Zutaten:").chars == skeleton("2UTATEN").chars
    assert skeleton("Péremption").chars == skeleton("peremption").chars


def test_skeleton_knows_where_each_letter_came_from() -> None:
    bones = skeleton("é, ß")
    assert bones.chars == "ess"
    assert list(bones.at) == [0, 3, 3]


def test_any_character_of_unicode_is_taken() -> None:
    everything = "".join(map(chr, range(0, sys.maxunicode + 1, 7)))
    text = label_text(everything)
    assert len(text.at) == len(text.text) + 1
    assert len(unaccented(text.text)) == len(text.text)
    text.text.encode("utf-8")
    skeleton(text.text[:100_000])
