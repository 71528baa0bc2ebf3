"""Feeds: what the real models are given when they read real frames, recorded once and bound to what made it."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest

from edge_agent.calibrate.collect import collect
from edge_agent.calibrate.collection import Collection, Part
from edge_agent.calibrate.feed_store import FeedStore
from edge_agent.calibrate.feeds import record_feeds
from edge_agent.calibrate.frames import FolderSource
from edge_agent.calibrate.ranges import measure
from edge_agent.config import Config
from edge_agent.errors import CalibrationRefused
from edge_agent.models.spec import find_models_dir
from edge_agent.pipeline import load_pipeline
from edge_agent.records import Frame
from edge_agent.stages.lattice import Alphabet
from edge_agent.stages.text_detector import preprocess
from tests.calibrate.made_frames import folder_of

DETECTOR, RECOGNISER, ENCODER = "ppocrv4-mobile-det", "ppocrv4-mobile-rec", "minilm-l6-v2"


def config(**pipeline: object) -> Config:
    return Config.model_validate(
        {
            "backend": {"kind": "onnxruntime", "threads": 1},
            "pipeline": {"detector": DETECTOR, "recogniser": RECOGNISER, "encoder": ENCODER, **pipeline},
        }
    )


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    folder = tmp_path_factory.mktemp("collected")
    return collect(FolderSource(folder_of(folder / "frames", range(7))), folder / "collection")


@pytest.fixture(scope="module")
def recorded(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, FeedStore]]:
    """The calibration folder, and the feeds of the calibration part."""
    folder = tmp_path_factory.mktemp("calibration")
    return folder, record_feeds(collection, "calibration", config(), find_models_dir(), folder)


@pytest.fixture
def site(recorded: tuple[Path, dict[str, FeedStore]], tmp_path: Path) -> Path:
    """A calibration folder of one's own in which everything is recorded."""
    return Path(shutil.copytree(recorded[0], tmp_path / "calibration"))


def test_detector_is_given_the_very_tensors_that_reading_gives_it(
    collection: Collection, recorded: tuple[Path, dict[str, FeedStore]]
) -> None:
    """CAM-5 (c): one preprocessing for calibration and inference."""
    images = [image for _, image in collection.images("calibration")]
    with load_pipeline(config(), find_models_dir()) as pipeline:
        expected = [preprocess(image, pipeline.detector.settings) for image in images]
    feeds = list(recorded[1][DETECTOR].feeds())
    assert len(feeds) == len(images) == 4, "every frame counts, warming up and loading do not"
    for feed, tensor in zip(feeds, expected, strict=True):
        np.testing.assert_array_equal(feed["image"], tensor)


def test_seven_good_frames_all_count_and_so_does_what_is_left_after_the_last_full_batch(
    collection: Collection, tmp_path: Path
) -> None:
    """ENG-4 (c): no frame and no crop is dropped because it fills no batch."""
    parts: dict[Part, int] = {"calibration": 4, "search": 1, "held_out": 2}
    assert len(collection.frames) == sum(parts.values()) == 7
    sizes: set[int] = set()
    for part, frames in parts.items():
        stores = record_feeds(collection, part, config(encoder=None), find_models_dir(), tmp_path)
        assert len(stores[DETECTOR]) == frames
        batches = [feed["image"].shape[0] for feed in stores[RECOGNISER].feeds()]
        assert sum(batches) >= boxes_of(collection, part), "long lines are cut in pieces, none is left out"
        sizes |= set(batches)
    assert len(sizes) > 1, "there are batches that are not full"
    store = record_feeds(collection, "calibration", config(encoder=None), find_models_dir(), tmp_path)[RECOGNISER]
    path = find_models_dir() / RECOGNISER / "model.latin.onnx"
    pixels = next(node.output[0] for node in onnx.load(path).graph.node if node.op_type == "Cast")
    ranges = measure(path, [pixels], store.feeds(), len(store), ("minmax",), threads=1)
    assert ranges.batches == len(store) == sum(store.met().values())
    every = [feed["image"] for feed in store.feeds()]
    lowest, highest = min(int(image.min()) for image in every), max(int(image.max()) for image in every)
    assert ranges.by_method["minmax"][pixels] == (lowest, highest)


def boxes_of(collection: Collection, part: Part) -> int:
    """How many boxes the float detector finds on the frames of a part."""
    with load_pipeline(config(encoder=None), find_models_dir()) as pipeline:
        return sum(len(pipeline.detector.detect(image)) for _, image in collection.images(part))


