"""What rules half know of a text, and what OCR makes of an example."""

from __future__ import annotations

from rapidfuzz.distance import Levenshtein

from edge_agent.stages.field_prototypes import PROTOTYPES
from edge_agent.stages.field_values import ReadRules
from edge_agent.stages.key_phrases import lexicon_table
from edge_agent.stages.misreadings import misread
from edge_agent.stages.rule_evidence import rule_evidence

NAMES = ("lot", "expiry_date", "weight_volume")


def evidence(text: str) -> list[float]:
    return [round(float(n), 2) for n in rule_evidence(text, NAMES, ReadRules(), lexicon_table())]


def test_a_phrase_and_its_value_are_told_apart() -> None:
    assert evidence("LOT A77") == [1, 0, 0, 1, 0, 0]
    assert evidence("EXP") == [0, 1, 0, 0, 0, 0]
    assert evidence("500 g") == [0, 0, 0, 0, 0, 0.9]
    assert evidence("Roasted Coffee") == [0] * 6


def test_a_bent_phrase_counts_for_less() -> None:
    assert 0 < evidence("Bafch Code: A77")[0] < 1


def test_any_text_has_evidence_of_one_length() -> None:
    for text in ("", " ", "x" * 5000, "\ud83d\x00", "批号 A3321"):
        assert len(evidence(text)) == 6


def test_misreadings_are_the_same_each_time_and_near_the_text() -> None:
    phrases = [phrase for phrases in PROTOTYPES.values() for phrase in phrases]
    shares = [Levenshtein.distance(p, misread(p)) / len(p) for p in phrases]
    assert [misread(p) for p in phrases] == [misread(p) for p in phrases]
    assert 0.04 < sum(shares) / len(shares) < 0.14
    assert misread("") == ""
