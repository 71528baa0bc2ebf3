"""KeyPhrase: where a line names a field (`BEST BEFORE`, `Charge`, `S/N`), also when OCR glued, split or bent it.

Three ways of finding, surest first: the phrase's skeleton in the table; one letter that OCR takes for another
(short phrases, table made once); a small edit distance (long phrases, rapidfuzz).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from edge_agent.stages.bent_words import BentWords
from edge_agent.stages.label_text import skeleton, unaccented
from edge_agent.stages.lexicon import LEXICON, NOT_KEYS, OTHER, WEAK_OTHER
from edge_agent.stages.months import MONTH_NAMES
from edge_agent.stages.phrase_pieces import PhrasePieces

# Fields whose phrase introduces a checked value: it may stand anywhere in a line, for the value proves it.
VALUE_FIELDS = frozenset(
    {"expiry_date", "manufacture_date", "lot", "serial_number", "weight_volume", "barcode_digits", "contact"}
)
MAX_KEY_CHARS = 48  # no phrase of the lexicon has a longer skeleton
MAX_KEY_WORDS = 12
MAX_FUZZY_CHARS = 300  # of a text: a longer one is no label line, and fuzzy search is not linear in cheap steps
PIECE_LETTERS, BLURRED_PIECE_LETTERS = 4, 6  # as many as the shortest piece of a phrase has, by its allowed errors
ANYWHERE_CHARS = 12  # a phrase this long may stand mid-sentence; shorter ones of wordy fields start one

_LATIN = re.compile(r"[^\W\d_]+|[0-9]+")
_WEAK_TAIL = re.compile(r"\s*(?:[:#.]|[^\s0-9]{0,12}[0-9]|$)")
# Letters OCR takes for one another beyond the skeleton's own folding, in skeleton letters.
_LOOKALIKES = {
    "a": "o",
    "b": "hl",
    "c": "eo",
    "d": "o",
    "e": "cfo",
    "f": "etl",
    "g": "cq",
    "h": "nb",
    "k": "x",
    "l": "tf",
    "m": "n",
    "n": "rmhlu",
    "o": "aced",
    "p": "f",
    "q": "o",
    "r": "nt",
    "t": "fl",
    "u": "vn",
    "v": "uy",
    "w": "v",
    "x": "k",
    "y": "v",
}
_BENT_END = re.compile(r"[A-Z]{2,6}[0-9][\s:.]{1,2}[0-9]")  # MH0 24.12.2027: a digit that ends a word before a number
# One letter for all of an outline: round ones, those of stems, slim ones.
_OUTLINES = str.maketrans("aecdq" + "rhuvmw" + "tfi", "ooooo" + "nnnnnn" + "lll")
# Three letters are little to go by: only these are known bent, the others would meet too many real words.
BENDABLE = frozenset(skeleton(word).chars for word in "exp lot mfg mfd mhd bbe prd pkd dlc tht qty".split())
_MONTH_BEHIND = re.compile(r"(?i)(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)$")


@dataclass(frozen=True)
class KeyPhrase:
    """A phrase found at `text[start:end]`; `errors` counts the letters that differ from the lexicon's spelling.

    What is not `sure` names its value only together with it (half_keys).
    """

    name: str
    start: int
    end: int
    chars: int
    errors: int
    sure: bool = True

    @property
    def weight(self) -> int:
        """Longer wins; an error costs as much as two letters."""
        return self.chars - 2 * self.errors


@dataclass(frozen=True, eq=False)
class KeyTable:
    """The phrases that are looked for, made ready once: `value_fields` are those whose value proves the phrase."""

    value_fields: frozenset[str]
    exact: Mapping[str, str]
    bent: Mapping[str, str]
    long_phrases: tuple[str, ...]
    limits: npt.NDArray[np.int16]  # allowed errors of each long phrase
    blurred: tuple[str, ...]  # the long phrases as blurred_bones gives them
    blurred_limits: npt.NDArray[np.int16]  # allowed errors of each of these; -1: it is too short to be read so
    by_pieces: PhrasePieces  # of the long phrases
    by_blurred_pieces: PhrasePieces
    pieces: Mapping[str, str]  # the fields of the phrases that half a key may be a piece of
    bent_pieces: BentWords  # these phrases
    ideographs: re.Pattern[str]
    weak: frozenset[str]
    refused: frozenset[str]


def find_key_phrases(text: str, table: KeyTable | None = None) -> tuple[KeyPhrase, ...]:
    """Phrases in `text`, left to right, without overlap; `text` is clean (label_text.label_text).

    `table`: the lexicon's with those of the plant (`key_table`); None: the lexicon's alone.
    """
    table = table or lexicon_table()
    found = list(_ideograph_phrases(text, table))
    words = words_of(text)
    windows = _windows(*words)
    found += [hit for window in windows if (hit := _looked_up(text, window, table)) is not None]
    if len(text) <= MAX_FUZZY_CHARS:
        found += _fuzzy(text, "".join(words[2]), [w for w in windows if w[2] not in table.exact], table)
    return _without_overlap(found)


def allowed_errors(chars: int) -> int:
    """How many letters of a phrase with `chars` letters may differ: about one in six, none below eight letters.

    Shorter phrases take the stricter road of look-alike letters.
    """
    return 0 if chars < 8 else min(4, chars // 6)


def blurred_bones(chars: str) -> str:
    """A skeleton with letters of one outline made one: a long word of many misread letters keeps its outline."""
    return chars.translate(_OUTLINES)


def _blurred_errors(chars: int) -> int:
    """How many letters of a phrase's outline may differ; of a short one the outline says too little."""
    return -1 if chars < 9 else chars // 12


