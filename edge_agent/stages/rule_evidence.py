"""What rules see in a text that they do not settle, as numbers for the model that names it: half-known phrases, and
values that would fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edge_agent.stages.field_values import ReadRules
from edge_agent.stages.found_values import ERROR_PENALTY, segment_values
from edge_agent.stages.key_phrases import KeyTable
from edge_agent.stages.segments import segments_of

MAX_CHARS = 300  # of a text: a longer one is prose
UNKEYED = 0.9  # what a value that proves itself counts, beside one behind its phrase


def rule_evidence(text: str, names: Sequence[str], rules: ReadRules, keys: KeyTable) -> npt.NDArray[np.float64]:
    """(2 x names,) numbers 0..1: how surely each field's phrase stands in the text, and whether its value does."""
    at = {name: number for number, name in enumerate(names)}
    found = np.zeros(2 * len(names))
    segments, _ = segments_of(text[:MAX_CHARS], MAX_CHARS, keys)
    for segment in segments:
        for key in segment.keys:
            if key.name in at:
                found[at[key.name]] = max(found[at[key.name]], ERROR_PENALTY**key.errors)
        for value, named_by in segment_values(segment, rules):
            if value.name in at:
                place = len(names) + at[value.name]
                found[place] = max(found[place], UNKEYED if named_by is None else 1.0)
    return found
