"""EAN-13: check digits and bars of barcodes that exist."""

from __future__ import annotations

import pytest

from edge_agent.demo import ean13

# 5901234123457: digit by digit from the code tables L (odd), G (even) and R
BARS_OF_5901234123457 = (
    "101" + "0001011" + "0100111" + "0110011" + "0010011" + "0111101" + "0011101"
    "01010" + "1100110" + "1101100" + "1000010" + "1011100" + "1001110" + "1000100" + "101"
)  # fmt: skip


@pytest.mark.parametrize("gtin", ["4006381333931", "9780201379624", "5901234123457", "036000291452", "07350053850019"])
def test_check_digit_is_the_printed_one(gtin: str) -> None:
    assert ean13.check_digit(gtin[:-1]) == gtin[-1]


def test_bars_are_the_printed_ones() -> None:
    assert ean13.bars("5901234123457") == BARS_OF_5901234123457


def test_every_code_has_95_modules_between_two_guards() -> None:
    for first in "0123456789":
        twelve = first + "12345678901"
        code = ean13.bars(twelve + ean13.check_digit(twelve))
        assert len(code) == ean13.MODULES
        assert code.startswith("101")
        assert code.endswith("101")


@pytest.mark.parametrize("gtin", ["4006381333930", "400638133393", "40063813339311", "", "400638133393x"])
def test_wrong_gtin_is_refused(gtin: str) -> None:
    with pytest.raises(ValueError, match="GTIN|EAN-13"):
        ean13.bars(gtin)
