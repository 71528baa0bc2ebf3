"""Shape: how a line is written, whatever its words: what a sentence encoder does not see and a glance does."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

_COMPANY = re.compile(
    r"(?:\b|(?<=[a-z]))(Ltd|GmbH|Inc|S\.?A|AG|KG|LLC|Co|Corp|SARL|SAS|B\.?V|S\.?p\.?A|Oy|AB|A/S|Lda|Pty|Sp)\b"
)
_POSTCODE = re.compile(r"\b[A-Z]{0,2}[0-9]{4,6}\b|\b[A-Z]{1,2}[0-9]{1,2} ?[0-9][A-Z]{2}\b")
_STREET = re.compile(
    r"(?i)\b(street|st\.|road|rd\.?|avenue|ave\.?|lane|drive|blvd|parkway|pkwy|square|way|box|plot|unit|estate|park|zone|rue"
    r"|avenue|chemin|via|viale|piazza|calle|avenida|camino|polígono|rua|ul\.|postfach|\w*str\.|\w*straße|\w*strasse|\w*weg"
    r"|\w*platz|\w*gasse|\w*gracht|\w*straat|\w*laan)(?!\w)"
)
# a postal code before its town: , 56000 Auray
_TOWN = re.compile(r",\s{0,2}(?:[A-Z]{1,2}-\s?)?[0-9]{4,5}\s?[^\W\d_a-z][^\W\d_A-Z]{2}")
# behind the number of a house, a digit misread: Nave 8, 4I500 Sevilla; Via Nazionale 2I, 43100Parma
_HOUSE_AND_TOWN = re.compile(
    r"[a-zß-ÿ.]\s{0,2}[0-9lIZS]{1,3}\s?,\s{0,2}(?:[A-Z]{1,2}-\s?)?(?=\w{0,2}[0-9]{3})[0-9lIOSZ]{5}\s?[^\W\d_a-z][^\W\d_A-Z]{2}"
)
_SHAPE_CHARS = 300


def may_be_address(text: str) -> bool:
    """Whether a text has what addresses are made of: a comma, a company's form, a street, or several words."""
    text = text[:_SHAPE_CHARS]
    return len(text.split()) >= 5 or "," in text or any(p.search(text) is not None for p in (_COMPANY, _STREET))


def names_town(text: str) -> bool:
    """Whether a postal code stands before a town, which is neither a date nor an amount."""
    return _TOWN.search(text[:_SHAPE_CHARS]) is not None


def is_at_house(text: str) -> bool:
    """Whether the number of a house stands before a postal code and its town."""
    return _HOUSE_AND_TOWN.search(text[:_SHAPE_CHARS]) is not None


def shape(text: str) -> npt.NDArray[np.float64]:
    """Twelve numbers 0..1: commas, capitals, digits, length, punctuation, a company's form, a postal code."""
    text = text[:_SHAPE_CHARS]
    words = text.split()
    lettered = [word for word in words if word[0].isalpha()]
    capitals = sum(word[0].isupper() for word in lettered) / max(len(lettered), 1)
    commas = text.count(",") + text.count("、")
    return np.array(
        [
            min(commas, 4) / 4,
            capitals,
            text[:1].islower(),
            sum(map(str.isdigit, text)) / max(len(text), 1),
            min(len(words), 10) / 10,
            text.endswith((".", "!")),
            ":" in text,
            text.isupper(),
            "%" in text,
            _COMPANY.search(text) is not None,
            _POSTCODE.search(text) is not None,
            commas >= 2 and capitals < 0.5,
        ],
        np.float64,
    )
