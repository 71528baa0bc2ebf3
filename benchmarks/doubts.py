"""How often a field that was read right is said to be in doubt, and how often one that was read wrong is not.

    python benchmarks/doubts.py [--labels N] [--frames N] [--models v6|v4] [--margin M]
    python benchmarks/doubts.py --folder DIR [--models v6|v4]

The first draws labels of an expiry date, a lot, a serial number and a GTIN in prints from clean to hard, the same ones
at every run. Each is seen in a few frames that differ by their noise and by a part of a pixel, read one by one and as
an item (by its readings' votes). The lot is read twice: as it is, and by a pattern.

The second counts the characters of label frames with their truth (gt.json) by their margins: right ones and wrong ones.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.reader import OUR_MODELS  # noqa: E402
from edge_agent.config import Config  # noqa: E402
from edge_agent.demo.ean13 import check_digit  # noqa: E402
from edge_agent.items.votes import vote_field  # noqa: E402
from edge_agent.models.spec import find_models_dir  # noqa: E402
from edge_agent.patterns import Pattern  # noqa: E402
from edge_agent.pipeline import Pipeline, load_pipeline  # noqa: E402
from edge_agent.records import DOUBTFUL, Field, Frame  # noqa: E402
from edge_agent.settings.pipeline import PipelineConfig  # noqa: E402
from edge_agent.stages.field_extractor import no_masks  # noqa: E402
from tests.prints import drawn  # noqa: E402

PATTERN = "A999999A"  # of a lot
MASKS: Mapping[str, Pattern] = {"lot": Pattern.parse(PATTERN)}
LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
MARGINS = (1, 2, 3, 4)
SAME_LINE = 0.5  # of the text that stands there: less, and a line is not the one that was printed
NAMES = ("expiry_date", "lot", "serial_number", "barcode_digits")
OUTCOMES = ("right", "right, in doubt", "wrong, said so", "wrong, silent", "not read")


@dataclass(frozen=True)
class Print:
    """How labels are printed and seen: blur and noise as standard deviations, px and grey levels; `contrast` 0..1."""

    name: str
    size_px: int
    blur_px: float
    noise: float
    contrast: float


PRINTS = (
    Print("clean", 24, 0.5, 2, 1),
    Print("small", 14, 0.8, 8, 0.7),
    Print("soft", 24, 2.3, 4, 0.8),
    Print("noisy", 18, 1.0, 22, 0.6),
)


def made_values(random: np.random.Generator) -> dict[str, str]:
    """What one label says, by the field's name."""
    letters = "".join(random.choice(list(LETTERS), 2))
    digits = "".join(map(str, random.integers(0, 10, 27)))
    number = f"952{digits[15:24]}"
    return {
        "expiry_date": f"{random.integers(2027, 2030)}-{random.integers(1, 13):02}-{random.integers(13, 29)}",
        "lot": f"{letters[0]}{digits[:6]}{letters[1]}",
        "serial_number": digits[6:15],
        "barcode_digits": number + check_digit(number),
    }


def label_of(values: Mapping[str, str], size_px: int) -> npt.NDArray[np.float32]:
    """The label in black on white, float32 (H, W)."""
    day = date.fromisoformat(values["expiry_date"])
    texts = (f"EXP {day:%d.%m.%Y}", f"LOT {values['lot']}", f"S/N {values['serial_number']}")
    picture = drawn([*texts, f"EAN {values['barcode_digits']}"], size_px, sides_px=(520, 192))
    return np.asarray(picture[:, :, 0], np.float32)


def frames_of(
    label: npt.NDArray[np.float32], kind: Print, count: int, random: np.random.Generator
) -> Iterator[npt.NDArray[np.uint8]]:
    """The label as a camera sees it, uint8 (H, W, 3)."""
    for _ in range(count):
        shift = np.array([[1, 0, random.uniform(-1, 1)], [0, 1, random.uniform(-1, 1)]], np.float32)
        moved = cv2.warpAffine(label, shift, label.shape[::-1], borderValue=255.0)
        soft = cv2.GaussianBlur(moved, (0, 0), kind.blur_px)
        seen = 128 + (soft - 128) * kind.contrast + random.normal(0, kind.noise, label.shape)
        yield cv2.cvtColor(np.clip(seen, 0, 255).astype(np.uint8), cv2.COLOR_GRAY2BGR)


def lot_mask(region: str | None) -> Mapping[str, Pattern]:
    return MASKS


