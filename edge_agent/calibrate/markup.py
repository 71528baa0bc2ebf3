"""Markup: HTML and SVG built from elements, so that text from outside is escaped wherever it goes."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Mapping

MOST_CHARS = 600  # of one text from outside
VOID = frozenset({"br", "img", "link", "meta"})
# control characters, format characters (they turn the direction of what follows), lone surrogates, separators
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
NOTHING: Mapping[str, str] = {}


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def element(name: str, attributes: Mapping[str, str] = NOTHING, *children: str) -> Markup:
    """One element; children and values of attributes that are no Markup are text, and escaped."""
    within = "".join(f' {key}="{joined(value)}"' for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{within}>")
    return Markup(f"<{name}{within}>{joined(*children)}</{name}>")


def joined(*parts: str) -> Markup:
    """The parts one after the other, escaped where they are no Markup."""
    return Markup("".join(part if isinstance(part, Markup) else text(part) for part in parts))


def text(value: str) -> Markup:
    """Text as markup that shows every character of it, up to MOST_CHARS."""
    return Markup(html.escape(visible(value), quote=True))


def visible(value: str) -> str:
    """The text with what cannot be seen written out as \\u202e, cut after MOST_CHARS."""
    shown = value if len(value) <= MOST_CHARS else f"{value[:MOST_CHARS]}…"
    return "".join(written_out(char) if unicodedata.category(char) in INVISIBLE else char for char in shown)


def written_out(char: str) -> str:
    """A character as its number."""
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
