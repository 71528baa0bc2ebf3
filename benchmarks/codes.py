"""Codes: what CodeReader finds and costs, in places and in the whole of each picture, by turns on drawn frames.

    python benchmarks/codes.py [--size 1280x720] [--every 1] [--rounds 2] [--frames DIR]

Codes of ten kinds, each small and large, turned, faint, light on dark, blurred, noisy, of dots, near the border and on
busy grounds, and five on one frame. Pictures of DIR are grounds too, and what they cost as they are is told apart, with
the formats that are looked for by default. CPU time, each picture by its fastest round.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import cv2
import numpy as np
import numpy.typing as npt
import zxingcpp

from edge_agent.settings.fields import FieldsConfig
from edge_agent.stages import code_reader
from edge_agent.stages.code_reader import CodeReader
from edge_agent.stages.zoom import Window

Picture = npt.NDArray[np.uint8]
Search = Callable[[Picture, Sequence[str]], set[str]]

CONTENT = {
    "EAN13": "4006381333931",
    "EAN8": "96385074",
    "UPCA": "036000291452",
    "Code128": "SN-204411-7",
    "ITF": "12345678901231",
    "QRCode": "https://example.com/a/204411",
    "DataMatrix": "L4711A-204411",
    "DataMatrix small": "4711",
    "DataMatrix large": "01095060001343521728013110AB12345678921ABCDEFGHIJKLMNOP",
    "Aztec": "AZTEC-204411-XY",
    "PDF417": "PDF417 LOT 4711 EXP 2028-01-31",
}
FORMATS = tuple(dict.fromkeys(kind.split()[0] for kind in CONTENT))
BARS = ("EAN13", "EAN8", "UPCA", "Code128", "ITF")
QUIET = {**dict.fromkeys(BARS, 10), "QRCode": 4}  # modules


@dataclass(frozen=True)
class Print:
    """How a code lies in a frame: `px` a module; `ground` a grey level, or the number of a picture."""

    px: float = 4.0
    angle_deg: float = 0.0
    ink: int = 20
    paper: int = 240
    blur: float = 0.6
    noise: float = 2.0
    dots: bool = False
    ground: int | str = 205
    at: tuple[float, float] | None = None  # 0..1 of the room there is; None: anywhere


PRINTS: Mapping[str, Print] = {
    "plain": Print(),
    "small": Print(px=2.2),
    "tiny": Print(px=1.6),
    "large": Print(px=9),
    **{f"turned {angle}": Print(px=3.5, angle_deg=angle) for angle in (7, 33, 45, 90, 200, 318)},
    "contrast 60": Print(ink=110, paper=170, noise=3),
    "contrast 40": Print(ink=120, paper=160),
    "contrast 30": Print(px=5, ink=120, paper=150, noise=1),
    "light on dark": Print(ink=240, paper=20, ground=40),
    "light on dark, small": Print(px=2.5, ink=240, paper=20, ground="picture 2", angle_deg=4),
    "blurred": Print(blur=1.6, noise=4),
    "noisy": Print(blur=0.5, noise=14),
    **{f"busy {n}": Print(px=3, angle_deg=angle, ground=f"picture {n}") for n, angle in ((1, 5), (7, -12), (12, 3))},
    **{f"busy {n}, small": Print(px=2.2, ground=f"picture {n}") for n in (4, 8, 15)},
    "left border": Print(px=3, at=(0, 0.5)),
    "corner": Print(px=3, at=(1, 1)),
    "top, busy": Print(at=(0.3, 0), ground="picture 9"),
    "dots": Print(px=6, dots=True, blur=0.8),
    "dots, small": Print(dots=True, blur=0.7),
    "dots, light on dark": Print(px=7, dots=True, ink=240, paper=20, blur=1.0, angle_deg=8, ground=40),
}


def drawn(kind: str, how: Print) -> Picture:
    """A code with its quiet zone, grey."""
    code = zxingcpp.create_barcode(CONTENT[kind], getattr(zxingcpp.BarcodeFormat, kind.split(maxsplit=1)[0]))
    grey = np.array(zxingcpp.write_barcode_to_image(code, scale=1, add_hrt=False, add_quiet_zones=False))
    modules = (grey < 128).astype(np.uint8)
    if kind in BARS:
        modules = np.repeat(modules[:1], max(30, modules.shape[1] * 35 // 100), axis=0)
    modules = np.pad(modules, QUIET.get(kind, 3))
    side = round(how.px * 8)
    module = np.ones((side, side), np.uint8)
    if how.dots:
        module = cv2.circle(np.zeros_like(module), (side // 2, side // 2), int(side * 0.42), 1, -1)
    large = np.where(np.kron(modules, module) > 0, how.ink, how.paper).astype(np.uint8)
    return np.asarray(cv2.resize(large, None, fx=1 / 8, fy=1 / 8, interpolation=cv2.INTER_AREA), np.uint8)


def laid(frame: Picture, code: Picture, centre: tuple[float, float], angle_deg: float) -> Picture:
    """The frame with a code turned about its centre."""
    high, wide = code.shape
    matrix = cv2.getRotationMatrix2D((wide / 2, high / 2), -angle_deg, 1)
    matrix[:, 2] += (centre[0] - wide / 2, centre[1] - high / 2)
    size = frame.shape[1::-1]
    cover = cv2.warpAffine(np.ones_like(code, np.float32), matrix, size)[:, :, None]
    warped = cv2.warpAffine(code, matrix, size, borderMode=cv2.BORDER_REPLICATE)[:, :, None]
    return np.asarray(frame * (1 - cover) + warped * cover, np.uint8)


def room(code: Picture, angle_deg: float) -> npt.NDArray[np.float64]:
    """Half of the width and height that a turned code takes."""
    turn = np.abs([[np.cos(np.radians(angle_deg)), np.sin(np.radians(angle_deg))]])
    return np.asarray(np.concatenate([turn, turn[:, ::-1]]) @ np.array(code.shape[::-1]) / 2 + 1, np.float64)


def frames(size: tuple[int, int], grounds: Sequence[Picture]) -> Iterator[tuple[str, Picture, list[str]]]:
    """What it is, the frame, the contents of its codes."""
    chance = np.random.default_rng(size[0])
    for (name, how), kind in itertools.product(PRINTS.items(), CONTENT):
        if how.dots and not kind.startswith("DataMatrix"):
            continue
        code = drawn(kind, how)
        half = room(code, how.angle_deg)
        free = np.array(size) - 2 * half
        if free.min() < 0:
            continue
        share = chance.uniform(size=2) if how.at is None else np.array(how.at)
        x, y = half + share * free
        frame = laid(ground(how.ground, size, grounds), code, (x, y), how.angle_deg)
        yield name, seen(frame, how, chance), [CONTENT[kind]]
    for n in range(15):
        how = Print(px=float(chance.choice([2.5, 3, 4])), ground=205 if n % 3 == 0 else f"picture {n}")
        frame, told = ground(how.ground, size, grounds), []
        for column, kind in enumerate(list(CONTENT)[n % 6 : n % 6 + 5]):
            code = drawn(kind, how)
            angle_deg = float(chance.choice([0, 90, 180])) + chance.uniform(-5, 5)
            half = room(code, angle_deg)
            at = np.array([(column + 0.5) / 5, chance.uniform(0.3, 0.7)]) * size
            if 2 * half[0] < size[0] / 5 and half[1] < 0.3 * size[1]:
                frame = laid(frame, code, tuple(at), angle_deg)
                told.append(CONTENT[kind])
        yield "several", seen(frame, how, chance), told


def ground(which: int | str, size: tuple[int, int], grounds: Sequence[Picture]) -> Picture:
    """A frame without a code."""
    if isinstance(which, int) or not grounds:
        level = which if isinstance(which, int) else 150
        return np.full((size[1], size[0], 3), level, np.uint8)
    picture = grounds[int(which.split()[1]) % len(grounds)]
    high, wide = picture.shape[:2]
    return np.asarray(np.tile(picture, (-(-size[1] // high), -(-size[0] // wide), 1))[: size[1], : size[0]], np.uint8)


def seen(frame: Picture, how: Print, chance: np.random.Generator) -> Picture:
    """The frame as a camera sees it."""
    soft = cv2.GaussianBlur(frame, (0, 0), how.blur)
    noisy = soft + chance.normal(0, how.noise, (*soft.shape[:2], 1))
    return np.asarray(np.clip(noisy, 0, 255), np.uint8)


def by_places(image: Picture, formats: Sequence[str]) -> set[str]:
    return {code.text for code in CodeReader().read(image, formats)}


def whole(image: Picture, formats: Sequence[str]) -> set[str]:
    with mock.patch.object(code_reader, "_searches", everywhere):
        return by_places(image, formats)


def everywhere(grey: Picture, formats: Sequence[str]) -> list[tuple[Sequence[str], Window]]:
    return [(formats, Window(0, 0, grey.shape[1], grey.shape[0]))]


def spent(search: Search, image: Picture, formats: Sequence[str], rounds: int) -> tuple[set[str], float]:
    """What was found, and the CPU ms of the fastest round."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        found = search(image, formats)
        times.append((time.process_time() - began) * 1e3)
    return found, min(times)