def outcome(found: Sequence[Field], name: str, value: str) -> str:
    """What became of one field of a label, of one of OUTCOMES."""
    named = [field for field in found if field.name == name]
    if not named:
        return "not read"
    best = max(named, key=lambda field: (field.value == value, field.certain))
    if best.value == value:
        return "right" if best.certain else "right, in doubt"
    return "wrong, silent" if any(field.certain for field in named) else "wrong, said so"


def voted(readings: Sequence[Sequence[Field]]) -> list[Field]:
    """The fields of an item that these readings show, by name alone."""
    by_name = {name: [each for reading in readings for each in reading if each.name == name] for name in NAMES}
    return [vote_field(fields)[0] for fields in by_name.values() if fields]


def measure(pipeline: Pipeline, kind: Print, labels: int, frames: int) -> None:
    """Prints the rows of one kind of print."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    causes: Counter[str] = Counter()
    random = np.random.default_rng(7)
    for _ in range(labels):
        values = made_values(random)
        pictures = frames_of(label_of(values, kind.size_px), kind, frames, random)
        lines = [pipeline.read(Frame("label", 0, 0.0, 0.0, picture)).lines for picture in pictures]
        for masks, names in ((no_masks, NAMES), (lot_mask, ("lot",))):
            margin = pipeline.recogniser.settings.doubt_margin
            seen = [pipeline.extractor.extract(of_one, (), masks, margin) for of_one in lines]
            for name in names:
                told = name if masks is no_masks else f"{name} {PATTERN}"
                for found in seen:
                    counts.setdefault((told, "frame"), Counter())[outcome(found, name, values[name])] += 1
                    causes.update(f.name for f in found if f.name == name and set(f.flags) == {DOUBTFUL})
                counts.setdefault((told, "item"), Counter())[outcome(voted(seen), name, values[name])] += 1
    for (told, of), count in counts.items():
        print(f"{kind.name:8}{told:24}{of:8}" + "".join(f"{count[each]:18}" for each in OUTCOMES), flush=True)
    print(f"{kind.name:8}in doubt for a doubtful character alone: {dict(causes)}", flush=True)


def count_margins(pipeline: Pipeline, folder: Path) -> None:
    """Prints how many characters have a margin below each of MARGINS: of those read right, and of those read wrong."""
    margins: dict[bool, list[float]] = {True: [], False: []}
    for name, truth in json.loads((folder / "gt.json").read_text()).items():
        places = [(np.reshape(each["poly"], (-1, 2)).mean(axis=0), each["text"]) for each in truth]
        for line in pipeline.read(Frame("label", 0, 0.0, 0.0, cv2.imread(str(folder / name)))).lines:
            _, text = min(places, key=lambda place: float(np.linalg.norm(place[0] - line.box.quad.centre)))
            if Levenshtein.normalized_similarity(line.text, text) < SAME_LINE:
                continue
            for step in Levenshtein.opcodes(line.text, text):
                if step.tag in ("equal", "replace"):
                    seen = line.characters[step.src_start : step.src_end]
                    margins[step.tag == "equal"] += [each.margin for each in seen if each.text != " "]
    print(f"characters: {len(margins[True])} right, {len(margins[False])} wrong")
    for margin in MARGINS:
        below = [100 * sum(each < margin for each in of) / max(1, len(of)) for of in margins.values()]
        print(f"margin below {margin}: {below[0]:.2f} % of the right ones, {below[1]:.0f} % of the wrong ones")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", choices=tuple(OUR_MODELS), default="v6")
    parser.add_argument("--labels", type=int, default=10)
    parser.add_argument("--frames", type=int, default=5)
    parser.add_argument("--margin", type=float, default=3.0, help="pipeline.doubt_margin")
    parser.add_argument("--folder", type=Path, help="frames with their truth, whose characters are counted instead")
    given = parser.parse_args()
    detector, recogniser = OUR_MODELS[given.models]
    settings = PipelineConfig(
        detector=detector,
        recogniser=recogniser,
        encoder=None,
        doubt_margin=given.margin,
        detector_min_side_px=736 if given.folder else 192,  # as the labels are: they are not enlarged
    )
    with load_pipeline(Config(pipeline=settings), find_models_dir(), float_only=True) as pipeline:
        if given.folder:
            count_margins(pipeline, given.folder)
            return
        print(f"{'print':8}{'field':24}{'of a':8}" + "".join(f"{each:>18}" for each in OUTCOMES))
        for kind in PRINTS:
            measure(pipeline, kind, given.labels, given.frames)


if __name__ == "__main__":
    main()
