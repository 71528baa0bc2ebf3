"""Scene: cartons with labels pass by on a conveyor belt, drawn frame by frame with the truth of every text.

The plane of the belt has its own pixels, about as large as the frame's. One homography brings it into the frame:
the camera looks down, slightly tilted. The belt runs to the left and everything on it repeats, so that frame
`frames` equals frame 0 and a looped video has no seam.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.demo.labels import Label, PlacedText, RenderedLabel, render_label

Picture = npt.NDArray[np.uint8]
Matrix = npt.NDArray[np.float64]

WIDTH_PX = 1280
HEIGHT_PX = 720
PITCH_PX = 1320  # from one carton to the next: each is alone in the picture for most of its way
STEP_PX = 22  # the belt's way from one frame to the next
LABEL_WIDTH_PX = 560
CARTON_PX = (700, 500)
MARGIN_PX = 60  # around a carton, for its shadow
LINK_PX = 120  # one link of the belt; divides PITCH_PX

# where the corners (0, 0), (W, 0), (W, H), (0, H) of the belt's plane come to lie in the frame
_SEEN_AT = ((46, 26), (WIDTH_PX - 46, 26), (WIDTH_PX + 16, HEIGHT_PX + 8), (-16, HEIGHT_PX + 8))
_BELT_TOP_PX, _BELT_BOTTOM_PX = 44, 668
# blue, green, red
_CARDBOARD = (
    (122, 164, 196),
    (208, 214, 216),
    (118, 158, 188),
    (150, 176, 196),
    (196, 204, 208),
    (112, 152, 184),
)  # BGR
_TILT_DEG = (-2.4, 1.8, 3.1, -1.2, 2.2, -3.0)
_SHIFT_PX = (4, -8, 6, -4, 9, -6)


@dataclass(frozen=True, eq=False)
class SceneText:
    """One text in one frame: `quad` float32 (4, 2) px of the frame; `cut` where it does not lie wholly inside."""

    item: int
    text: str
    quad: npt.NDArray[np.float32]
    cut: bool


@dataclass(frozen=True, eq=False)
class SceneFrame:
    """`image` uint8 (720, 1280, 3) BGR and all texts that are at least partly inside."""

    image: Picture
    texts: tuple[SceneText, ...]


@dataclass(frozen=True, eq=False)
class _Item:
    """A carton from above with its shadow: `sprite` uint8 BGR premultiplied by `alpha` uint8 (H, W)."""

    sprite: Picture
    alpha: Picture
    texts: tuple[PlacedText, ...]
    tilt_deg: float
    shift_px: float


class Conveyor:
    """A belt with one carton per label, drawn here or before; `frame(i)` is the same picture every time."""

    def __init__(self, labels: Sequence[Label | RenderedLabel], seed: int = 7) -> None:
        if not labels:
            raise ValueError("a conveyor needs at least one label")
        rng = np.random.default_rng(seed)
        self._to_frame = cv2.getPerspectiveTransform(
            np.array([[0, 0], [WIDTH_PX, 0], [WIDTH_PX, HEIGHT_PX], [0, HEIGHT_PX]], np.float32),
            np.array(_SEEN_AT, np.float32),
        ).astype(np.float64)
        drawn = [label if isinstance(label, RenderedLabel) else render_label(label, LABEL_WIDTH_PX) for label in labels]
        self._items = tuple(_item(i, label, rng) for i, label in enumerate(drawn))
        self._belt = _belt(rng)
        self._rails, self._rails_mask = _rails(rng)
        self._light = _light()
        self._noise = rng.normal(0, 1.6, (HEIGHT_PX + 64, WIDTH_PX + 64, 1)).astype(np.float32)
        self._length_px = len(labels) * PITCH_PX

    @property
    def frames(self) -> int:
        """How many frames there are before everything repeats."""
        return self._length_px // STEP_PX

    def frame(self, index: int) -> SceneFrame:
        """The picture and its truth `index` steps after the first carton stood in the middle."""
        travel_px = (index % self.frames) * STEP_PX
        image = self._moving_belt(travel_px)
        texts: list[SceneText] = []
        for number, item in enumerate(self._items):
            centre_x = (number * PITCH_PX - travel_px + self._length_px / 2) % self._length_px - self._length_px / 2
            place = self._place(item, WIDTH_PX / 2 + centre_x)
            if abs(centre_x) < WIDTH_PX:
                _lay(item, place, image)
                texts += _seen(number, item, place)
        image = cv2.blur(image, (3, 1))  # what moves is smeared a little; what stands still is not
        np.copyto(image, self._rails, where=self._rails_mask)
        return SceneFrame(self._lit(image, index), tuple(texts))

    def _moving_belt(self, travel_px: int) -> Picture:
        offset = travel_px % LINK_PX
        back = np.array([[1, 0, -offset - LINK_PX], [0, 1, 0], [0, 0, 1]], np.float64)
        return np.asarray(cv2.warpPerspective(self._belt, self._to_frame @ back, (WIDTH_PX, HEIGHT_PX)), np.uint8)

    def _place(self, item: _Item, centre_x: float) -> Matrix:
        height, width = item.alpha.shape
        turn = np.eye(3)
        turn[:2] = cv2.getRotationMatrix2D((width / 2, height / 2), item.tilt_deg, 1.0)
        middle_y = (_BELT_TOP_PX + _BELT_BOTTOM_PX) / 2 + item.shift_px
        move = np.array([[1, 0, centre_x - width / 2], [0, 1, middle_y - height / 2], [0, 0, 1]], np.float64)
        return np.asarray(self._to_frame @ move @ turn, np.float64)

    def _lit(self, image: Picture, index: int) -> Picture:
        """Light falls off to the edges; the sensor adds a little noise, another for each frame."""
        y, x = (index * 29) % 64, (index * 47) % 64
        lit = image * self._light + self._noise[y : y + HEIGHT_PX, x : x + WIDTH_PX]
        return np.asarray(np.clip(lit, 0, 255), np.uint8)


def _lay(item: _Item, place: Matrix, image: Picture) -> None:
    """Draws the item over `image` in place."""
    size = (WIDTH_PX, HEIGHT_PX)
    alpha = cv2.warpPerspective(item.alpha, place, size)
    sprite = cv2.warpPerspective(item.sprite, place, size)
    left, _, width, _ = cv2.boundingRect(alpha)
    if width == 0:
        return
    columns = slice(left, left + width)
    clear = cv2.cvtColor(255 - alpha[:, columns], cv2.COLOR_GRAY2BGR)
    under = cv2.multiply(np.ascontiguousarray(image[:, columns]), clear, scale=1 / 255)
    image[:, columns] = cv2.add(under, np.ascontiguousarray(sprite[:, columns]))


def _seen(number: int, item: _Item, place: Matrix) -> list[SceneText]:
    texts = []
    for text in item.texts:
        quad = cv2.perspectiveTransform(text.quad[None].astype(np.float64), place)[0].astype(np.float32)
        x, y = quad[:, 0], quad[:, 1]
        inside = (x >= 0) & (x < WIDTH_PX) & (y >= 0) & (y < HEIGHT_PX)
        if x.max() > 0 and x.min() < WIDTH_PX:
            texts.append(SceneText(number, text.text, quad, not bool(inside.all())))
    return texts


def _item(number: int, label: RenderedLabel, rng: np.random.Generator) -> _Item:
    """A carton with fluted cardboard, its front face, its shadow on the belt and the label stuck on."""
    width, height = CARTON_PX
    full = (height + 2 * MARGIN_PX, width + 2 * MARGIN_PX)
    top = slice(MARGIN_PX, MARGIN_PX + height), slice(MARGIN_PX, MARGIN_PX + width)
    front = slice(MARGIN_PX + height, MARGIN_PX + height + 26), top[1]
    sprite = np.zeros((*full, 3), np.float32)
    alpha = np.zeros(full, np.float32)
    alpha[MARGIN_PX + 18 : MARGIN_PX + height + 46, MARGIN_PX + 14 : MARGIN_PX + width + 26] = 0.62
    alpha = cv2.GaussianBlur(alpha, (0, 0), 9)
    alpha[top] = alpha[front] = 1.0
    colour = np.array(_CARDBOARD[number % len(_CARDBOARD)], np.float32)
    grain = cv2.GaussianBlur(rng.normal(0, 10, (height, width)).astype(np.float32), (0, 0), 1.1, sigmaY=2.5)
    flutes = 2.2 * np.sin(np.arange(width, dtype=np.float32) * (2 * np.pi / 9))
    sprite[top] = colour + (grain + flutes)[..., None]
    sprite[front] = colour * np.linspace(0.62, 0.42, 26, dtype=np.float32)[:, None, None]
    edge = (MARGIN_PX, MARGIN_PX), (MARGIN_PX + width - 1, MARGIN_PX + height - 1)
    cv2.rectangle(sprite, *edge, [float(c) for c in colour * 1.12], 3, cv2.LINE_AA)
    y = MARGIN_PX + (height - label.image.shape[0]) // 2
    x = MARGIN_PX + (width - label.image.shape[1]) // 2
    _stick(label.image, sprite, x, y)
    texts = tuple(PlacedText(t.text, t.quad + np.array([x, y], np.float32)) for t in label.texts)
    tilt, shift = _TILT_DEG[number % len(_TILT_DEG)], _SHIFT_PX[number % len(_SHIFT_PX)]
    painted = np.asarray(np.clip(sprite, 0, 255), np.uint8)
    return _Item(painted, np.asarray(np.clip(alpha * 255, 0, 255), np.uint8), texts, tilt, float(shift))


def _stick(label: Picture, sprite: npt.NDArray[np.float32], x: int, y: int) -> None:
    """The label on the carton: a hair of shadow on two sides, a faint sheen across the paper."""
    height, width = label.shape[:2]
    sprite[y + 2 : y + height + 3, x + 2 : x + width + 3] *= 0.72
    sheen = 0.95 + 0.05 * np.linspace(0, 1, width, dtype=np.float32)
    sprite[y : y + height, x : x + width] = label * sheen[:, None]


def _belt(rng: np.random.Generator) -> Picture:
    """Rubber links, tiled far enough past both edges of the frame for any offset."""
    tiles = WIDTH_PX // LINK_PX + 5
    grain = cv2.GaussianBlur(rng.normal(0, 9, (HEIGHT_PX + 80, LINK_PX)).astype(np.float32), (0, 0), 0.9)
    link = np.array((64, 66, 60), np.float32) + grain[..., None]
    x = np.arange(LINK_PX, dtype=np.float32)
    link += (5 * np.cos((x / LINK_PX - 0.5) * 2 * np.pi))[None, :, None]
    link[:, :3] *= 0.45  # the gap between two links
    link[:, 3:5] *= 1.3
    return np.asarray(np.clip(np.tile(link, (1, tiles, 1)), 0, 255), np.uint8)


def _rails(rng: np.random.Generator) -> tuple[Picture, npt.NDArray[np.bool_]]:
    """The guide rails above and below the belt, brushed aluminium with bolts; and where they are."""
    picture = np.zeros((HEIGHT_PX, WIDTH_PX, 3), np.uint8)
    mask = np.zeros((HEIGHT_PX, WIDTH_PX, 1), np.bool_)
    brushed = cv2.blur(rng.normal(0, 30, (HEIGHT_PX, WIDTH_PX)).astype(np.float32), (61, 1))
    for top, bottom in ((0, 44), (HEIGHT_PX - 40, HEIGHT_PX)):
        profile = 128 + 52 * np.sin(np.linspace(0.1, 3.0, bottom - top, dtype=np.float32))
        metal = np.clip(profile[:, None] + brushed[top:bottom], 0, 255)
        picture[top:bottom] = metal[..., None] * np.array((1.0, 0.985, 0.96), np.float32)
        mask[top:bottom] = True
        for x in range(100, WIDTH_PX, 270):
            _bolt(picture, x, (top + bottom) // 2)
    cv2.line(picture, (0, 43), (WIDTH_PX, 43), (40, 40, 38), 2)
    cv2.line(picture, (0, HEIGHT_PX - 40), (WIDTH_PX, HEIGHT_PX - 40), (215, 215, 210), 2)
    return picture, np.repeat(mask, 3, axis=2)


def _bolt(picture: Picture, x: int, y: int) -> None:
    cv2.circle(picture, (x + 1, y + 2), 9, (70, 70, 68), -1, cv2.LINE_AA)
    cv2.circle(picture, (x, y), 9, (172, 172, 168), -1, cv2.LINE_AA)
    corners = [(x + 5 * np.cos(a), y + 5 * np.sin(a)) for a in np.arange(6) * np.pi / 3]
    cv2.fillPoly(picture, [np.array(corners).round().astype(np.int32)], (84, 84, 80), cv2.LINE_AA)


def _light() -> npt.NDArray[np.float32]:
    """A lamp above the left third: gain 1.06 below it, about 0.75 in the far corner. float32 (H, W, 1)."""
    y, x = np.mgrid[0:HEIGHT_PX, 0:WIDTH_PX].astype(np.float32)
    distance = np.hypot((x - WIDTH_PX * 0.42) / WIDTH_PX, (y - HEIGHT_PX * 0.40) / HEIGHT_PX)
    return np.asarray(1.06 - 0.42 * distance**2 - 0.08 * distance, np.float32)[..., None]
