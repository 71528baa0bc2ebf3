"""Language: what a label is written in, told from all of its words together.

Codes and dates say nothing about it (an EAN is French to a language guesser), so only words of letters count, and of
one line alone nothing is said unless it is long. py3langid (after Lui & Baldwin, langid.py, 2012), held to the
languages configured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import py3langid

MIN_LETTERS = 16  # of a label's words; an ideograph or syllable counts as LETTERS_PER_IDEOGRAPH
LETTERS_PER_IDEOGRAPH = 3
MAX_CHARS = 2000
MIN_MARGIN = 0.3  # nats between the likeliest language and the next, per root of the text's bytes


class LabelLanguage:
    """Tells the language among those configured; one thread owns it, for the library's choice of languages is global.

    Of languages that the library does not know none is ever told.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        known = {str(name) for name, _ in _all_ranked("x")}
        self.languages = tuple(language for language in dict.fromkeys(languages) if language in known)

    def of(self, texts: Iterable[str]) -> str | None:
        """ISO 639-1 of a label's texts; None where they have too few words, or words that two languages share."""
        if not self.languages:
            return None
        words = [word for text in texts for word in text.split() if _is_word(word)]
        text = " ".join(words)[:MAX_CHARS]
        if sum(LETTERS_PER_IDEOGRAPH if ord(c) > 0x2E7F else 1 for c in text if c.isalpha()) < MIN_LETTERS:
            return None
        if len(self.languages) == 1:
            return self.languages[0]
        py3langid.set_languages(list(self.languages))
        (best, first), (_, second), *_ = py3langid.rank(text)
        return str(best) if first - second >= MIN_MARGIN * math.sqrt(len(text.encode())) else None


def _all_ranked(text: str) -> Sequence[tuple[str, float]]:
    py3langid.set_languages(None)
    return list(py3langid.rank(text))


def _is_word(word: str) -> bool:
    """Letters alone, but for punctuation; a code has digits."""
    return sum(map(str.isalpha, word)) >= 2 and not any(map(str.isdigit, word))
