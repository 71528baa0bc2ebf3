"""Print that is hard to read, by real models: turned, faint, glaring, blurred, small, of dots, in regions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import cv2
import numpy as np
import pytest
from PIL import ImageFont

from edge_agent.cameras.image_file import decode_image
from edge_agent.cameras.pixels import to_bgr
from edge_agent.config import Config
from edge_agent.models.spec import find_models_dir
from edge_agent.patterns import Pattern
from edge_agent.pipeline import Pipeline, load_pipeline
from edge_agent.records import Frame, Quad, Reading, TextBox
from edge_agent.settings.cameras import CameraConfig
from edge_agent.settings.expected import Rule
from edge_agent.settings.pipeline import PipelineConfig
from edge_agent.settings.roi import RoiConfig
from edge_agent.stages.constrained import decode
from edge_agent.stages.merge import merged
from edge_agent.verify.expectation import Expectation
from tests.prints import DATE_AND_LOT, DEJAVU, Picture, dotted, drawn, placed, turned

BASE = drawn(DATE_AND_LOT)
DATE = "expiry_date"


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Pipeline]:
    with load_pipeline(Config(pipeline=PipelineConfig(encoder=None)), find_models_dir()) as loaded:
        yield loaded


def read(pipeline: Pipeline, picture: Picture, camera: str = "line1") -> Reading:
    return pipeline.read(Frame(camera, 0, 1000.0, 10.0, np.ascontiguousarray(picture)))


def texts(reading: Reading) -> list[str]:
    return [line.text for line in reading.lines]


def says(reading: Reading, printed: Sequence[str]) -> bool:
    """Whether these lines were read, but for characters that are doubtful and whose rival was printed."""
    return len(reading.lines) == len(printed) and all(
        len(line.text) == len(text)
        and all(line.text[n] == c or (n in line.doubtful and line.characters[n].rival == c) for n, c in enumerate(text))
        for line, text in zip(reading.lines, printed, strict=True)
    )


def with_rois(pipeline: Pipeline, **rois: RoiConfig) -> None:
    camera = CameraConfig(kind="folder", source="frames", rois=rois)
    pipeline.tune(Config(cameras={"line1": camera}, pipeline=PipelineConfig(encoder=None)))


@pytest.fixture
def whole(pipeline: Pipeline) -> Iterator[Pipeline]:
    """The pipeline, without regions again afterwards."""
    yield pipeline
    with_rois(pipeline)


# --- turned ---


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_same_lines_in_the_same_order_whichever_way_the_label_lies(pipeline: Pipeline, turns: int) -> None:
    reading = read(pipeline, np.rot90(BASE, turns))
    assert texts(reading) == list(DATE_AND_LOT)
    expected = {0: 0, 1: -90, 2: 180, 3: 90}[turns]
    for line in reading.lines:
        assert abs((line.box.quad.angle_deg - expected + 180) % 360 - 180) < 5


@pytest.mark.parametrize("angle_deg", [15, -15, 165])
def test_skewed_label_reads_in_the_same_order(pipeline: Pipeline, angle_deg: float) -> None:
    assert says(read(pipeline, turned(BASE, angle_deg)), DATE_AND_LOT)


@pytest.mark.parametrize("character", ["1", "I", "L"])
def test_lone_tall_character_is_not_turned(pipeline: Pipeline, character: str) -> None:
    reading = read(pipeline, drawn([character], 90, sides_px=(300, 200)))
    assert reading.lines
    for line in reading.lines:
        assert abs(line.box.quad.angle_deg) < 20
        unsure = line.confidence < 0.8 or line.doubtful or line.flags
        assert line.text == character or unsure, line


def test_stacked_letters_are_one_text_and_flagged(pipeline: Pipeline) -> None:
    (line,) = read(pipeline, drawn(list("L4711"), 32, sides_px=(300, 300))).lines
    assert line.text == "L4711"
    assert "stacked" in line.flags or abs(line.box.quad.angle_deg) > 80


@pytest.fixture
def expecting(pipeline: Pipeline) -> Iterator[Callable[..., Pipeline]]:
    """The pipeline, its cameras expecting one rule; nothing again afterwards."""

    def expect(**rule: str) -> Pipeline:
        expectation = Expectation("job-7", (Rule(**rule),))
        pipeline.expected = lambda camera: expectation
        return pipeline

    yield expect
    pipeline.expected = lambda camera: None


def on_its_head(*printed: str) -> Picture:
    label = np.full((320, 700, 3), 255, np.uint8)
    label[60:260, 60:] = drawn(printed, 40)
    return np.asarray(label[::-1, ::-1], np.uint8)


@pytest.mark.parametrize(("printed", "on_head"), [("9066", "9906"), ("8808", "8088"), ("SIS 9066", "9906 SIS")])
def test_print_that_reads_both_ways_up_stands_as_is_expected(
    expecting: Callable[..., Pipeline], printed: str, on_head: str
) -> None:
    picture = on_its_head(printed)
    (line,) = read(expecting(text=on_head), picture).lines
    assert (line.text, line.flags) == (on_head, ())
    (line,) = read(expecting(text=printed), picture).lines
    assert (line.text, line.flags) == (printed, ("turned",))
    assert abs(abs(line.box.quad.angle_deg) - 180) < 5
    (line,) = read(expecting(text="4711"), picture).lines
    assert (line.text, line.flags) == (on_head, ()), "it fits neither way"


def test_field_that_was_turned_is_certain_and_says_so(expecting: Callable[..., Pipeline]) -> None:
    reading = read(expecting(field="lot", pattern="/9066[0-9]{2}/"), on_its_head("906689", "6808"))
    assert texts(reading) == ["906689", "6808"]
    (lot,) = reading.fields
    assert (lot.name, lot.value, lot.flags, lot.certain) == ("lot", "906689", ("turned",), True)


def test_line_that_reads_one_way_alone_tells_which_way_is_up(expecting: Callable[..., Pipeline]) -> None:
    for picture in (on_its_head("EXP 14/08/2026", "9066"), on_its_head("EXP 14/08/2026", "9066")[::-1, ::-1]):
        reading = read(expecting(text="9906"), picture)
        assert texts(reading) == ["EXP 14/08/2026", "9066"]
        assert all(not line.flags for line in reading.lines)


def test_region_of_a_fixed_angle_is_not_turned_by_what_is_expected(
    whole: Pipeline, expecting: Callable[..., Pipeline]
) -> None:
    with_rois(whole, label=RoiConfig(angle_deg=0))
    (line,) = read(expecting(text="9066"), on_its_head("9066")).lines
    assert (line.text, line.flags) == ("9906", ())


# --- spaces ---


def test_spaces_are_read_as_they_are_printed(pipeline: Pipeline) -> None:
    printed = ["BEST BEFORE 12 AUG 2026", "NET WT 500 g", "8709 2221 6898"]
    reading = read(pipeline, drawn(printed, 28))
    assert texts(reading) == printed
    assert [(field.name, field.value, field.text) for field in reading.fields] == [
        (DATE, "2026-08-12", "12 AUG 2026"),
        ("weight_volume", "500 g", "500 g"),
        ("barcode_digits", "870922216898", "8709 2221 6898"),
    ]


# --- order, duplicates ---

KEYS_AND_VALUES = (
    ("Batch:", 60, 104, 90, 30),
    ("A123", 260, 96, 80, 30),
    ("Expiry:", 480, 102, 95, 30),
    ("08/2026", 680, 92, 120, 30),
)


@pytest.mark.parametrize("how", ["as it is", "turned by 3 degrees", "four times as large"])
def test_values_stand_behind_their_keys_though_a_little_higher(pipeline: Pipeline, how: str) -> None:
    row = placed(KEYS_AND_VALUES, (860, 220), 4 if how == "four times as large" else 1)
    reading = read(pipeline, turned(row, 3, 1.2) if how == "turned by 3 degrees" else row)
    assert " ".join(texts(reading)) == "Batch: A123 Expiry: 08/2026"
    assert [(field.name, field.value) for field in reading.fields] == [("lot", "A123"), (DATE, "2026-08-31")]


@pytest.mark.parametrize(
    ("printed", "boxes"),
    [
        (("SN: 210990", 100, 50, 645, 60), [(96, 44, 314, 70), (373, 46, 376, 70)]),
        (("LOT 4711", 24, 24, 190, 42), [(20, 20, 200, 50), (120, 24, 96, 42)]),
    ],
    ids=["overlapping", "nested"],
)
def test_text_that_was_found_in_two_boxes_is_read_once(
    pipeline: Pipeline, printed: tuple[str, int, int, int, int], boxes: list[tuple[int, int, int, int]]
) -> None:
    picture = placed([printed], (860, 170))
    corners = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h)] for x, y, w, h in boxes]
    found = merged([TextBox(Quad(np.array(each, np.float32)), 0.8) for each in corners])
    (line,) = pipeline.recogniser.recognise(picture, found)
    assert line.text.replace(" ", "") == printed[0].replace(" ", "")
    assert texts(read(pipeline, picture)) == [printed[0]]


def test_two_equal_texts_far_apart_both_stay(pipeline: Pipeline) -> None:
    label = drawn(["LOT 4711"])
    reading = read(pipeline, np.concatenate([label, np.full((300, 640, 3), 255, np.uint8), label]))
    assert texts(reading) == ["LOT 4711", "LOT 4711"]


# --- faint, glare, blur, nothing ---


@pytest.mark.parametrize("ink", [118, 124])
def test_faint_print_is_read_and_said_to_be_faint(pipeline: Pipeline, ink: int) -> None:
    reading = read(pipeline, drawn(DATE_AND_LOT, ground=128, ink=ink))
    assert texts(reading) == list(DATE_AND_LOT)
    assert reading.quality == ("faint",)


def test_contrast_of_a_region_can_be_left_as_it_is(whole: Pipeline) -> None:
    with_rois(whole, date=RoiConfig(contrast="off"))
    reading = read(whole, drawn(DATE_AND_LOT, ground=128, ink=124))
    assert reading.lines == () and reading.quality == ("faint",)


def test_noise_alone_is_no_faint_print(pipeline: Pipeline) -> None:
    noise = np.random.default_rng(0).normal(0, 2, (200, 640, 1))
    reading = read(pipeline, np.clip(np.full((200, 640, 3), 128) + noise, 0, 255).astype(np.uint8))
    assert (reading.lines, reading.reason, reading.quality) == ((), "no_text", ("blank",))


def test_glare_is_said_and_makes_no_date(pipeline: Pipeline) -> None:
    lit = BASE.copy()
    cv2.circle(lit, (170, 40), 60, (255, 255, 255), -1)
    reading = read(pipeline, lit)
    assert reading.quality == ("glare",)
    assert not [field for field in reading.fields if field.name.endswith("date")]


def test_date_whose_day_lies_in_glare_is_not_certain(pipeline: Pipeline) -> None:
    picture = drawn(["EXP 12.09.2027"], ground=200)
    (line,) = read(pipeline, picture).lines
    left, width = line.box.quad.points[0, 0], line.box.quad.width_px
    picture = picture.copy()
    picture[:, int(left + 0.27 * width) : int(left + 0.48 * width)] = 255  # over `12.`
    reading = read(pipeline, picture)
    (field,) = (field for field in reading.fields if field.name == "expiry_date")
    assert (field.value, field.certain) == ("2027-09-30", False)
    assert "glare" in field.flags


@pytest.mark.parametrize("blur", ["out of focus", "moved"])
def test_blur_is_said_and_makes_no_date(pipeline: Pipeline, blur: str) -> None:
    kernel = np.full((1, 25), 1 / 25, np.float32)
    picture = cv2.GaussianBlur(BASE, (0, 0), 6) if blur == "out of focus" else cv2.filter2D(BASE, -1, kernel)
    reading = read(pipeline, np.asarray(picture, np.uint8))
    assert reading.quality == ("blurred",)
    assert reading.reason == "no_text" and reading.fields == ()


@pytest.mark.parametrize(("level", "quality"), [(0, ("blank", "dark")), (255, ("blank",))])
def test_flat_picture_says_why_nothing_was_read(pipeline: Pipeline, level: int, quality: tuple[str, ...]) -> None:
    reading = read(pipeline, np.full((480, 640, 3), level, np.uint8))
    assert (reading.lines, reading.reason, reading.quality) == ((), "no_text", quality)


# --- dots, codes ---


def test_letters_and_digits_that_look_alike_are_listed_and_left(pipeline: Pipeline) -> None:
    (line,) = read(pipeline, drawn(["O0O0 I1l1 S5 B8 Z2"])).lines
    assert len(line.text) == 18
    assert len(line.characters) == len(line.text)
    for n, printed in enumerate("O0O0 I1l1 S5 B8 Z2"):
        assert line.text[n] == printed or n in line.doubtful or line.text[n] in "I1l", (line.text, n)
    assert {line.characters[n].rival for n in line.doubtful} <= set("O0QDI1l|S5B8Z2G6")
    assert line.doubtful


def test_lot_is_not_altered_without_a_pattern(pipeline: Pipeline) -> None:
    assert texts(read(pipeline, BASE))[1] == "LOT A0B1O8"


@pytest.mark.skipif(not DEJAVU.exists(), reason="this line's letters are those of DejaVu")
def test_pattern_decides_between_letters_and_digits(pipeline: Pipeline) -> None:
    (line,) = read(pipeline, drawn(["O0O0 I1l1 S5 B8 Z2"])).lines
    assert line.lattice is not None
    for mask, span in (("A9A9", (0, 4)), ("9999", (0, 4)), ("A9", (10, 12)), ("99", (13, 15))):
        found = decode(line.lattice, *span, Pattern.parse(mask))
        assert found is not None and Pattern.parse(mask).matches(found.text)
        assert {(c.seen, c.taken) for c in found.corrections} <= {("O", "0"), ("0", "O"), ("B", "8"), ("S", "5")}
    assert found.text == "88"


def test_date_of_dots_is_decoded_within_its_pattern(whole: Pipeline) -> None:
    if not hasattr(ImageFont, "load_default_imagefont"):
        pytest.skip("this Pillow has no bitmap font")
    with_rois(whole, date=RoiConfig(dot_matrix=True))
    reading = read(whole, dotted("12/08/26 L4711"))
    assert " ".join(texts(reading)) == "12/08/26 L4711"
    line = reading.lines[0]
    assert line.lattice is not None
    found = decode(line.lattice, 0, 8, Pattern.parse("99/99/99"))
    assert found is not None and found.text == "12/08/26"
    assert decode(line.lattice, 0, 8, Pattern.parse("AA-AA-AAAA-AAAA")) is None


# --- large and small ---


def test_small_text_in_a_frame_of_12_megapixels_is_read_and_what_was_not_looked_at_is_told(whole: Pipeline) -> None:
    frame = np.full((3000, 4000, 3), 235, np.uint8)
    frame[500:620, 600:1000] = drawn(DATE_AND_LOT, 28, ground=235, ink=20, sides_px=(400, 120))
    frame[2500:2560, 3000:3400] = drawn(["SN 4711-22"], 28, ground=235, ink=20, sides_px=(400, 60))
    reading = read(whole, frame)
    assert (texts(reading), reading.quality) == ([*DATE_AND_LOT, "SN 4711-22"], ())
    whole.tune(Config(pipeline=PipelineConfig(encoder=None, detector_max_windows=1)))
    fewer = read(whole, frame)
    assert (texts(fewer), fewer.quality) == (list(DATE_AND_LOT), ("unsearched",))
    assert 600 < reading.lines[0].box.quad.points[0][0] < 640 and 500 < reading.lines[0].box.quad.points[0][1] < 540


def test_text_too_small_to_be_believed_is_flagged(pipeline: Pipeline) -> None:
    for size_px, is_small in ((6, True), (8, True), (12, False)):
        for line in read(pipeline, drawn(DATE_AND_LOT, size_px)).lines:
            assert ("too_small" in line.flags) is is_small, (size_px, line)


@pytest.mark.parametrize("shape", [(12, 4000), (4000, 12), (3, 3), (2000, 9), (1, 5000)])
def test_frame_of_any_shape_is_read_or_says_why_not(pipeline: Pipeline, shape: tuple[int, int]) -> None:
    reading = read(pipeline, np.full((*shape, 3), 90, np.uint8))
    assert (reading.lines, reading.reason) == ((), "no_text")


@pytest.mark.parametrize("colour", [0, 255], ids=["black", "white"])
def test_see_through_text_reads_the_same_in_black_and_in_white(pipeline: Pipeline, colour: int) -> None:
    ink = 255 - drawn(DATE_AND_LOT)[:, :, :1]
    see_through = np.concatenate([np.full((*ink.shape[:2], 3), colour, np.uint8), ink], axis=2)
    written, content = cv2.imencode(".png", see_through)
    assert written
    assert says(read(pipeline, decode_image(content.tobytes(), max_pixels=1_000_000)), DATE_AND_LOT)


@pytest.mark.parametrize("kind", ["16 bit", "float", "grey", "bool", "turned over"])
def test_pixels_of_any_kind_read_the_same(pipeline: Pipeline, kind: str) -> None:
    grey = BASE[:, :, 0]
    pixels = {
        "16 bit": grey.astype(np.uint16) * 257,
        "float": grey.astype(np.float64) / 255,
        "grey": grey[:, :, None],
        "bool": grey > 127,
        "turned over": BASE[:, ::-1, ::-1][:, ::-1],  # not contiguous
    }[kind]
    assert says(read(pipeline, to_bgr(pixels, max_pixels=1_000_000)), DATE_AND_LOT)


# --- regions ---


def test_regions_are_read_each_on_its_own_with_its_angle(whole: Pipeline) -> None:
    frame = np.full((700, 700, 3), 255, np.uint8)
    frame[:200, :640] = BASE
    frame[220 : 220 + 400, 480:680] = np.rot90(drawn(["SN 4711-22"], sides_px=(400, 200)), 2 + 1)
    with_rois(
        whole,
        serial=RoiConfig(x=0.6, width=0.4, y=0.3, height=0.6, angle_deg=90),
        label=RoiConfig(height=0.2857, angle_deg=0),
    )
    reading = read(whole, frame)
    assert texts(reading) == ["SN 4711-22", *DATE_AND_LOT]
    assert [line.region for line in reading.lines] == ["serial", "label", "label"]
    serial = reading.lines[0].box.quad
    assert abs(serial.angle_deg - 90) < 5
    assert serial.points[:, 0].min() > 480 and serial.points[:, 1].min() > 200
    assert abs(reading.lines[1].box.quad.points[0][0] - 18) < 8
    assert [line.region for line in read(whole, frame, camera="other").lines] == [None, None, None]


def test_label_upside_down_in_a_region_of_that_angle_reads_forward(whole: Pipeline) -> None:
    with_rois(whole, label=RoiConfig(angle_deg=180))
    reading = read(whole, np.rot90(BASE, 2))
    assert texts(reading) == list(DATE_AND_LOT)
    assert all(abs(abs(line.box.quad.angle_deg) - 180) < 5 for line in reading.lines)


def test_text_that_the_region_cuts_is_flagged(whole: Pipeline) -> None:
    with_rois(whole, half=RoiConfig(width=0.25))
    assert all("cut" in line.flags for line in read(whole, BASE).lines)
