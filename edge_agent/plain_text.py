"""Plain text: what a stranger's text, such as that of a label, may do to a terminal or a picture: nothing."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` with a space for each character that cannot be printed, those that steer a terminal among them."""
    return "".join(c if c.isprintable() else " " for c in text)
