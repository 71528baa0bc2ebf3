"""BentWords: the same words as spelling out every form of what is seen would find."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edge_agent.stages.bent_words import ANY, MEANT, BentWords
from edge_agent.stages.key_phrases import lexicon_table

WORDS = BentWords(["expiry", "charge", "change", "genießbar", "lot", "saklayınız"])


@pytest.mark.parametrize(
    ("seen", "most", "found"),
    [
        ("charge", 0, [(0, "charge")]),
        ("chorge", 0, []),
        ("chorge", 1, [(1, "charge")]),
        ("chaage", 2, []),
        ("chorqe", 2, [(2, "charge")]),
        ("cha?ge", 0, [(0, "charge"), (0, "change")]),
        ("gcnießbor", 2, [(2, "genießbar")]),
        ("soklayırız", 2, [(2, "saklayınız")]),
        ("1ot", 1, [(1, "lot")]),
        ("цех", 3, []),
        ("", 2, []),
        ("lots", 2, []),
    ],
)
def test_words_are_found_by_how_they_are_seen(seen: str, most: int, found: list[tuple[int, str]]) -> None:
    assert WORDS.meant_by(seen, most) == found


def test_letter_may_be_bent_twice() -> None:
    assert "e" in MEANT["c"]
    assert "a" in MEANT["e"]
    assert BentWords(["abc"]).meant_by("cbc", 2) == [(2, "abc")]
    assert BentWords(["abc"]).meant_by("cbc", 1) == []


def test_no_words_no_findings() -> None:
    assert BentWords([]).meant_by("lot", 2) == []


def forms(seen: str) -> Iterator[str]:
    """`seen` with one letter as it may have been."""
    for at, char in enumerate(seen):
        for letter in MEANT.get(char, ""):
            yield f"{seen[:at]}{letter}{seen[at + 1 :]}"


def test_every_form_of_one_and_two_bends_is_found_and_no_other() -> None:
    phrases = [phrase for phrase in lexicon_table().pieces if ANY not in phrase]
    words = BentWords(phrases)
    for phrase in (phrase for phrase in phrases if len(phrase) == 6):
        for seen in (phrase[:2] + "c" + phrase[3:], "o" + phrase[1:5] + "n"):
            once = set(forms(seen)) - {seen}
            twice = {form for one in forms(seen) for form in forms(one)} - once - {seen}
            wanted = {(bends, p) for bends, some in enumerate(({seen}, once, twice)) for p in some & set(phrases)}
            assert set(words.meant_by(seen, 2)) == wanted, seen
