"""PhrasePieces: no phrase that stands in a line within its allowed errors is ever left out."""

from __future__ import annotations

import random
from string import ascii_lowercase

import pytest

from edge_agent.stages.key_phrases import PIECE_LETTERS, lexicon_table
from edge_agent.stages.phrase_pieces import PhrasePieces

PHRASES = lexicon_table().long_phrases
LIMITS = lexicon_table().limits.tolist()


def bent(phrase: str, errors: int, chance: random.Random) -> str:
    """`phrase` with so many letters replaced, lost or put in."""
    letters = list(phrase)
    for _ in range(errors):
        at = chance.randrange(len(letters))
        letters[at : at + chance.choice((0, 1))] = chance.choice(("", chance.choice(ascii_lowercase)))
    return "".join(letters)


def test_phrase_with_all_its_allowed_errors_is_among_those_held() -> None:
    pieces = PhrasePieces(PHRASES, LIMITS, PIECE_LETTERS)
    chance = random.Random(7)
    held = [
        len(pieces.held_by(f"ab{bent(phrase, most, chance)}cd")) for phrase, most in zip(PHRASES, LIMITS, strict=True)
    ]
    for index, (phrase, most) in enumerate(zip(PHRASES, LIMITS, strict=True)):
        for _ in range(5):
            seen = bent(phrase, most, chance)
            assert index in pieces.held_by(f"ab{seen}cd"), (phrase, seen)
    assert sum(held) / len(held) < len(PHRASES) / 10, "it leaves few to compare"


def test_line_without_a_piece_holds_nothing() -> None:
    pieces = PhrasePieces(["bestbefore", "lotnumber"], [1, 0], 4)
    assert pieces.held_by("bestxxfore") == {0}
    assert pieces.held_by("lotnumbcr") == {1}
    assert pieces.held_by("bex") == pieces.held_by("") == pieces.held_by("beztbexore") == set()


def test_phrase_below_nought_errors_is_never_looked_for() -> None:
    assert PhrasePieces(["lot"], [-1], 4).held_by("lotlot") == set()


def test_phrase_too_short_for_its_errors_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'bestby' with 1 errors has no 2 pieces of 4 letters"):
        PhrasePieces(["bestby"], [1], 4)