def _windows(starts: list[int], ends: list[int], bones: list[str]) -> list[tuple[int, int, str]]:
    """Every run of whole words, (start, end, skeleton), short enough to be a phrase."""
    windows = []
    for first, start in enumerate(starts):
        chars = ""
        for last in range(first, min(first + MAX_KEY_WORDS, len(starts))):
            chars += bones[last]
            if len(chars) > MAX_KEY_CHARS:
                break
            if len(chars) >= 2:
                windows.append((start, ends[last], chars))
    return windows


def words_of(text: str) -> tuple[list[int], list[int], list[str]]:
    """Words cut where a phrase may begin or end: at spaces and punctuation, between letters and a glued number,
    before a capital after a small letter. A digit inside a word (`Vani1le`, `L0T`) does not cut it."""
    starts: list[int] = []
    ends: list[int] = []
    for match in _LATIN.finditer(text):
        start, end = match.span()
        for cut in _capital_cuts(text, start, end):
            starts.append(start)
            ends.append(cut)
            start = cut
    return starts, ends, [skeleton(text[a:b]).chars for a, b in zip(starts, ends, strict=True)]


def _capital_cuts(text: str, start: int, end: int) -> Iterable[int]:
    if end - start > 4 and re.match(r"\s?[0-9]", text[end : end + 2]) and _MONTH_BEHIND.search(text[start:end]):
        yield end - 3  # EXPAUG2027
        return (yield end)
    for at in range(start + 1, end):
        capital = text[at].isupper()
        if capital and text[at - 1].islower():
            yield at
        elif capital and text[at + 1 : at + 2].isdigit() and at + 1 == end and at - start >= 2:
            yield at  # LOTL2345: the letter belongs to the code
    yield end


def _looked_up(text: str, window: tuple[int, int, str], table: KeyTable) -> KeyPhrase | None:
    start, end, chars = window
    errors = 0
    name = table.exact.get(chars)
    if name is None:
        name, errors = table.bent.get(chars), 1
    seen = text[start:end]
    if name is None or not _mostly_letters(seen) or not _stands_free(text, end, chars):
        return _weak_other(text, window, table)
    if not _begins(text, start, end, errors) or unaccented(seen) in MONTH_NAMES:
        return None
    if errors and (seen.casefold() in table.refused or not (len(chars) > 4 or seen.isalpha())):
        return None
    return _admitted(text, KeyPhrase(name, start, end, len(chars), errors), table)


def _weak_other(text: str, window: tuple[int, int, str], table: KeyTable) -> KeyPhrase | None:
    start, end, chars = window
    if chars not in table.weak or text[:start].strip() or not _WEAK_TAIL.match(text, end):
        return None
    return KeyPhrase(OTHER, start, end, len(chars), 0)


