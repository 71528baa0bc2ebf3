"""Segment: the part of a line that one key phrase rules; a line such as `LOT A123 EXP 08/2026` has two."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from edge_agent.stages.half_keys import half_keys
from edge_agent.stages.key_phrases import KeyPhrase, KeyTable, find_key_phrases, lexicon_table
from edge_agent.stages.label_text import LabelText, label_text

PIECE_CHARS = 1024  # a longer text is searched in pieces cut at spaces, so that the time stays linear
CACHED_CHARS = 300  # consecutive frames repeat their lines; longer texts are not worth the memory
CACHED_LINES = 2048
_ADDRESS = re.compile(  # with what OCR makes of its head: http5:1/, htfs//, wvw.
    r"(?i)(?:https?\s?:|(?<![^\W\d_])h[tf]{1,3}p?[s5]?\s?[:;.,]?\s?(?:/[/1l|]|[1l|]/)"
    r"|www\.|\b[wv]{2,3}[.,](?=[\w-]{4,63}[.,])"
    r"|(?<![^\s:,;])[\w.+-]{1,64}\s?(?:@|[(\[]at[)\]])\s?)[^\s]{1,253}"
)
_COUNTED = re.compile(r"(?i)[0-9]\s?(?:pcs|pieces|count)\Z")
_CODED = frozenset({"lot", "serial_number"})


@dataclass(frozen=True)
class Segment:
    """`text[start:end]` stands behind `keys`: none where nothing names it, several in `LOT/EXP: A1 08/2026`."""

    text: LabelText
    keys: tuple[KeyPhrase, ...]
    start: int
    end: int

    @property
    def value_text(self) -> str:
        """What stands behind the keys, clean."""
        return self.text.text[self.start : self.end]

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that the keys name, each once."""
        return tuple(dict.fromkeys(key.name for key in self.keys))

    @property
    def says_nothing(self) -> bool:
        """Whether no letter or digit stands behind the keys."""
        return not any(map(str.isalnum, self.value_text))

    @property
    def begin(self) -> int:
        """Where the segment begins with its keys."""
        return self.keys[0].start if self.keys else self.start


def segments_of(raw: str, max_chars: int, table: KeyTable | None = None) -> tuple[tuple[Segment, ...], bool]:
    """The segments of a line's text as read, left to right, and whether its middle was left out for its length."""
    table = table or lexicon_table()
    if len(raw) <= CACHED_CHARS:
        return _cached(raw, table), False
    truncated = len(raw) > max_chars
    if truncated:
        raw = f"{raw[: max_chars // 2]} {raw[len(raw) - max_chars // 2 :]}"
    return _segments(label_text(raw), table), truncated


@lru_cache(maxsize=CACHED_LINES)
def _cached(raw: str, table: KeyTable) -> tuple[Segment, ...]:
    return _segments(label_text(raw), table)


def _segments(text: LabelText, table: KeyTable) -> tuple[Segment, ...]:
    keys: list[KeyPhrase] = []
    for start, end in _pieces(text.text):
        keys += [
            replace(key, start=key.start + start, end=key.end + start)
            for key in find_key_phrases(text.text[start:end], table)
        ]
    keys = sorted([*keys, *half_keys(text.text, keys, table)], key=lambda key: key.start)
    keys = _without_units(text.text, _outside_addresses(text.text, keys))
    return tuple(_cut(text, _without_code_heads(text.text, keys)))


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = min(start + PIECE_CHARS, len(text))
        if end < len(text):
            end = max(text.rfind(" ", start, end) + 1, 0) or end
            end = end if end > start else min(start + PIECE_CHARS, len(text))
        yield start, end
        start = end


def _outside_addresses(text: str, keys: list[KeyPhrase]) -> list[KeyPhrase]:
    """Words inside a web or mail address name nothing: `support` in https://support.example.com."""
    spans = [match.span() for match in _ADDRESS.finditer(text)]
    return [key for key in keys if not any(start < key.end and key.start < end for start, end in spans)]


def _without_units(text: str, keys: list[KeyPhrase]) -> list[KeyPhrase]:
    """In `QTY 24 pcs` the last word names nothing, it is the unit of what stands before it."""
    return [k for k in keys if k.name != "weight_volume" or not _COUNTED.search(text, max(0, k.start - 2), k.end)]


def _without_code_heads(text: str, keys: list[KeyPhrase]) -> list[KeyPhrase]:
    """In `S/N SN-204411` the second SN belongs to the number, for it is glued to it."""
    kept: list[KeyPhrase] = []
    for key in keys:
        glued = key.name in _CODED and text[key.end : key.end + 1] not in ("", " ", ":", ".", "#")
        between = text[kept[-1].end : key.start] if kept else "x"
        if glued and kept and kept[-1].name == key.name and not any(map(str.isalnum, between)):
            continue
        kept.append(key)
    return kept


def _cut(text: LabelText, keys: list[KeyPhrase]) -> Iterator[Segment]:
    if not keys:
        yield Segment(text, (), 0, len(text.text))
        return
    if any(map(str.isalnum, text.text[: keys[0].start])):
        yield Segment(text, (), 0, keys[0].start)
    waiting: list[KeyPhrase] = []
    for key, following in zip(keys, [*keys[1:], None], strict=True):
        end = following.start if following else len(text.text)
        waiting.append(key)
        if following is None or any(map(str.isalnum, text.text[key.end : end])):
            yield Segment(text, tuple(waiting), key.end, end)
            waiting = []
