"""Language: what a label is written in, told from all of its words together.

Codes and dates say nothing about it (an EAN is French to a language guesser), so only words of letters count, and of
one line alone nothing is said unless it is long. py3langid (after Lui & Baldwin, langid.py, 2012), held to the
languages configured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from py3langid.langid import MODEL_FILE, LanguageIdentifier

MIN_LETTERS = 16  # of a label's words; an ideograph or syllable counts as LETTERS_PER_IDEOGRAPH
LETTERS_PER_IDEOGRAPH = 3
MAX_CHARS = 2000
MIN_MARGIN = 0.3  # nats between the likeliest language and the next, per root of the text's bytes


class LabelLanguage:
    """Tells the language among those configured; of one alone, that one.

    Of several, those that the library does not know are never told. Its model, 45 MB, is held only where there is a
    choice to make.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        self.languages = tuple(dict.fromkeys(languages))
        self._identifier: LanguageIdentifier | None = None
        if len(self.languages) > 1:
            self._identifier = _identifier_of(self.languages)
            self.languages = tuple(language for language in self.languages if language in self._identifier.labels)

    def of(self, texts: Iterable[str]) -> str | None:
        """ISO 639-1 of a label's texts; None where they have too few words, or words that two languages share."""
        if not self.languages:
            return None
        words = [word for text in texts for word in text.split() if _is_word(word)]
        text = " ".join(words)[:MAX_CHARS]
        if sum(LETTERS_PER_IDEOGRAPH if ord(c) > 0x2E7F else 1 for c in text if c.isalpha()) < MIN_LETTERS:
            return None
        if len(self.languages) == 1 or self._identifier is None:
            return self.languages[0]
        (best, first), (_, second), *_ = self._identifier.rank(text)
        return str(best) if first - second >= MIN_MARGIN * math.sqrt(len(text.encode())) else None


@lru_cache(maxsize=1)  # settings change often, their languages hardly ever
def _identifier_of(languages: Sequence[str]) -> LanguageIdentifier:
    """One that knows these languages alone: of the library's table of all 97 only their columns are kept."""
    everything = LanguageIdentifier.from_model_file(MODEL_FILE)
    everything.set_languages([language for language in languages if language in everything.labels])
    return LanguageIdentifier(
        everything.nb_ptc.copy(),
        everything.nb_pc.copy(),
        everything.nb_classes,
        everything.tk_nextmove,
        everything.tk_output,
        tk_row=everything.tk_row,
    )


def _is_word(word: str) -> bool:
    """Letters alone, but for punctuation; a code has digits."""
    return sum(map(str.isalpha, word)) >= 2 and not any(map(str.isdigit, word))