def _fuzzy(text: str, bones: str, windows: list[tuple[int, int, str]], table: KeyTable) -> list[KeyPhrase]:
    """Long phrases within their allowed edit distance; `bones` is the skeleton of all words together."""
    held = table.by_pieces.held_by(bones) | table.by_blurred_pieces.held_by(blurred_bones(bones))
    windows = [w for w in windows if len(w[2]) >= 7 and _mostly_letters(text[w[0] : w[1]])] if held else []
    if not windows:
        return []
    columns = np.array(sorted(held))
    distances = _distances([chars for _, _, chars in windows], [table.long_phrases[at] for at in columns])
    blurred = _distances([blurred_bones(chars) for _, _, chars in windows], [table.blurred[at] for at in columns])
    near = (distances <= table.limits[columns]) | (blurred <= table.blurred_limits[columns])
    found = []
    for row, column in zip(*np.nonzero(near), strict=True):
        start, end, _ = windows[row]
        phrase = table.long_phrases[columns[column]]
        if text[start:end].casefold() in table.refused or not _begins(text, start, end, errors=1):
            continue
        errors = min(int(distances[row, column]), 1 + len(phrase) // 4)
        key = KeyPhrase(table.exact[phrase], start, end, len(phrase), errors)
        if (admitted := _admitted(text, key, table)) is not None:
            found.append(admitted)
    return found


def _distances(seen: Sequence[str], phrases: Sequence[str]) -> npt.NDArray[np.uint8]:
    """(seen, phrases): edit distances, those above 4 as 5."""
    return process.cdist(seen, phrases, scorer=Levenshtein.distance, score_cutoff=4, dtype=np.uint8)


def _ideograph_phrases(text: str, table: KeyTable) -> Iterable[KeyPhrase]:
    """Phrases of scripts written without spaces: they are looked for anywhere."""
    for match in table.ideographs.finditer(text):
        yield KeyPhrase(table.exact[skeleton(match.group()).chars], *match.span(), 4 * len(match.group()), 0)


def _admitted(text: str, key: KeyPhrase, table: KeyTable) -> KeyPhrase | None:
    """A wordy field's short phrase counts only where a sentence starts: `contains` mid-sentence names nothing. Any
    phrase that says what a line is not counts there or behind a value: powder `for injection` may well be a product."""
    if key.name in table.value_fields or (key.name != OTHER and key.weight >= ANYWHERE_CHARS):
        return key
    if key.name == OTHER and len(skeleton(text[key.start : key.end]).chars) < key.chars < ANYWHERE_CHARS:
        return None  # `sterile` is no `sterile R` of which a letter is lost
    before = text[: key.start].rstrip()
    starts = not before or before[-1] in ".!;:|/•*)" or (before[-1].isdigit() and key.weight >= ANYWHERE_CHARS)
    return key if starts or _is_other_weight(text, key, table, before) else None


def _is_other_weight(text: str, key: KeyPhrase, table: KeyTable, before: str) -> bool:
    """Whether it says of a weight that it is not the net one, anywhere: the `wt` of `NET WT 500 g GROSS WT 600 g` is
    no key of its own. Behind a digit its head may be a unit: `500 g WT`."""
    words = text[key.start : key.end].split()
    of_weight = any(table.exact.get(skeleton(word).chars) == "weight_volume" for word in words)
    may_be_unit = before[-1].isdigit() and len(words[0]) <= 2
    return of_weight and key.name == OTHER and key.errors == 0 and not may_be_unit


def _stands_free(text: str, end: int, chars: str) -> bool:
    """Short phrases must not be the head of a word."""
    if len(chars) > 4:
        return True
    after = text[end : end + 1]
    return not after or not after.isalpha() or after.isupper()


def _begins(text: str, start: int, end: int, errors: int) -> bool:
    """Whether a phrase may begin here: at a word's beginning, at a capital after a small letter, or, when it is
    spelled right and has no digit, behind a number (`A123EXP08/26`): `B1O` inside a code is no bent `BNO`."""
    if errors and text[end - 1].isdigit() and not _BENT_END.match(text, start):
        return False  # in EXPo1 FEB 2027 the day is no misread letter
    before = text[start - 1 : start] if start else ""
    if not before or not before.isalnum() or (before.islower() and text[start].isupper()) or ord(before) > 0x2E7F:
        return True
    return errors == 0 and end - start >= 3 and text[start:end].isalpha()


def _mostly_letters(seen: str) -> bool:
    letters = sum(map(str.isalpha, seen))
    return letters > 0 and letters > sum(map(str.isdigit, seen))


def _without_overlap(found: list[KeyPhrase]) -> tuple[KeyPhrase, ...]:
    chosen: list[KeyPhrase] = []
    for key in sorted(found, key=lambda k: (-k.weight, k.start, k.name)):
        if all(key.end <= other.start or key.start >= other.end for other in chosen):
            chosen.append(key)
    return tuple(sorted(chosen, key=lambda k: k.start))


@lru_cache(maxsize=1)
def lexicon_table() -> KeyTable:
    """The table of the phrases that come along."""
    return key_table({}, VALUE_FIELDS)


def key_table(more: Mapping[str, Collection[str]], value_fields: frozenset[str]) -> KeyTable:
    """The lexicon's phrases and `more` of them by field, which go first where a phrase is in both."""
    exact: dict[str, str] = {}
    weak = {skeleton(word).chars for word in WEAK_OTHER.split("|")}
    ideographs: list[str] = []
    for name, phrases in more.items():
        for phrase in phrases:
            exact.setdefault(skeleton(phrase).chars, name)
            if any(ord(c) > 0x2E7F for c in phrase):
                ideographs.append(phrase)
    for name, rows in LEXICON.items():
        for phrase in "|".join(rows).split("|"):
            chars = skeleton(phrase).chars
            if name == OTHER and " " not in phrase and phrase.isascii():
                weak.add(chars)
                continue
            exact.setdefault(chars, name)
            if any(ord(c) > 0x2E7F for c in phrase):
                ideographs.append(phrase)
    latin = [chars for chars in exact if all(ord(c) <= 0x2E7F for c in chars)]
    long_phrases = tuple(chars for chars in latin if allowed_errors(len(chars)))
    limits = [allowed_errors(len(phrase)) for phrase in long_phrases]
    blurred = tuple(map(blurred_bones, long_phrases))
    # what a line is not, no outline tells: `not for sale beyond` looks like its contrary
    blurred_limits = [-1 if exact[phrase] == OTHER else _blurred_errors(len(phrase)) for phrase in long_phrases]
    pieces = {chars: name for chars, name in exact.items() if name == OTHER or name in value_fields}
    pieces |= dict.fromkeys(weak, OTHER)
    return KeyTable(
        value_fields=value_fields,
        exact=exact,
        bent=_bent(latin, exact),
        long_phrases=long_phrases,
        limits=np.array(limits, np.int16),
        blurred=blurred,
        blurred_limits=np.array(blurred_limits, np.int16),
        by_pieces=PhrasePieces(long_phrases, limits, PIECE_LETTERS),
        by_blurred_pieces=PhrasePieces(blurred, blurred_limits, BLURRED_PIECE_LETTERS),
        pieces=pieces,
        bent_pieces=BentWords(pieces),
        ideographs=re.compile("|".join(map(re.escape, sorted(ideographs, key=lambda p: (-len(p), p))))),
        weak=frozenset(weak),
        refused=frozenset(NOT_KEYS.split("|")),
    )


def _bent(phrases: list[str], exact: Mapping[str, str]) -> dict[str, str]:
    """Short phrases with one letter replaced by a look-alike; a form that fits two fields is left out."""
    bent: dict[str, str | None] = {}
    for phrase in phrases:
        if not (4 <= len(phrase) < 8 or phrase in BENDABLE):
            continue
        for at, char in enumerate(phrase):
            for other in _LOOKALIKES.get(char, ""):
                form = phrase[:at] + other + phrase[at + 1 :]
                if form not in exact:
                    bent[form] = exact[phrase] if bent.get(form, exact[phrase]) == exact[phrase] else None
    return {form: name for form, name in bent.items() if name is not None}
