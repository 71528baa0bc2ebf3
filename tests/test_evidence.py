"""Evidence: real files, real JPEG."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge_agent import evidence as room
from edge_agent.config import Config
from edge_agent.evidence import (
    Crop,
    Evidence,
    EvidenceStore,
    crop_around,
    find_evidence,
    find_evidence_dir,
    list_evidence,
    read_evidence,
)
from edge_agent.records import Frame, Quad, Reading
from edge_agent.settings.evidence import EvidenceConfig
from edge_agent.settings.expected import Rule
from edge_agent.settings.outbox import OutboxConfig
from edge_agent.verify.expectation import Expectation
from tests.broker import wait_until

rng = np.random.default_rng(5)
IMAGE = rng.integers(0, 255, (360, 640, 3), np.uint8)


def quad(x: float, y: float, width: float, height: float) -> Quad:
    return Quad(np.array([[x, y], [x + width, y], [x + width, y + height], [x, y + height]], np.float32))


def evidence(number: int = 1, crop: Crop = Crop(40, 30, 200, 100)) -> Evidence:  # noqa: B008 - a frozen value
    reading = Reading("line1", number, 5.0, 640, 360)
    said: dict[str, Any] = {"camera": "line1", "verdict": "FAIL"}
    expectation = Expectation("job", (Rule(field="lot"),), {"top": (Rule(field="serial"),)})
    frame = Frame("line1", number, 5.0, 5.0, IMAGE)
    return Evidence(f"{number:024x}", frame, crop, said, reading.to_json(), expectation, "2026-11-30", True)


def store(folder: Path, told: list[tuple[str, str]] | None = None, **settings: Any) -> EvidenceStore:
    said = [] if told is None else told
    return EvidenceStore(folder, EvidenceConfig(**settings), lambda kind, text: said.append((kind, text)))


def test_evidence_is_found_by_its_id_and_holds_picture_rules_and_what_was_read(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        assert kept.offer(evidence(7))
    path = find_evidence(tmp_path, f"{7:024x}")
    assert path is not None
    piece = read_evidence(path)
    assert piece.picture.shape == (100, 200, 3)
    assert piece.content["expectation"] == {
        "id": "job",
        "expected": [{"field": "lot"}],
        "rois": {"top": [{"field": "serial"}]},
    }
    assert (piece.content["today"], piece.content["item"]["verdict"]) == ("2026-11-30", "FAIL")
    canvas = piece.canvas
    assert canvas.shape == IMAGE.shape
    assert np.array_equal(canvas[30:130, 40:240], piece.picture)
    assert (kept.kept, kept.lost, kept.fault) == (1, 0, None)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["../../etc/passwd", "*", "0" * 23, "", "A" * 24])
def test_only_an_id_is_looked_for(tmp_path: Path, name: str) -> None:
    with store(tmp_path) as kept:
        kept.offer(evidence())
    assert find_evidence(tmp_path, name) is None


def test_oldest_pieces_go_first_beyond_the_bytes_picture_and_text_together(tmp_path: Path) -> None:
    with store(tmp_path) as probe:
        probe.offer(evidence(0))
    size_bytes = sum(path.stat().st_size for path in tmp_path.iterdir())
    settings = EvidenceConfig.model_construct(**{**dict(EvidenceConfig()), "max_bytes": 3 * size_bytes + 200})
    now = iter(float(n) for n in range(1_800_000_000, 1_800_000_100))
    kept = EvidenceStore(tmp_path, settings, lambda kind, text: None, lambda: next(now))
    with kept:
        for number in range(1, 7):
            kept.offer(evidence(number))
            wait_until(lambda number=number: kept.kept == number, "it is written")  # type: ignore[misc]
    left = [path.name[14:38] for path in list_evidence(tmp_path)]
    assert left == [f"{number:024x}" for number in (4, 5, 6)]
    assert {path.suffix for path in tmp_path.iterdir()} == {".jpg", ".json"}
    assert len(list(tmp_path.iterdir())) == 6


def test_pieces_that_have_had_their_time_go(tmp_path: Path) -> None:
    at = 1_800_000_000.0
    now = [at]
    kept = EvidenceStore(tmp_path, EvidenceConfig(keep_s=60.0), lambda kind, text: None, lambda: now[0])
    with kept:
        for number, later in ((1, 0.0), (2, 50.0), (3, 70.0)):
            now[0] = at + later
            kept.offer(evidence(number))
            wait_until(lambda number=number: kept.kept == number, "it is written")  # type: ignore[misc]
    assert [path.name[14:38] for path in list_evidence(tmp_path)] == [f"{number:024x}" for number in (2, 3)]


def test_disk_that_takes_no_more_costs_evidence_only_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []
    full = [True]
    write = room.write_atomically

    def perhaps(*args: Any, **keys: Any) -> None:
        if full[0]:
            raise OSError(28, "No space left on device")
        write(*args, **keys)

    monkeypatch.setattr(room, "write_atomically", perhaps)
    with store(tmp_path, told) as kept:
        assert kept.offer(evidence(1))
        wait_until(lambda: kept.lost == 1, "the loss")
        assert kept.fault is not None and "No space left" in kept.fault
        full[0] = False
        assert kept.offer(evidence(2))
        wait_until(lambda: kept.kept == 1, "the next one")
    assert kept.fault is None
    ((kind, text),) = told
    assert kind == "evidence_lost" and "No space left on device; reading goes on" in text


def test_disk_that_hangs_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    monkeypatch.setattr("edge_agent.background.CLOSE_S", 0.05)
    monkeypatch.setattr(room, "write_atomically", lambda *args, **keys: released.wait(20))
    told: list[tuple[str, str]] = []
    with store(tmp_path, told) as kept:
        taken = [kept.offer(evidence(number)) for number in range(room.MOST_WAITING + 4)]
    released.set()
    assert taken[: room.MOST_WAITING] == [True] * room.MOST_WAITING
    assert not taken[-1]
    assert kept.lost >= 2
    assert "wait for the disk" in told[0][1]


def test_crop_keeps_a_margin_within_the_frame() -> None:
    reading = Reading("line1", 1, 5.0, 640, 360)
    assert crop_around(reading, [quad(300, 100, 100, 20), quad(320, 200, 40, 20)]) == Crop(276, 76, 148, 168)
    assert crop_around(reading, [quad(-10, 350, 700, 20)]) == Crop(0, 326, 640, 34)
    assert crop_around(reading, []) == Crop(0, 0, 640, 360)


@pytest.mark.parametrize(
    "change",
    [
        {"crop": {"x": 600, "y": 30, "width": 200, "height": 100}},
        {"crop": {"x": -40, "y": 30, "width": 200, "height": 100}},
        {"crop": {"x": 0, "y": 0, "width": 10, "height": 10}},
        {"reading": {"frame": {"width_px": 10**6, "height_px": 10**6}}},
        {"reading": {}},
    ],
)
def test_evidence_that_somebody_has_changed_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with store(tmp_path) as kept:
        kept.offer(evidence())
    (path,) = list_evidence(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **change}))
    with pytest.raises(ValueError, match="evidence|picture"):
        read_evidence(path)


@pytest.mark.parametrize(
    ("ending", "content"), [(".jpg", b""), (".json", b""), (".json", b"[" * 200_000), (".jpg", b"no")]
)
def test_evidence_that_a_power_cut_has_left_empty_or_that_is_damaged_is_refused(
    tmp_path: Path, ending: str, content: bytes
) -> None:
    with store(tmp_path) as kept:
        kept.offer(evidence())
    (path,) = list_evidence(tmp_path)
    path.with_suffix(ending).write_bytes(content)
    with pytest.raises(ValueError):
        read_evidence(path)


def test_folder_stands_beside_the_outbox_and_nowhere_without_one(tmp_path: Path) -> None:
    beside = Config(outbox=OutboxConfig(path=tmp_path / "outbox.db"))
    assert find_evidence_dir(beside) == tmp_path / "evidence"
    assert find_evidence_dir(Config(outbox=OutboxConfig(kind="memory"))) is None
    named = Config(outbox=OutboxConfig(kind="memory"), evidence=EvidenceConfig(directory=tmp_path / "kept"))
    assert find_evidence_dir(named) == tmp_path / "kept"
    assert find_evidence_dir(Config(evidence=EvidenceConfig(keep=()))) is None
