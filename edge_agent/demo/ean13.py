"""EAN-13: the check digit and the bars of the retail barcode (GS1 General Specifications, section 5.2)."""

from __future__ import annotations

MODULES = 95  # start 3, left 6 x 7, centre 5, right 6 x 7, end 3

_ODD = ("0001101", "0011001", "0010011", "0111101", "0100011", "0110001", "0101111", "0111011", "0110111", "0001011")
# which of the six left digits are of even parity: this carries the first digit
_PARITY = ("OOOOOO", "OOEOEE", "OOEEOE", "OOEEEO", "OEOOEE", "OEEOOE", "OEEEOO", "OEOEOE", "OEOEEO", "OEEOEO")


def check_digit(digits: str) -> str:
    """The GS1 check digit for the digits before it: weights 3, 1, 3, ... from the right."""
    if not digits.isascii() or not digits.isdigit():
        raise ValueError(f"a GTIN is made of the digits 0 to 9, got {digits!r}")
    total = sum(int(digit) * (3 if i % 2 == 0 else 1) for i, digit in enumerate(reversed(digits)))
    return str(-total % 10)


def bars(gtin: str) -> str:
    """The 95 modules of an EAN-13 as `1` (bar) and `0` (space); ValueError unless 13 digits with the right check."""
    if len(gtin) != 13 or check_digit(gtin[:-1]) != gtin[-1]:
        raise ValueError(f"an EAN-13 has 13 digits of which the last is the check digit, got {gtin!r}")
    parity = _PARITY[int(gtin[0])]
    left = "".join(_ODD[int(d)] if p == "O" else _even(int(d)) for d, p in zip(gtin[1:7], parity, strict=True))
    right = "".join(_complement(_ODD[int(d)]) for d in gtin[7:])
    return f"101{left}01010{right}101"


def _complement(code: str) -> str:
    return code.translate(str.maketrans("01", "10"))


def _even(digit: int) -> str:
    return _complement(_ODD[digit])[::-1]
