"""The page's colours: every text is readable on what it stands on (WCAG 2.2, 1.4.3), and nobody needs to tell red from
green."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from tests.conftest import ROOT

Vector = npt.NDArray[np.float64]

CSS = (ROOT / "edge_agent" / "web" / "page" / "style" / "base.css").read_text(encoding="utf-8")
LEAST_CONTRAST = 4.5
LEAST_CONTRAST_OF_EDGES = 3.0  # WCAG 2.2, 1.4.11
LEAST_DISTANCE = 20.0  # in CIELAB, where about 2 can just be seen side by side
# what is left of linear RGB for those who lack a kind of cones: Machado, Oliveira, Fernandes 2009, severity 1
SIGHTS = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])  # IEC 61966-2-1
TEXTS = [
    *((text, ground) for text in ("text", "quiet") for ground in ("page", "card", "sunk")),
    *((f"{name}-text", name) for name in ("accent", "pass", "fail", "no_read", "none")),
    *((f"{name}-ink", ground) for name in ("pass", "fail", "no_read", "none") for ground in ("card", f"{name}-back")),
    *(("text", f"{name}-back") for name in ("accent", "pass", "fail", "no_read", "none")),
    *(("accent", ground) for ground in ("page", "card", "accent-back")),
]


def colours(theme: str) -> dict[str, str]:
    """The colours of a theme by name."""
    start = ":root {" if theme == "light" else ':root[data-theme="dark"] {'
    block = CSS.split(start, 1)[1].split("}", 1)[0]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))


def linear(colour: str) -> Vector:
    """Linear red, green, blue, each 0..1, of an sRGB colour."""
    channels = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return np.asarray(np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4))


def luminance(colour: str) -> float:
    """Relative luminance, 0..1 (WCAG 2.2)."""
    return float(np.dot(linear(colour), (0.2126, 0.7152, 0.0722)))


def lab(rgb: Vector) -> Vector:
    """CIELAB of linear RGB under D65."""
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / (TO_XYZ @ np.ones(3))
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one: str, other: str) -> float:
    """1 for the same lightness, 21 for black on white."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(theme: str) -> None:
    known = colours(theme)
    faint = {f"{text} on {ground}": round(contrast(known[text], known[ground]), 2) for text, ground in TEXTS}
    assert {pair: ratio for pair, ratio in faint.items() if ratio < LEAST_CONTRAST} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_edges_of_fields_to_write_in_are_seen(theme: str) -> None:
    known = colours(theme)
    assert contrast(known["strong-line"], known["card"]) >= LEAST_CONTRAST_OF_EDGES


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHTS)
def test_verdicts_look_different_whatever_colours_one_sees(theme: str, sight: str) -> None:
    known = colours(theme)
    seen = {verdict: lab(SIGHTS[sight] @ linear(known[verdict])) for verdict in ("pass", "fail", "no_read")}
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) >= LEAST_DISTANCE, (one, other)
