from __future__ import annotations

import pytest

from edge_agent.stages.spelling import Spelling

COMMON = "the of to until after before best keeps fresh cleaning unplug serious injury may result from improper use"
WORDS = Spelling(
    {word: 1000 + 50 * rank for rank, word in enumerate(COMMON.split())}, ["Genießbar bis", "Fertigungslos"]
)


@pytest.mark.parametrize(
    ("seen", "meant"),
    [
        ("Keepsuntil", "keeps until"),
        ("Unplugbeforc clcaning", "unplug before cleaning"),
        ("Seri0us injvry", "serious injury"),
        ("impraper use", "improper use"),
        ("Fertigunqslos", "fertigungslos"),
        ("clening", "cleaning"),
    ],
)
def test_glued_and_bent_words_are_mended(seen: str, meant: str) -> None:
    assert WORDS.mended(seen) == meant


@pytest.mark.parametrize(
    "text",
    ["Best before", "Genießbar bis", "A0B1O8 2027", "Xylophone", "team@bestuse.org", "www.keepsfresh.com", "", "use"],
)
def test_known_words_codes_addresses_and_what_nobody_knows_stay(text: str) -> None:
    assert WORDS.mended(text) == text


def test_nothing_known_nothing_mended() -> None:
    assert Spelling({}, []).mended("Keepsuntil") == "Keepsuntil"


def test_long_runs_are_left_alone() -> None:
    assert WORDS.mended("keeps" * 1000) == "keeps" * 1000
