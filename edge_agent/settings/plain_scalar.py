"""Plain scalars: what an unquoted word or number of YAML is, and which are traps."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from edge_agent.settings.strict_text import MAX_DIGITS

_BOOLEAN_WORD = re.compile(r"y|yes|n|no|on|off", re.IGNORECASE)
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_CONSTANTS: Mapping[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_TRAPS = (
    (re.compile(r"[-+]?\.(?:inf|nan)", re.IGNORECASE), "is not a finite number; write a number"),
    (
        re.compile(r"[-+]?[0-9][0-9_]*(?::[0-9_]+)+(?:\.[0-9_]*)?"),
        "is a number in base 60 to YAML 1.1; put it in quotes",
    ),
    (
        re.compile(r"[-+]?0(?:[xX][0-9a-fA-F_]+|[oO][0-7_]+|[bB][01_]+)"),
        "is a hexadecimal, octal or binary number to some YAML; put it in quotes, or write a decimal number",
    ),
    (
        re.compile(r"[-+]?[0-9.]*[0-9]_[0-9_.]*(?:[eE][-+]?[0-9]+)?"),
        "is a number to YAML 1.1, which ignores the underscores; put it in quotes, or write the digits alone",
    ),
    (
        re.compile(r"[-+]?0[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?"),
        "has a leading zero, which makes it octal to YAML 1.1; put it in quotes, or leave the zeros out",
    ),
)


class Trap(Exception):
    """A plain scalar that is not what it looks like; the text says what to do."""


def plain_scalar(text: str, tag: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar. Raises Trap. `tag` is what YAML 1.1 takes it for."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _BOOLEAN_WORD.fullmatch(text):
        raise Trap("is true or false to YAML 1.1; put it in quotes, or write true or false")
    for pattern, advice in _TRAPS:
        if pattern.fullmatch(text):
            raise Trap(advice)
    if _WHOLE.fullmatch(text):
        if len(text.lstrip("+-")) > MAX_DIGITS:
            raise Trap(f"has more than {MAX_DIGITS} digits; put it in quotes")
        return int(text)
    if _NUMBER.fullmatch(text):
        number = float(text)
        if not math.isfinite(number):
            raise Trap("is too large a number; write a smaller one, or put it in quotes")
        return number
    if tag == "tag:yaml.org,2002:timestamp":
        raise Trap("is a date to YAML 1.1; put it in quotes")
    if tag != "tag:yaml.org,2002:str":
        raise Trap("has a meaning of its own in YAML 1.1; put it in quotes")
    return text
