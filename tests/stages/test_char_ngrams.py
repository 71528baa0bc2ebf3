"""Character n-grams: what bent text keeps of its words."""

from __future__ import annotations

import numpy as np
import pytest

from edge_agent.stages.char_ngrams import DIMENSIONS, char_ngrams


def likeness(one: str, other: str) -> float:
    return float(char_ngrams(one) @ char_ngrams(other))


def test_bent_and_glued_text_stays_nearer_to_its_own_than_other_text_is() -> None:
    clean, other = "Chocolate Chip Cookies", "Store in a cool dry place"
    for bent in ("Choc0late Chip Cook1es", "Chocolafe ChipCookies", "hocolate Chip Cookie", "CHOCOLATE CHIP COOKIES"):
        assert likeness(clean, bent) > 0.5 > 3 * abs(likeness(other, bent))


def test_length_is_one_for_any_text_with_letters_or_digits() -> None:
    for text in ("Milk", "a" * 5000, "ÄÖ", "7", "中文", "x\ud83d"):
        assert np.linalg.norm(char_ngrams(text)) == pytest.approx(1.0), text
    for text in ("", " ", "🙂", "-- !", "\ud83d"):
        assert not char_ngrams(text).any()
        assert char_ngrams(text).shape == (DIMENSIONS,)


def test_same_text_gives_the_same_numbers_in_every_process() -> None:
    assert {int(at): float(char_ngrams("1")[at]) for at in np.flatnonzero(char_ngrams("1"))} == {913: -1.0}
