"""GS1 contents, and the traps of the library that splits them."""

from __future__ import annotations

import pytest

from edge_agent.stages.gs1 import Gs1Element, elements_of


def pairs(message: str) -> list[tuple[str, str]] | None:
    found = elements_of(message)
    return None if found is None else [(element.ai, element.content) for element in found]


def test_elements_are_split_at_their_lengths_and_separators() -> None:
    assert pairs("010950600013435210AB\x1d17270831") == [("01", "09506000134352"), ("10", "AB"), ("17", "270831")]
    assert pairs("\x1d3103001250\x1d21A77\x1d") == [("3103", "001250"), ("21", "A77")]


def test_a_wrong_check_digit_is_told() -> None:
    assert elements_of("010950600013435310A") == (
        Gs1Element("01", "09506000134353", sound=False),
        Gs1Element("10", "A"),
    )
    assert elements_of("00340123450000000018") == (Gs1Element("00", "340123450000000018", sound=False),)


@pytest.mark.parametrize(
    "message",
    ["", "10", "XX0109506000134352", "0109506000134352XX", "17271332", "17270231", "0109506", "10A" * 400, "LOT A123"],
)
def test_what_is_not_gs1_to_its_end_is_none(message: str) -> None:
    assert elements_of(message) is None
