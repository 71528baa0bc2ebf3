"""Pictures of every kind in a collection: 16 bits, grey, with alpha, enormous: used, or skipped with the reason."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.calibrate.collect import collect
from edge_agent.calibrate.collection import Collection, load
from edge_agent.calibrate.frames import FolderSource
from tests.calibrate.made_frames import folder_of, label_frame
from tests.conftest import ROOT

Pixels = npt.NDArray[Any]


def wide(image: Pixels) -> Pixels:
    return image.astype(np.uint16) * 257


def grey(image: Pixels) -> Pixels:
    return np.asarray(cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_BGR2GRAY))


def with_alpha(image: Pixels) -> Pixels:
    return np.dstack([image, np.full(image.shape[:2], np.iinfo(image.dtype).max, image.dtype)])


def write(path: Path, image: Pixels) -> None:
    ok, content = cv2.imencode(path.suffix, image)
    assert ok
    path.write_bytes(content.tobytes())


def png_that_claims(width_px: int, height_px: int) -> bytes:
    """A few hundred bytes whose pixels would fill the memory many times over."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width_px, height_px, 16, 6, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(64))) + chunk(b"IEND", b"")
    )


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """A folder with one of each kind among plain ones."""
    folder = tmp_path_factory.mktemp("odd")
    frames = folder_of(folder / "frames", range(6))
    write(frames / "wide.png", wide(label_frame(10)))
    write(frames / "wide.tiff", wide(label_frame(11)))
    write(frames / "grey.png", grey(label_frame(12)))
    write(frames / "grey.jpg", grey(label_frame(13)))
    write(frames / "grey-wide.png", wide(grey(label_frame(14))))
    write(frames / "alpha.png", with_alpha(label_frame(15)))
    write(frames / "alpha-wide.png", with_alpha(wide(label_frame(16))))
    (frames / "bomb.png").write_bytes(png_that_claims(60_000, 60_000))
    (frames / "line.png").write_bytes(png_that_claims(2_000_000_000, 1))
    write(frames / "dot.png", np.zeros((1, 1, 3), np.uint8))
    return collect(FolderSource(frames), folder / "collection")


def test_every_depth_and_number_of_channels_is_used_as_8_bits_of_three_colours(collected: Collection) -> None:
    seen = {frame.source: image for frame, image in collected.images()}
    kinds = {"wide.png": 10, "wide.tiff": 11, "alpha.png": 15, "alpha-wide.png": 16}
    for name, number in kinds.items():
        assert (seen[name].dtype, seen[name].shape) == (np.uint8, (480, 640, 3))
        np.testing.assert_allclose(seen[name].astype(int), label_frame(number), atol=1, err_msg=name)
    for name, number in {"grey.png": 12, "grey.jpg": 13, "grey-wide.png": 14}.items():
        assert seen[name].shape == (480, 640, 3)
        assert np.abs(seen[name].astype(int) - grey(label_frame(number))[:, :, np.newaxis]).mean() < 3, name
    assert load(collected.directory) == collected, "and they are read again from where they are kept"


def test_what_is_enormous_is_skipped_with_its_size(collected: Collection) -> None:
    reasons = {skipped.name: skipped.reason for skipped in collected.skipped}
    assert set(reasons) >= {"bomb.png", "line.png"}
    assert "60000x60000" in reasons["bomb.png"]
    assert "at most 50000000 are read" in reasons["bomb.png"]
    assert "2000000000" in reasons["line.png"]
    tally = collected.tally
    passed_over = len(collected.skipped) + tally.near_duplicates + tally.flat + tally.left_out
    assert tally.offered == 16 == len(collected.frames) + passed_over, "each file is accounted for"


COLLECTING = """
import sys
from pathlib import Path
from edge_agent.calibrate.collect import collect
from edge_agent.calibrate.footprint import resident_bytes
from edge_agent.calibrate.frames import FolderSource

before_bytes = resident_bytes("VmRSS")
collect(FolderSource(Path(sys.argv[1])), Path(sys.argv[2]))
print(resident_bytes("VmHWM") - before_bytes)
"""


def test_memory_holds_one_large_picture_at_a_time(tmp_path: Path) -> None:
    """Six pictures of 12 million pixels: 36 MB each once decoded, and a few copies of one."""
    (tmp_path / "frames").mkdir()
    for number in range(6):
        large = cv2.resize(label_frame(number, 600, 450), (4000, 3000), interpolation=cv2.INTER_NEAREST)
        (tmp_path / "frames" / f"{number}.jpg").write_bytes(cv2.imencode(".jpg", large)[1].tobytes())
    command = [sys.executable, "-c", COLLECTING, str(tmp_path / "frames"), str(tmp_path / "collection")]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, timeout=120)
    assert json.loads(ran.stdout) < 4 * 36e6
    kept = load(tmp_path / "collection")
    assert kept is not None
    assert {(frame.width_px, frame.height_px) for frame in kept.frames} == {(4000, 3000)}