class Row:
    """Figures of one kind of frame, of `whole` and `by_places`."""

    def __init__(self) -> None:
        self.frames = self.codes = 0
        self.found, self.ms = [0, 0], [0.0, 0.0]

    def add(
        self, image: Picture, told: Sequence[str], formats: Sequence[str], rounds: int
    ) -> tuple[set[str], set[str]]:
        """What each found of what stands there."""
        self.frames += 1
        self.codes += len(told)
        right: list[set[str]] = [set(), set()]
        for n, search in sorted(enumerate((whole, by_places)), reverse=self.frames % 2 == 0):
            found, ms = spent(search, image, formats, rounds)
            right[n] = {text for text in told if any(one.endswith(text) for one in found)}  # a UPC-A is an EAN-13 too
            self.found[n] += len(right[n])
            self.ms[n] += ms
        return right[0], right[1]

    def __str__(self) -> str:
        one, other = (ms / self.frames for ms in self.ms)
        found = f"{self.codes:6} {self.found[0]:6} {self.found[1]:6}"
        return f"{self.frames:6} {found} {one:9.1f} {other:9.1f} {other / one:6.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1280x720", metavar="WxH")
    parser.add_argument("--every", type=int, default=1, help="draw every n-th frame alone")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--frames", type=Path, metavar="DIR", help="pictures for grounds")
    given: Any = parser.parse_args()
    cv2.setNumThreads(1)
    wide, high = (int(side) for side in given.size.split("x"))
    pictures = [] if given.frames is None else sorted(p for p in given.frames.iterdir() if p.suffix in (".jpg", ".png"))
    grounds = [np.asarray(cv2.imread(str(path)), np.uint8) for path in pictures]
    rows: dict[str, Row] = defaultdict(Row)
    for n in range(len(grounds)):
        ours = ground(f"picture {n}", (wide, high), grounds)
        rows["pictures as they are"].add(ours, (), FieldsConfig().codes, given.rounds)
    plain = seen(ground(205, (wide, high), ()), Print(), np.random.default_rng(0))
    rows["nothing but noise"].add(plain, (), FieldsConfig().codes, given.rounds)
    for name, frame, told in itertools.islice(frames((wide, high), grounds), 0, None, given.every):
        was, now = rows[name].add(frame, told, FORMATS, given.rounds)
        for text in was ^ now:
            print(f"  {name}: {text} {'lost' if text in was else 'found'}")
    print(f"{'':22}{'frames':>6} {'codes':>6} {'whole':>6} {'places':>6} {'CPU ms':>9} {'':>9} {'ratio':>6}")
    for name, row in rows.items():
        print(f"{name:22}{row}")


if __name__ == "__main__":
    main()
