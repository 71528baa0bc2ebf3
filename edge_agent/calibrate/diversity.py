"""Diversity: whether frames show different things, and which of many to keep.

Two frames are near duplicates when a coarse fingerprint (dHash) and a finer look both say so. The coarse one alone
would drop what calibration needs: on a fixed camera, labels of one make differ in their lot and serial numbers only,
and their dHash is the same (distance 0 of 64 was seen).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.stages.images import Image

HASH_BITS = 64
NEAR_BITS = 6  # of dHash; noise, JPEG and a tenth more light were seen to change up to 3, other scenes 13 and more
MARGIN = 1  # grey levels: sensor noise averaged over a cell of the fingerprint stays below
LOOK_WIDTH, LOOK_HEIGHT = 64, 36
NEAR_LEVELS = 16  # of a levelled look; noise changes 1 or 2, a pixel of shake 10, another serial number 55 and more
LEVEL_MEAN, LEVEL_SPREAD = 128.0, 48.0
LEAST_SPREAD = 8.0  # below, a picture is as good as flat: its noise is not stretched any further
TEXTURE_SIDE_PX = 160
LEAST_TEXTURE = 6.0  # grey levels between the darkest and the brightest spot; label frames have 100 and more

Look = npt.NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class Impression:
    """What is remembered of a frame: `dhash` 64 bit; `look` int16 (36, 64), levelled greys; `texture` grey levels."""

    dhash: int
    look: Look
    texture: float

    @property
    def flat(self) -> bool:
        """Whether the frame shows nothing at all: a covered lens, an overexposed or empty picture."""
        return self.texture < LEAST_TEXTURE


def impression_of(image: Image) -> Impression:
    """The impression of `image`, uint8 (H, W, 3) BGR of any size."""
    grey = grey_of(image)
    look = levelled(cv2.resize(grey, (LOOK_WIDTH, LOOK_HEIGHT), interpolation=cv2.INTER_AREA))
    return Impression(hash_of(grey), look, texture_of(grey))


def dhash(image: Image) -> int:
    """Difference hash, 64 bit: whether each cell of an 8 x 8 grid is darker than the one to its right.

    By a margin, unlike the published one, so that noise on a flat background does not toss coins.
    """
    return hash_of(grey_of(image))


def distance(one: int, other: int) -> int:
    """How many of 64 bits differ."""
    return (one ^ other).bit_count()


class Gallery:
    """The different frames seen so far; `admits` takes one more and tells whether it is different from all of them."""

    def __init__(self, near_bits: int = NEAR_BITS, near_levels: float = NEAR_LEVELS) -> None:
        self._near_bits = near_bits
        self._near_levels = near_levels
        self._hashes: list[int] = []
        self._looks: npt.NDArray[np.int16] = np.empty((64, LOOK_HEIGHT, LOOK_WIDTH), np.int16)

    def __len__(self) -> int:
        return len(self._hashes)

    def admits(self, impression: Impression) -> bool:
        """Whether no frame before was nearly the same; if so, it is one of them from now on."""
        if self._knows(impression):
            return False
        if len(self._hashes) == len(self._looks):
            self._looks = np.concatenate([self._looks, np.empty_like(self._looks)])
        self._looks[len(self._hashes)] = impression.look
        self._hashes.append(impression.dhash)
        return True

    def _knows(self, impression: Impression) -> bool:
        alike = [n for n, known in enumerate(self._hashes) if distance(known, impression.dhash) <= self._near_bits]
        if not alike:
            return False
        changes = np.abs(self._looks[alike] - impression.look).max(axis=(1, 2))
        return bool((changes <= self._near_levels).any())


def choose(hashes: Sequence[int], times: Sequence[float], count: int) -> list[int]:
    """Indices of at most `count` frames that are spread over time and look as different as can be, ascending.

    Farthest first (Gonzalez, 1985): begins with the earliest and takes ever again the frame whose nearest chosen one
    is farthest away, by the share of different bits plus the share of the whole time between them. Deterministic: of
    equally far frames the first is taken. `times` in any unit.
    """
    total = len(hashes)
    if total <= count:
        return list(range(total))
    bits = np.array([[h >> bit & 1 for bit in range(HASH_BITS)] for h in hashes], np.int8)
    span = (max(times) - min(times)) or 1.0
    moments = (np.array(times, np.float64) - min(times)) / span

    def away(n: int) -> npt.NDArray[np.float64]:
        apart = (bits != bits[n]).mean(axis=1) + np.abs(moments - moments[n])
        return np.asarray(apart, np.float64)

    chosen = [int(np.argmin(moments))]
    nearest = away(chosen[0])
    while len(chosen) < count:
        nearest[chosen] = -1.0  # frames that nothing tells apart must not be taken twice
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, away(chosen[-1]))
    return sorted(chosen)


def grey_of(image: Image) -> npt.NDArray[np.uint8]:
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8)


def hash_of(grey: npt.NDArray[np.uint8]) -> int:
    cells = cv2.resize(grey, (9, 8), interpolation=cv2.INTER_AREA).astype(np.int16)
    return int.from_bytes(np.packbits(cells[:, 1:] > cells[:, :-1] + MARGIN).tobytes(), "big")


def levelled(grey: npt.NDArray[Any]) -> Look:
    """Greys brought to one mean and spread, so that a lamp that ages or flickers makes no new frame."""
    values = grey.astype(np.float32)
    spread = max(float(values.std()), LEAST_SPREAD)
    return np.asarray(np.clip((values - values.mean()) / spread * LEVEL_SPREAD + LEVEL_MEAN, -512, 767), np.int16)


def texture_of(grey: npt.NDArray[np.uint8]) -> float:
    """Grey levels between the darkest and the brightest spot (0.1 % and 99.9 %) once noise is averaged out."""
    factor = TEXTURE_SIDE_PX / max(grey.shape)
    if factor < 1.0:
        size = (max(1, round(grey.shape[1] * factor)), max(1, round(grey.shape[0] * factor)))
        grey = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.uint8)
    low, high = np.percentile(grey, (0.1, 99.9))
    return float(high - low)
