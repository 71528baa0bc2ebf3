"""Evidence: real files, real JPEG."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import cv2
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
from tests.broker import DEADLINE_S, wait_until
from tests.conftest import ROOT

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


def in_child(script: str, folder: Path, *before: str) -> Any:
    """What the script prints as JSON; it has this module's `evidence`, `store` and `kept_in`, and `folder`."""
    head = (
        "import json, os, resource, subprocess, sys\nfrom pathlib import Path\n"
        "from tests.test_evidence import evidence, kept_in, offered\nfrom tests.test_evidence import store\n"
        "folder = Path(sys.argv[1])\n"
    )
    command = [*before, sys.executable, "-c", head + textwrap.dedent(script), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def offered(kept: EvidenceStore, piece: Evidence) -> tuple[bool, str | None]:
    """Whether its id may be told, and what is wrong once it was written, or was not."""
    before = kept.kept + kept.lost
    told = kept.offer(piece)
    wait_until(lambda: kept.kept + kept.lost > before, "it is written or lost")
    return told, kept.fault


def kept_in(folder: Path) -> list[int]:
    """The numbers of what can be read back; nothing else may be there."""
    pieces = list(list_evidence(folder))
    assert {path.name for path in folder.iterdir() if path.name != "ballast"} == {
        path.with_suffix(suffix).name for path in pieces for suffix in (".jpg", ".json")
    }
    return [int(read_evidence(path).content["id"], 16) for path in pieces]


def unprivileged_mounts() -> list[str]:
    """The command in which folders can be mounted; skips where this machine lets nobody."""
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    try:
        able = subprocess.run([*command, "true"], capture_output=True, timeout=DEADLINE_S, check=False).returncode == 0
    except FileNotFoundError:
        able = False
    if not able:
        pytest.skip("needs unshare(1) and user namespaces, which this machine has not or does not allow")
    return command


def test_disk_that_is_full_or_read_only_costs_evidence_only_and_is_tried_again(tmp_path: Path) -> None:
    script = """
        def mount(*options):
            subprocess.run(["mount", "-t", "tmpfs", "-o", *options, "tmpfs", folder], check=True)
        mount("size=64k")
        (folder / "ballast").write_bytes(bytes(32_768))
        told = []
        with store(folder, told) as kept:
            full = [offered(kept, evidence(n)) for n in range(1, 6)]
            then = kept_in(folder)
            (folder / "ballast").unlink()
            again = [offered(kept, evidence(n)) for n in (6,)]
            mount("remount,ro,size=256k")
            read_only = [offered(kept, evidence(n)) for n in (7, 8)]
            mount("remount,rw,size=256k")
            after = [offered(kept, evidence(n)) for n in (9, 10)]
            print(json.dumps([full, then, again, read_only, after, kept_in(folder), kept.lost, told]))
    """
    full, then, again, read_only, after, left, lost, told = in_child(script, tmp_path, *unprivileged_mounts())
    fitted = len(then)
    assert 1 <= fitted <= 3
    assert then == list(range(1, fitted + 1))
    assert full[:fitted] == [[True, None]] * fitted
    # the first loss is not known when its id is told
    assert [tells for tells, _ in full[fitted:]] == [True] + [False] * (4 - fitted)
    assert all(fault.endswith("No space left on device") for _, fault in full[fitted:])
    assert again == [[False, None]]
    assert [tells for tells, _ in read_only] == [True, False]
    assert all("Read-only file system" in fault for _, fault in read_only)
    assert after == [[False, None], [True, None]]
    assert left == [*then, 6, 9, 10]
    assert lost == len(told) == 5 - fitted + 2
    assert {kind for kind, _ in told} == {"evidence_lost"}
    assert all(text.endswith("; reading goes on") for _, text in told)


def test_picture_whose_text_cannot_be_written_does_not_stay_alone(tmp_path: Path) -> None:
    script = """
        from dataclasses import replace
        piece = replace(evidence(1), reading={**evidence(1).reading, "language": "x" * 100_000})
        resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, resource.RLIM_INFINITY))
        with store(folder) as kept:
            found = [offered(kept, piece), offered(kept, evidence(2))]
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            print(json.dumps([found, kept_in(folder)]))
    """
    ((told, fault), second), left = in_child(script, tmp_path)
    assert told and fault.endswith("File too large")
    assert (second, left) == ([False, None], [2])


@pytest.mark.parametrize("place", ["file", "file/below", "file-in-the-way"])
def test_folder_that_cannot_be_one_costs_evidence_only(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / place
    if place == "file-in-the-way":
        folder = tmp_path / "folder"
        folder.mkdir()
        for ending in (".jpg", ".json"):
            (folder / f"1800000000000-{1:024x}{ending}").mkdir()  # of the name that it will want
    told: list[tuple[str, str]] = []
    settings = EvidenceConfig(keep_s=1e8)
    with EvidenceStore(folder, settings, lambda kind, text: told.append((kind, text)), lambda: 1.8e9) as kept:
        assert offered(kept, evidence(1))[1] is not None
        (tmp_path / "file").unlink()
        assert offered(kept, evidence(2)) == (False, None)
    assert (kept.kept, kept.lost, len(told)) == (1, 1, 1)


def test_process_killed_while_it_writes_leaves_nothing_that_a_reader_trips_over(tmp_path: Path) -> None:
    writer = (
        "import sys\nfrom pathlib import Path\nfrom tests.test_evidence import evidence, store\n"
        "import time\nwith store(Path(sys.argv[1])) as kept:\n    n = 0\n    while True:\n"
        "        n += kept.offer(evidence(n))\n        time.sleep(0.0005)\n"
    )
    command = [sys.executable, "-c", writer, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            wait_until(lambda: len(list(tmp_path.glob("*.json"))) > 20, "some pieces", 60)
        finally:
            process.kill()
    pieces = list(list_evidence(tmp_path))
    assert len(pieces) > 20
    assert {read_evidence(path).content["item"]["verdict"] for path in pieces} == {"FAIL"}
    assert find_evidence(tmp_path, f"{1:024x}") in pieces
    # what it had half done goes with the next piece, or in its turn
    (tmp_path / f".1800000000000-{5:024x}.json-ab.partial").write_bytes(b"{")
    with store(tmp_path) as kept:
        assert offered(kept, evidence(10_000)) == (True, None)
    assert not list(tmp_path.glob(".*"))


def test_disk_that_hangs_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    monkeypatch.setattr("edge_agent.background.CLOSE_S", 0.05)
    monkeypatch.setattr(room, "write_atomically", lambda *args, **keys: released.wait(DEADLINE_S))
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


def huge_jpeg() -> bytes:
    """A small file that says of itself that it has 65,500 x 65,500 pixels."""
    jpeg = bytearray(cv2.imencode(".jpg", np.zeros((100, 200, 3), np.uint8))[1].tobytes())
    at = jpeg.index(b"\xff\xc0") + 5
    jpeg[at : at + 4] = b"\xff\xdc\xff\xdc"
    return bytes(jpeg)


def test_picture_that_is_cut_short_or_larger_than_it_should_be_is_refused_undecoded(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        kept.offer(evidence())
    (path,) = list_evidence(tmp_path)
    jpeg = path.with_suffix(".jpg").read_bytes()
    for content in (jpeg[: len(jpeg) // 2], huge_jpeg()):  # OpenCV paints over the half, and would take 12 GB
        path.with_suffix(".jpg").write_bytes(content)
        with pytest.raises(ValueError, match="is no picture of it"):
            read_evidence(path)


def test_pipe_or_link_to_a_device_of_that_name_is_not_waited_for(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        kept.offer(evidence())
    (path,) = list_evidence(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    for place in (path, path.with_suffix(".jpg")):
        content = place.read_bytes()
        for other in (tmp_path / "pipe", Path("/dev/zero")):
            place.unlink()
            place.symlink_to(other)
            with pytest.raises(FileNotFoundError):
                read_evidence(path)
        place.unlink()
        place.write_bytes(content)
    assert read_evidence(path).content["id"] == f"{1:024x}"


def test_folder_stands_beside_the_outbox_and_nowhere_without_one(tmp_path: Path) -> None:
    beside = Config(outbox=OutboxConfig(path=tmp_path / "outbox.db"))
    assert find_evidence_dir(beside) == tmp_path / "evidence"
    assert find_evidence_dir(Config(outbox=OutboxConfig(kind="memory"))) is None
    named = Config(outbox=OutboxConfig(kind="memory"), evidence=EvidenceConfig(directory=tmp_path / "kept"))
    assert find_evidence_dir(named) == tmp_path / "kept"
    assert find_evidence_dir(Config(evidence=EvidenceConfig(keep=()))) is None
