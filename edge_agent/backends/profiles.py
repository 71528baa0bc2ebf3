"""Profiles from what a site really sees: shapes are counted while engines run, `suggest` tunes the profiles to them.

    plans/<model>-shapes.json   [{"shapes": {"image": [1, 48, 320, 3]}, "runs": 1234}, ...]

TensorRT picks kernels for a profile's `opt`; its bounds say what may come at all and are never narrowed.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from edge_agent.backends.base import Profile, Shape
from edge_agent.files import write_atomically

Shapes = tuple[tuple[str, Shape], ...]
MOST_SHAPES = 500  # different ones that are remembered per model
SPLIT_FACTOR = 4.0  # how much larger the larger half must be, on average, for a profile of its own
SPLIT_SHARE = 0.2  # of all work that each half must have


class ShapeLog:
    """How often each input shape ran; bounded. `save` adds the counts to those that the file has."""

    def __init__(self) -> None:
        self.runs: Counter[Shapes] = Counter()

    def count(self, shapes: Shapes) -> None:
        """One run; a shape beyond MOST_SHAPES different ones is not remembered."""
        if shapes in self.runs or len(self.runs) < MOST_SHAPES:
            self.runs[shapes] += 1

    def save(self, path: Path) -> None:
        """Merges into the file and starts anew. A damaged file is replaced."""
        if not self.runs:
            return
        merged = read_shapes(path) + self.runs
        entries = [
            {"shapes": {name: list(shape) for name, shape in shapes}, "runs": runs}
            for shapes, runs in merged.most_common(MOST_SHAPES)
        ]
        write_atomically(path, json.dumps(entries).encode())
        self.runs.clear()


def shapes_path(plans_dir: Path, model: str) -> Path:
    """Where the counts of a model lie."""
    return plans_dir / f"{model}-shapes.json"


def read_shapes(path: Path) -> Counter[Shapes]:
    """The counts in a file; empty where there is none or it is damaged."""
    try:
        entries = json.loads(path.read_bytes())
        return Counter(
            {
                tuple((str(name), tuple(int(d) for d in shape)) for name, shape in entry["shapes"].items()): int(
                    entry["runs"]
                )
                for entry in entries
            }
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Counter()


def suggest(profiles: Sequence[Profile], runs: Mapping[Shapes, int]) -> tuple[Profile, ...]:
    """The same profiles tuned to the counted shapes: `opt` where most work is, two where sizes differ widely.

    Every shape that was admitted before still is. A profile that no counted shape uses stays as it is.
    """
    smallest_first = sorted(profiles, key=lambda profile: _volume(profile.max.items()))
    served: dict[int, dict[Shapes, int]] = {index: {} for index in range(len(smallest_first))}
    for shapes, count in runs.items():
        for index, profile in enumerate(smallest_first):
            if profile.admits(dict(shapes)) and set(profile.min) == set(dict(shapes)):
                served[index][shapes] = count
                break
    return tuple(made for index, profile in enumerate(smallest_first) for made in _tuned(profile, served[index]))


def to_yaml(profiles: Sequence[Profile]) -> str:
    """The `profiles` block of a model.yaml."""
    lines = ["profiles:"]
    for profile in profiles:
        for part, dash in (("min", "- "), ("opt", "  "), ("max", "  ")):
            shapes = ", ".join(f"{name}: {list(shape)}" for name, shape in getattr(profile, part).items())
            lines.append(f"  {dash}{part}: {{{shapes}}}")
    return "\n".join(lines)


def _tuned(profile: Profile, runs: Mapping[Shapes, int]) -> list[Profile]:
    if not runs:
        return [profile]
    ordered = sorted(runs, key=lambda shapes: (_volume(shapes), shapes))
    split = _best_split(ordered, runs)
    if split is None:
        return [Profile(profile.min, _busiest(ordered, runs), profile.max)]
    small, large = ordered[:split], ordered[split:]
    names = list(profile.min)
    highest = {
        name: tuple(max(dict(shapes)[name][axis] for shapes in small) for axis in range(len(profile.min[name])))
        for name in names
    }
    return [
        Profile(profile.min, _busiest(small, runs), highest),
        Profile(profile.min, _busiest(large, runs), profile.max),
    ]


def _best_split(ordered: Sequence[Shapes], runs: Mapping[Shapes, int]) -> int | None:
    """Where to cut shapes in ascending size so that the two halves' sizes differ most; None where it does not pay."""
    work = [runs[shapes] * _volume(shapes) for shapes in ordered]
    best, best_factor = None, SPLIT_FACTOR
    for cut in range(1, len(ordered)):
        if min(sum(work[:cut]), sum(work[cut:])) < SPLIT_SHARE * sum(work):
            continue
        means = [
            sum(work[part]) / sum(runs[shapes] for shapes in ordered[part])
            for part in (slice(0, cut), slice(cut, len(ordered)))
        ]
        if means[1] / means[0] >= best_factor:
            best, best_factor = cut, means[1] / means[0]
    return best


def _busiest(shapes: Sequence[Shapes], runs: Mapping[Shapes, int]) -> dict[str, Shape]:
    busiest: Shapes = max(shapes, key=lambda one: (runs[one] * _volume(one), one))
    return dict(busiest)


def _volume(shapes: Iterable[tuple[str, Shape]]) -> int:
    return sum(math.prod(shape) for _, shape in shapes)