def test_recogniser_is_given_the_crops_that_say_what_was_read(
    collection: Collection, recorded: tuple[Path, dict[str, FeedStore]]
) -> None:
    with load_pipeline(config(), find_models_dir()) as pipeline:
        texts = {
            unspaced(line.text)  # spaces that the network lost are put back from the picture
            for number, (_, image) in enumerate(collection.images("calibration"))
            for line in pipeline.read(Frame("line1", number, 0.0, 0.0, image)).lines
        }
        seen = set()
        alphabet = Alphabet(pipeline.recogniser.charset)
        for feed in recorded[1][RECOGNISER].feeds():
            outputs = pipeline.recogniser.engine.infer(feed)
            for index, probability in zip(outputs["index"], outputs["probability"], strict=True):
                seen.add(unspaced(alphabet.spell(index, probability).text))
    assert len(texts) > 15
    assert texts <= seen


def unspaced(text: str) -> str:
    return text.replace(" ", "")


def test_encoder_is_given_lines_and_not_the_phrases_that_it_meets_while_loading(
    recorded: tuple[Path, dict[str, FeedStore]],
) -> None:
    store = recorded[1][ENCODER]
    assert 4 <= store.rows < 60
    assert {name for feed in store.feeds() for name in feed} >= {"input_ids", "attention_mask"}


def test_recorded_feeds_are_used_again_without_reading_a_frame(
    collection: Collection, site: Path, tmp_path: Path
) -> None:
    unreadable = Collection(**{**vars(collection), "directory": tmp_path / "gone"})
    said: list[float] = []
    stores = record_feeds(unreadable, "calibration", config(), find_models_dir(), site, report=said.append)
    assert all(store.whole and store.reason == "" for store in stores.values())
    assert said == [1.0]


def test_changed_setting_records_afresh_what_comes_after_it_and_says_why(
    collection: Collection, site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = (site / DETECTOR / "feeds" / "calibration" / "manifest.json").stat().st_mtime_ns
    caplog.set_level(logging.INFO, "edge_agent.calibrate.feeds")
    record_feeds(collection, "calibration", config(min_confidence=0.4), find_models_dir(), site)
    why = "recorded: they were recorded with another settings (recognise)"
    assert [record.message for record in caplog.records] == [
        f"feeds of {model} are {why}" for model in (RECOGNISER, ENCODER)
    ]
    assert (site / DETECTOR / "feeds" / "calibration" / "manifest.json").stat().st_mtime_ns == before


def test_most_feeds_bounds_a_model_and_counts_what_was_left_out(collection: Collection, tmp_path: Path) -> None:
    stores = record_feeds(
        collection, "held_out", config(), find_models_dir(), tmp_path, {RECOGNISER: 3}, models=[RECOGNISER]
    )
    assert list(stores) == [RECOGNISER], "nothing is recorded for a model that is not asked for"
    assert len(stores[RECOGNISER]) == 3
    assert stores[RECOGNISER].left_out > 0
    assert len(stores[RECOGNISER].shapes()) > 1
    assert [path.name for path in tmp_path.iterdir()] == [RECOGNISER]


def test_frames_without_text_are_refused_with_counts_and_what_did_come_is_kept(tmp_path: Path) -> None:
    (tmp_path / "frames").mkdir()
    for number in range(7):
        coarse = np.random.default_rng(number).integers(60, 200, (3, 4, 3), np.uint8)
        cv2.imwrite(str(tmp_path / "frames" / f"{number}.png"), cv2.resize(coarse, (320, 240)))
    blurs = collect(FolderSource(tmp_path / "frames"), tmp_path / "collection")
    with pytest.raises(
        CalibrationRefused, match=rf"{RECOGNISER}: 0 crops of 4 frames \(part calibration\), at least 3"
    ):
        record_feeds(blurs, "calibration", config(), find_models_dir(), tmp_path)
    stores = record_feeds(blurs, "calibration", config(), find_models_dir(), tmp_path, models=[DETECTOR])
    assert len(stores[DETECTOR]) == 8  # each frame, and once more strengthened since it showed no text


def test_recording_that_is_killed_leaves_the_collection_usable_and_is_done_afresh(
    collection: Collection, tmp_path: Path
) -> None:
    folder = tmp_path / RECOGNISER / "feeds" / "calibration"
    script = (
        "import sys; from pathlib import Path\n"
        "from edge_agent.calibrate.collection import load\n"
        "from edge_agent.calibrate.feeds import record_feeds\n"
        "from edge_agent.models.spec import find_models_dir\n"
        "from tests.calibrate.test_feeds import config\n"
        "record_feeds(load(Path(sys.argv[1])), 'calibration', config(), find_models_dir(), Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", script, str(collection.directory), str(tmp_path)]
    with subprocess.Popen(command, cwd=Path(__file__).resolve().parents[2]) as child:
        deadline = time.monotonic() + 60
        while not list(folder.glob("*.npz")):
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.kill(child.pid, signal.SIGKILL)
    assert not (folder / "manifest.json").exists()
    assert len(list(collection.images())) == 7
    stores = record_feeds(collection, "calibration", config(), find_models_dir(), tmp_path)
    assert all(store.whole for store in stores.values())
    assert len(stores[DETECTOR]) == 4
