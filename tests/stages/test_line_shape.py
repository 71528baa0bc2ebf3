from __future__ import annotations

import pytest

from edge_agent.stages.line_shape import is_at_house, names_town


@pytest.mark.parametrize(
    "text", ["Conservas Ría, Polígono Industrial 5, 36600 Vilagarcía", ", 14000Caen", "Weg 5, D-20095 Hamburg"]
)
def test_postal_code_before_a_town_is_seen(text: str) -> None:
    assert names_town(text)


@pytest.mark.parametrize("text", [": 14000 Caen", ", 2027 08", ", 250 Gram", ", 14000 pcs", ", 12345 LOT", "Paris", ""])
def test_other_numbers_name_no_town(text: str) -> None:
    assert not names_town(text)


@pytest.mark.parametrize(
    "text", ["Alfo, Via Nazionale 2I, 43100Parma", "Nave8,4I500 Sevilla", "Weg 5, D-20095 Hamburg"]
)
def test_number_of_a_house_before_a_town_is_seen(text: str) -> None:
    assert is_at_house(text)


@pytest.mark.parametrize("text", ["Omega 3, 1000 Kapseln", "Vitamin D3, 20000 Einheiten", "Ring 3, 20000 g", ""])
def test_numbers_of_products_are_no_house(text: str) -> None:
    assert not is_at_house(text)
