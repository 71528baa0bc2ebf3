from __future__ import annotations

import pytest

from edge_agent.stages.line_shape import names_town


@pytest.mark.parametrize(
    "text", ["Conservas Ría, Polígono Industrial 5, 36600 Vilagarcía", ", 14000Caen", "Weg 5, D-20095 Hamburg"]
)
def test_postal_code_before_a_town_is_seen(text: str) -> None:
    assert names_town(text)


@pytest.mark.parametrize("text", [": 14000 Caen", ", 2027 08", ", 250 Gram", ", 14000 pcs", ", 12345 LOT", "Paris", ""])
def test_other_numbers_name_no_town(text: str) -> None:
    assert not names_town(text)
