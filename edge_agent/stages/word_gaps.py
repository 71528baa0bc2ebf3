"""Word gaps: spaces that the recogniser leaves out, found where letters stand far apart in the picture.

Only between letters that the network saw farther apart than is usual in the line is the picture looked at at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.stages.images import Image
from edge_agent.stages.lattice import Spelling

STROKE = 0.3  # of a line's usual contrast: from here on a column belongs to a letter
WORD_GAP = 0.2  # of a line's height: a wider gap between strokes is a space; between letters it is about 0.06
FAR = 1.35  # times the usual distance of letters: nearer ones are of one word
SIGNS = (".", ",", ":", "/", "-")  # in numbers, dates and times
LEAST_LETTERS = 5  # fewer say nothing of what is usual
TIMES_OTHER_GAPS = 2.0  # wider than most gaps of the line by so much, or the line is letter-spaced


def lost_spaces(crop: Image, spelling: Spelling, step_px: float) -> list[int]:
    """Before which characters of a line a space is missing, ascending.

    `crop` uint8 (H, W, 3) BGR is what the line was read from, `step_px` how much of its width a step covers.
    """
    lattice = spelling.lattice
    if lattice is None or len(spelling.text) < LEAST_LETTERS:
        return []
    centres = lattice.steps.mean(axis=1) * step_px
    between = [n for n in range(1, len(centres)) if " " not in spelling.text[n - 1 : n + 1]]
    distances = np.diff(centres)
    usual = float(np.median([distances[n - 1] for n in between])) if between else 0.0
    suspects = [n for n in between if distances[n - 1] > FAR * usual]
    if not suspects:
        return []
    empty = empty_columns(crop)
    gaps = {n: longest_run(empty[int(centres[n - 1]) : int(np.ceil(centres[n])) + 1]) for n in between}
    wide = max(WORD_GAP * crop.shape[0], TIMES_OTHER_GAPS * float(np.median(list(gaps.values()))))
    return [n for n in suspects if gaps[n] >= wide and not is_of_one_number(spelling.text, n)]


def is_of_one_number(text: str, at: int) -> bool:
    """Whether both sides belong to a number, a date or a time: those are set wider than words are."""
    if text[at - 1] == ":" and not text[at - 2 : at - 1].isdigit():
        return False  # a key and its value
    if text[at - 1] in SIGNS or text[at] in (*SIGNS, "%"):
        return True
    word = text[text.rfind(" ", 0, at) + 1 : at] + text[at:].partition(" ")[0]
    return text[at - 1].isdigit() and text[at].isdigit() and any(sign in word for sign in SIGNS)


def empty_columns(crop: Image) -> npt.NDArray[np.bool_]:
    """Which columns of a line hold no stroke."""
    grey = cv2.cvtColor(crop, cv2.COLOR_BGR2GRAY)
    contrast = (grey.max(axis=0).astype(np.int32) - grey.min(axis=0)).astype(np.float32)
    return np.asarray(contrast < STROKE * np.percentile(contrast, 90), np.bool_)


def longest_run(empty: Sequence[bool] | npt.NDArray[np.bool_]) -> int:
    """The longest run of empty columns."""
    longest = run = 0
    for column in empty:
        run = run + 1 if column else 0
        longest = max(longest, run)
    return longest
