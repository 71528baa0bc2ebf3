"""Months: their names on labels, and which month a misread name spells."""

from __future__ import annotations

from functools import lru_cache

from rapidfuzz.distance import Levenshtein

from edge_agent.stages.label_text import skeleton, unaccented

_MONTHS = (
    "jan january januar janv janvier ene enero gen gennaio januari janeiro janner",
    "feb february februar fev fevr fevrier febrero febbraio februari fevereiro feber",
    "mar march marz mrz mars marzo mrt maart marco marts",
    "apr april avr avril abr abril aprile",
    "may mai mayo mag maggio mei maio maj",
    "jun june juni juin junio giu giugno junho",
    "jul july juli juil juillet julio lug luglio julho",
    "aug august aout ago agosto augustus augusti",
    "sep sept september septembre septiembre set sett settembre setembro",
    "oct october okt oktober octobre octubre ott ottobre out outubro",
    "nov november novembre noviembre novembro",
    "dec december dez dezember decembre dic diciembre dicembre dezembro",
)
_MONTH_OF = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
MONTH_NAMES = frozenset(_MONTH_OF)  # unaccented, in lower case


@lru_cache(maxsize=1)
def _folded() -> dict[str, int]:
    return {skeleton(month).chars: number for month, number in _MONTH_OF.items()}


@lru_cache(maxsize=1024)
def month_number(name: str) -> int | None:
    """The month that `name` spells in one of the languages known, letters that OCR swaps allowed; else None.

    A short name must fit letter by letter: one letter of edit distance would make `EXP` a `SEP`.
    """
    plain = unaccented(name)
    if plain in _MONTH_OF:
        return _MONTH_OF[plain]
    bones = skeleton(name).chars
    folded = _folded()
    if bones in folded:
        return folded[bones]
    if len(bones) < 5:
        return None
    near = {number for month, number in folded.items() if len(month) >= 4 and Levenshtein.distance(month, bones) <= 1}
    return near.pop() if len(near) == 1 else None
