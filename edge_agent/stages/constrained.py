"""Constrained: what a line says if it must fit a pattern, decided by the network's own probabilities.

Prefix beam search (Graves, Supervised Sequence Labelling, 2012, section 7.5; Hannun et al., arXiv:1408.2873) over the
lattice and the pattern's automaton at once: a text's probability is summed over all of its alignments, and what the
pattern does not take is never begun. Nothing is put right afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from edge_agent.patterns import Pattern, State
from edge_agent.records import Correction, Lattice

BEAM = 48  # texts followed at once
LEAST_LOG_P = -25.0  # a character or blank less likely than this at a step is not taken there
NEVER = -math.inf


@dataclass(frozen=True)
class Constrained:
    """The likeliest text of a pattern, and what was read without it.

    Natural logarithms of the probabilities of both, summed over their alignments with the same steps;
    `corrections` lead from the one read to the one of the pattern, none where they are the same.
    """

    text: str
    log_probability: float
    greedy_text: str
    greedy_log_probability: float
    corrections: tuple[Correction, ...] = ()


@dataclass
class _Prefix:
    """What a text may begin with: log probabilities that the last step is a blank, or the prefix's last character."""

    state: State
    blank: float = NEVER
    character: float = NEVER

    @property
    def total(self) -> float:
        return log_sum(self.blank, self.character)


def decode(lattice: Lattice, begin: int, end: int, pattern: Pattern) -> Constrained | None:
    """The likeliest text of the pattern in the span of the line's characters [begin, end); None where no text of the
    pattern is at all likely there.

    Exact but for BEAM and LEAST_LOG_P. The steps are those from behind the character before the span to the one
    after it, blanks around it too.
    """
    first, behind = span_steps(lattice, begin, end)
    greedy = "".join(lattice.best[lattice.steps[n, 0]] if _has_steps(lattice, n) else " " for n in range(begin, end))
    prefixes: dict[str, _Prefix] = {"": _Prefix(pattern.start, blank=0.0)}
    for step in range(first, behind):
        likely = dict(candidates(lattice, step))
        prefixes = _advanced(prefixes, likely, pattern)
        if not prefixes:
            return None
    ended = {text: prefix.total for text, prefix in prefixes.items() if pattern.accepts(prefix.state)}
    if not ended:
        return None
    text = max(ended, key=lambda each: ended[each])
    greedy_log_p = ended.get(greedy)
    if greedy_log_p is None:
        greedy_log_p = log_probability(lattice, first, behind, greedy)
    return Constrained(text, ended[text], greedy, greedy_log_p, corrections(greedy, text))


def span_steps(lattice: Lattice, begin: int, end: int) -> tuple[int, int]:
    """The first step of a span of characters and the one behind it, with the blanks on both sides."""
    n_characters = len(lattice.steps)
    if not 0 <= begin < end <= n_characters:
        raise ValueError(f"characters {begin} to {end} of a line of {n_characters}; expected 0 <= begin < end")
    before = int(lattice.steps[begin - 1, 1]) if begin else 0
    after = int(lattice.steps[end, 0]) if end < n_characters else len(lattice.best)
    return before, after


def candidates(lattice: Lattice, step: int) -> Iterator[tuple[str, float]]:
    """The blank "" and the characters that are likely enough at a step, with their log probabilities."""
    row = lattice.log_p[step]
    yield "", float(row[0]) if row[0] >= LEAST_LOG_P else NEVER
    for column in np.flatnonzero(row >= LEAST_LOG_P).tolist():
        if column:
            yield lattice.alphabet[column], float(row[column])
    best = lattice.best[step]
    if best and best not in lattice.alphabet:
        yield best, float(lattice.best_log_p[step])


def _advanced(prefixes: dict[str, _Prefix], likely: dict[str, float], pattern: Pattern) -> dict[str, _Prefix]:
    """The prefixes after one more step, the likeliest BEAM of them."""
    after: dict[str, _Prefix] = {}
    blank_log_p = likely[""]
    for text, prefix in prefixes.items():
        kept = after.setdefault(text, _Prefix(prefix.state))
        total = prefix.total
        kept.blank = log_sum(kept.blank, total + blank_log_p)
        if text and text[-1] in likely:
            kept.character = log_sum(kept.character, prefix.character + likely[text[-1]])
        for character, log_p in likely.items():
            if not character:
                continue
            state = pattern.step(prefix.state, character)
            if state is None:
                continue
            # twice the same character needs a blank between
            before = prefix.blank if text and text[-1] == character else total
            if before == NEVER:
                continue
            grown = after.setdefault(text + character, _Prefix(state))
            grown.character = log_sum(grown.character, before + log_p)
    totals = {text: prefix.total for text, prefix in after.items()}
    best = sorted((text for text in after if totals[text] > NEVER), key=lambda text: -totals[text])[:BEAM]
    return {text: after[text] for text in best}


def log_probability(lattice: Lattice, first: int, behind: int, text: str) -> float:
    """Log probability of a text in the steps [first, behind), summed over all alignments (Graves et al. 2006, 4.1)."""
    blanks = [NEVER] * (len(text) + 1)  # after so many characters, the last step a blank
    last = [NEVER] * (len(text) + 1)  # ... the last step a character
    blanks[0] = 0.0
    for step in range(first, behind):
        likely = dict(candidates(lattice, step))
        for n in range(len(text), -1, -1):
            log_p = likely.get(text[n - 1], NEVER) if n else NEVER
            came = NEVER
            if n:
                came = blanks[n - 1] if n > 1 and text[n - 2] == text[n - 1] else log_sum(blanks[n - 1], last[n - 1])
            blanks[n], last[n] = log_sum(blanks[n], last[n]) + likely[""], log_sum(last[n], came) + log_p
    return log_sum(blanks[-1], last[-1])


def corrections(seen: str, taken: str) -> tuple[Correction, ...]:
    """The fewest replacements, insertions and deletions that lead from one text to the other (Levenshtein 1966)."""
    cost = np.zeros((len(seen) + 1, len(taken) + 1), np.int32)
    cost[:, 0], cost[0] = np.arange(len(seen) + 1), np.arange(len(taken) + 1)
    for i, j in np.ndindex(len(seen), len(taken)):
        cost[i + 1, j + 1] = min(cost[i, j] + (seen[i] != taken[j]), cost[i, j + 1] + 1, cost[i + 1, j] + 1)
    found: list[Correction] = []
    i, j = len(seen), len(taken)
    while i or j:
        if i and j and cost[i, j] == cost[i - 1, j - 1] + (seen[i - 1] != taken[j - 1]):
            i, j = i - 1, j - 1
            if seen[i] != taken[j]:
                found.append(Correction(i, seen[i], taken[j]))
        elif i and cost[i, j] == cost[i - 1, j] + 1:
            i -= 1
            found.append(Correction(i, seen[i], ""))
        else:
            j -= 1
            found.append(Correction(i, "", taken[j]))
    return tuple(reversed(found))


def log_sum(a: float, b: float) -> float:
    """log(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    return a if b == NEVER else a + math.log1p(math.exp(b - a))


def _has_steps(lattice: Lattice, character: int) -> bool:
    return bool(lattice.steps[character, 1] > lattice.steps[character, 0])
