"""Quantity: how much is in the package, in the unit printed, spelled one way (`1,25 kg` -> `1.25 kg`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from itertools import islice

from rapidfuzz.distance import Levenshtein

from edge_agent.stages.dates import DIGIT_OF
from edge_agent.stages.label_text import unaccented

# canonical unit -> spellings, unaccented, in lower case
_UNITS = {
    "mg": "mg milligram milligrams milligramm 毫克",
    "g": "g gr grs gm gms gram grams gramm gramme grammes gramo gramos grammi grammo gramas grama 克",
    "kg": "kg kgs kilo kilos kilogram kilograms kilogramm kilogramme 千克 公斤",
    "lb": "lb lbs pound pounds",
    "oz": "oz ozs ounce ounces",
    "ml": "ml mls millilitre millilitres milliliter milliliters mililitros mililitro 毫升",
    "cl": "cl centilitre centilitres centiliter zentiliter",
    "dl": "dl decilitre deciliter deziliter",
    "l": "l lt ltr ltrs litre litres liter liters litro litros litri 升 公升",
    "gal": "gal gallon gallons",
    "pt": "pt pint pints",
    "qt": "qt quart quarts",
    "pcs": "pc pcs piece pieces ct count counts units unit ea tablets tablet tabs caplets capsules capsule caps"
    " softgels sachets sachet bags teabags wipes sheets rolls pods bottles cans eggs pairs sticks bars cookies"
    " filmtabletten brausetabletten retardtabletten ampullen dosen pflaster"
    " gummies lozenges ampoules vials stk st stuck stucke tabletten kapseln beutel filterbeutel dragees pieces"
    " comprimes gelules sachets unites unite unidades unidad uds ud comprimidos capsulas sobres piezas pza pzas pezzi"
    " pz compresse capsule bustine stuks tabletten capsules pecas saquetas comprimidos un szt 片 粒 个 支 包 枚 袋 只"
    " 件 颗 瓶 盒 条 块 罐",
}
_UNIT_OF = {spelling: unit for unit, spellings in _UNITS.items() for spelling in spellings.split()}
# what short units are read for; they count behind a phrase, at the text's end
_BENT_UNIT_OF = {
    **dict.fromkeys(("m1", "m|", "nl", "n1", "ni"), "ml"),
    **dict.fromkeys(("el", "e1", "c1"), "cl"),
    **dict.fromkeys(("kq", "k9"), "kg"),
    **dict.fromkeys(("mq", "m9"), "mg"),
    "q": "g",
    "pes": "pcs",
    "9": "g",
    **dict.fromkeys("1i|", "l"),
}
# the metric units, masses in g and volumes in ml
BASE_UNITS: Mapping[str, tuple[str, Decimal]] = {
    "mg": ("g", Decimal("0.001")),
    "g": ("g", Decimal(1)),
    "kg": ("g", Decimal(1000)),
    "ml": ("ml", Decimal(1)),
    "cl": ("ml", Decimal(10)),
    "dl": ("ml", Decimal(100)),
    "l": ("ml", Decimal(1000)),
}
METRIC = frozenset(BASE_UNITS)
_COMPOUND = frozenset({("lb", "oz"), ("gal", "qt"), ("gal", "fl oz"), ("qt", "fl oz"), ("pt", "fl oz")})
_METRIC_OF = {"oz": ("g", 28.35), "lb": ("g", 453.6), "fl oz": ("ml", 29.57)}
NEARLY = 0.03  # of an amount: what rounding makes of 12 fl oz (355 ml)
_FRACTIONS = {"½": 0.5, "¼": 0.25, "¾": 0.75}
_IDEOGRAPH_UNITS = "|".join(sorted((u for u in _UNIT_OF if ord(u[0]) > 0x2E7F), key=lambda u: (-len(u), u)))

_REAL_NUMBER = r"(?:[0-9]{1,3}(?:[ ,.'][0-9]{3}){1,2}(?:[.,][0-9]{1,2})?|[0-9]{1,6}(?:[.,][0-9]{1,3})?)"
_LIKELY_DIGIT = "[0-9OoDQIlZASBTG|]"
_LIKELY_NUMBER = rf"{_LIKELY_DIGIT}{{1,5}}(?:[.,]{_LIKELY_DIGIT}{{1,3}})?"
_ALONE = r"(?<![\w.,/-])"
# the space between them lost: Bag of500g; a digit alone may be one of the word's letters: Vani1le
_BEHIND_A_WORD = r"(?<=[a-zß-ÿ]{2})(?=[0-9]{2}|[0-9](?:\s|[kK]))"
_BEHIND_A_DOT = r"(?<=\.)(?<!\w\.\w\.)(?=[^.,]{1,5}[.,])"  # which was a colon: no number has two: Vol.0.75 L
_NO_PIECE = r"(?<!\b[0-9][.,]\s)(?<!\b[0-9]{2}[.,]\s)"  # in `1. 25 kg` 25 is a piece of the number
_UNIT = rf"(?P<unit>[fF][lLI1|]\.?\s?[oO][zZ]|{_IDEOGRAPH_UNITS}|[^\W\d_]{{1,16}})"


def _pattern(number: str, behind: str, ahead: str = _ALONE, unit: str = _UNIT, digit: str = "[0-9]") -> re.Pattern[str]:
    return re.compile(
        rf"{ahead}{_NO_PIECE}(?:(?P<count>{digit}{{1,4}})\s?[x×X*]\s?)?(?P<number>{number})?(?P<part>[½¼¾])?\s{{0,2}}{unit}{behind}"
    )


# a strength may be glued to it: L13.5%, Ll3,5%
_UNIT_S_END = r"(?:(?!\w)|(?<![LlI|][lI|])(?=[0-9][0-9.,]{0,4}\s?%)|(?=[lI|][0-9]))"
_BENT_UNIT = r"(?P<unit>[mn][lL1iI|]|[kKm][q9]|q|[ce][lL1]|pes)"
_STRICT = _pattern(_REAL_NUMBER, r"(?!\w)", rf"{_ALONE}(?=[0-9½¼¾])")
_TEXT_S_END = r"(?=\W*$)"
_TEXT_S_BEGIN = r"\A[\s:.=-]*"
_BENT_UNITS = (
    *(
        _pattern(_LIKELY_NUMBER, r"(?=\s?e?\W*$)", ahead, _BENT_UNIT, _LIKELY_DIGIT)
        for ahead in (_ALONE, _BEHIND_A_WORD)
    ),
    _pattern(_LIKELY_NUMBER, _TEXT_S_END, _TEXT_S_BEGIN, r"(?<=[05OoD] )(?P<unit>9)"),  # 250 9, 0,75 I
    _pattern(_LIKELY_NUMBER, _TEXT_S_END, _TEXT_S_BEGIN, r"(?:(?<=[.,][0-9] )|(?<=[.,][0-9]{2} ))(?P<unit>[1I|])"),
)
# Behind a phrase, the surer ones first.
_LOOSE = (
    _pattern(_LIKELY_NUMBER, _UNIT_S_END, digit=_LIKELY_DIGIT),
    _pattern(_REAL_NUMBER, _UNIT_S_END, rf"{_BEHIND_A_DOT}(?=[0-9])"),
    _pattern(_REAL_NUMBER, _TEXT_S_END, _BEHIND_A_WORD),
    _pattern(_REAL_NUMBER, r"(?!\w)", unit=r"(?P<unit>[^\W\d_]{2,12}[01|][^\W\d_]{0,8})"),  # 20 Beute1, 100 tab1ets
    *_BENT_UNITS,
)
_PIECE_BEFORE = re.compile(r"(?<!\w)[0-9]{1,3}[.,]?\s{1,2}$")  # of the number: (29 8 g), 0,7 5 l
_LETTERED = re.compile(r"\s*[:.=]?\s*([SIZB][SIZBOl]{0,2})\s?(L|ml|mL|kg|g)")
_LETTER = re.compile(r"[^\W\dI_]")
_BARE_COUNT = re.compile(r"\s*[:.=]?\s*([0-9]{1,6}|[0-9]{1,3}(?:[.,' ][0-9]{3})+)\s*")  # nobody counts to thousandths
_STRENGTH = re.compile(r"[0-9l|]{1,3}(?:[.,][0-9]{1,2})?\s?%(?:\s?v[oa0][l1|i]\b)?", re.IGNORECASE)
_ESTIMATED = frozenset("eEcC")  # what is read for the estimated sign


@dataclass(frozen=True)
class Quantity:
    """`value` such as `500 g`, `4 x 125 g`, `100 pcs`, found at `text[start:end]`."""

    value: str
    unit: str
    start: int
    end: int
    flags: tuple[str, ...] = ()
    alternative: str | None = None


def find_quantities(text: str, *, keyed: bool) -> tuple[Quantity, ...]:
    """Quantities in a clean text. `keyed`: behind a phrase such as NET WT, where misread digits are mended."""
    found = [q for match in _STRICT.finditer(text) if (q := _quantity(match, repaired=False)) is not None]
    ways = iter(_LOOSE if keyed else ())
    while not found and (way := next(ways, None)) is not None:
        found = [q for match in way.finditer(text) if (q := _quantity(match, repaired=True)) is not None]
    if keyed and len(found) == 1:
        found += _same_in_metric(text, found[0])
    return tuple(_compounds(text, [_with_piece_before(text, q) for q in found] if keyed else found))


def _same_in_metric(text: str, printed: Quantity) -> list[Quantity]:
    """The amount that stands misread behind another in a unit that is not metric, and agrees with it: 16 oz (4S4 g)."""
    matches = (match for way in _LOOSE for match in way.finditer(text, printed.end))
    behind = (q for match in matches if (q := _quantity(match, repaired=True)) is not None)
    return list(islice((q for q in behind if _agree(printed, q)), 1))


def _agree(printed: Quantity, metric: Quantity) -> bool:
    if printed.unit not in _METRIC_OF or metric.unit not in BASE_UNITS or " x " in printed.value + metric.value:
        return False
    (unit, factor), (base, scale) = _METRIC_OF[printed.unit], BASE_UNITS[metric.unit]
    wanted, amount = float(printed.value.split()[0]) * factor, float(metric.value.split()[0]) * float(scale)
    return unit == base and abs(amount - wanted) <= NEARLY * wanted


def _with_piece_before(text: str, found: Quantity) -> Quantity:
    lost = _PIECE_BEFORE.search(text[max(0, found.start - 8) : found.start]) is not None
    return replace(found, flags=(*found.flags, "incomplete")) if lost else found


def _compounds(text: str, found: list[Quantity]) -> Iterator[Quantity]:
    """`2 lb 3 oz` is one amount, of 35 oz. What a pint and 0.9 fl oz are together depends on whose pint it is."""
    last: Quantity | None = None
    for quantity in found:
        together = None if last is None else (last.unit, quantity.unit)
        if last is None or together not in _COMPOUND or text[last.end : quantity.start].strip(" .,&"):
            if last is not None:
                yield last
            last = quantity
        elif together == ("lb", "oz") and not (last.flags or quantity.flags or " x " in last.value):
            ounces = 16 * float(last.value.split()[0]) + float(quantity.value.split()[0])
            last = Quantity(f"{_plain(ounces)} oz", "oz", last.start, quantity.end)
        else:
            last = replace(last, end=quantity.end, flags=(*last.flags, "incomplete"))
    if last is not None:
        yield last


def only_quantity(text: str) -> Quantity | None:
    """The quantity that is all a text says (`500 g e`, `0,7 l 40 % vol`, `16 oz (454 g)`), the metric one of two."""
    found = find_quantities(text, keyed=True)
    if not found or not all(_LETTER.search(text, q.start, q.end) for q in found):
        return None
    beside = list(text)
    for quantity in found:
        beside[quantity.start : quantity.end] = " " * (quantity.end - quantity.start)
    said = [char for char in _STRENGTH.sub("", "".join(beside)) if char.isalnum()]
    return best_quantity(found) if not said or (len(said) == 1 and said[0] in _ESTIMATED) else None


def best_quantity(found: tuple[Quantity, ...]) -> Quantity:
    """The first in a metric unit, else the first: `16 oz (454 g)` is 454 g."""
    return next((q for q in found if q.unit in METRIC), found[0])


def bare_count(text: str) -> Quantity | None:
    """A number alone behind a phrase that counts (QTY: 24): pieces, flagged `unit_assumed`; or one of letters alone
    before a unit (Volume SL), flagged `repaired`."""
    if (letters := _LETTERED.fullmatch(text)) is not None:
        unit, _ = _unit(letters[2], bent=False)
        count = int(letters[1].translate(DIGIT_OF))
        return Quantity(f"{count} {unit}", str(unit), letters.start(1), letters.end(), ("repaired",)) if count else None
    match = _BARE_COUNT.fullmatch(text)
    if match is None:
        return None
    count = int("".join(filter(str.isdigit, match[1])))
    return Quantity(f"{count} pcs", "pcs", match.start(1), match.end(1), ("unit_assumed",))


def _quantity(match: re.Match[str], *, repaired: bool) -> Quantity | None:
    number, part = match["number"], match["part"]
    if not (number or part):
        return None
    unit, bent = _unit(_without_estimated(match), bent=match.re in _BENT_UNITS)
    if unit is None:
        return None
    start = match.end() - len(match[0].lstrip(" :.=-"))
    before, behind = match.string[max(0, start - 1) : start], match.string[match.end() : match.end() + 1]
    # 0.75 Ll3,5%, bagS500g: where the amount begins or ends is a guess
    glued = repaired and (behind.isalnum() or before == "." or before.translate(DIGIT_OF).isdigit())
    digits = f"{match['count'] or ''}{number or ''}".replace(",", "").replace(".", "")
    if repaired and digits and not digits.replace(" ", "").replace("'", "").isdigit():
        if not any(map(str.isdigit, digits)):
            return None
        bent = True
    number, count = (number or "0").translate(DIGIT_OF), (match["count"] or "").translate(DIGIT_OF)
    readings = [] if _is_cut(number, part) else list(_readings(number))
    if not readings:
        return None
    flags: tuple[str, ...] = ("repaired",) if bent or glued else ()
    amounts = [_plain(reading + _FRACTIONS.get(part, 0.0)) for reading in readings]
    prefix = f"{int(count)} x " if count else ""
    values = [f"{prefix}{amount} {unit}" for amount in amounts]
    if len(values) > 1:
        flags += ("ambiguous",)
    return Quantity(values[0], unit, start, match.end(), flags, values[1] if len(values) > 1 else None)


def _is_cut(number: str, part: str | None) -> bool:
    """Whether the head of a number must be lost: 00 g, 001 l; nobody sells nothing."""
    return (number[0] == "0" and number[1:2].isdigit()) or (not part and not number.strip("0.,"))


def _without_estimated(match: re.Match[str]) -> str:
    """The unit as seen, without the estimated sign that is glued to it: `500ge`, `330 mle`; but `12 le` is French."""
    seen = match["unit"]
    glued = match.string[match.start("unit") - 1].isdigit() or seen[0] not in "lL"
    return seen[:-1] if glued and seen[-1] in "eE" and seen[:-1].lower() in METRIC else seen


def _readings(number: str) -> Iterator[float]:
    """The amounts a printed number can mean, the likeliest first: `1,25`, `1 000`, `1.000` (one or a thousand)."""
    seps = [c for c in number if not c.isdigit()]
    groups = re.split(r"[ ,.']", number)
    if not seps:
        yield float(number)
    elif (
        len(seps) == 1 and seps[0] in ",." and (len(groups[1]) != 3 or groups[0].startswith("0") or len(groups[0]) > 3)
    ):
        yield float(f"{groups[0]}.{groups[1]}")
    elif len(seps) == 1 and len(groups[1]) == 3:
        yield float("".join(groups))
        if seps[0] in ",.":
            yield float(f"{groups[0]}.{groups[1]}")
    elif len(seps) == 2 and len(groups[1]) == 3 and seps[0] != seps[1]:
        yield float(f"{groups[0]}{groups[1]}.{groups[2]}")
    elif len(seps) == 2 and len(groups[1]) == len(groups[2]) == 3:
        yield float("".join(groups))


@lru_cache(maxsize=1024)
def _unit(seen: str, *, bent: bool) -> tuple[str | None, bool]:
    """The canonical unit and whether a letter had to be mended: in words of five letters and more, and in what may be
    a `bent` short unit."""
    word = unaccented(seen)
    if re.fullmatch(r"f[l1i|]\.?\s?oz", word):
        return "fl oz", False
    if word in _UNIT_OF:
        return _UNIT_OF[word], False
    if word == "mi":  # mI, a small L read as a capital i
        return ("ml", True) if seen == "mI" else (None, False)
    if bent and word in _BENT_UNIT_OF:
        return _BENT_UNIT_OF[word], True
    near = {_UNIT_OF[u] for u in _UNIT_OF if len(u) >= 5 and Levenshtein.distance(u, word, score_cutoff=1) <= 1}
    return (near.pop(), True) if len(word) >= 5 and len(near) == 1 else (None, False)


def _plain(amount: float) -> str:
    return f"{amount:.4f}".rstrip("0").rstrip(".")
