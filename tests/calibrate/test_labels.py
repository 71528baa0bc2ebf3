"""Labels: both forms are taken, and a bad line is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_agent.calibrate.labels import read_labels
from edge_agent.errors import CalibrationRefused


def written(folder: Path, content: bytes) -> Path:
    path = folder / "labels.jsonl"
    path.write_bytes(content)
    return path


def test_absent_file_means_no_labels(tmp_path: Path) -> None:
    assert read_labels(tmp_path / "labels.jsonl") == {}


def test_both_forms_are_read_and_add_up(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        b'\xef\xbb\xbf{"file": "a.jpg", "lines": ["LOT 1", "", "EXP \xc3\xa4"]}\r\n\n'
        b'{"file": "b.jpg", "text": "X"}\n{"file": "b.jpg", "text": "Y"}\n{"file": "c.jpg", "lines": []}',
    )
    assert read_labels(path) == {"a.jpg": ("LOT 1", "EXP ä"), "b.jpg": ("X", "Y"), "c.jpg": ()}


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b'{"file": "a.jpg", "lines": ["x"]', "no JSON"),
        (b'["a.jpg", "x"]', "is a list"),
        (b'{"file": "a.jpg"}', "has the keys 'file'"),
        (b'{"file": "a.jpg", "lines": ["x"], "text": "x"}', "has the keys"),
        (b'{"file": "a.jpg", "lines": "x"}', "must be strings"),
        (b'{"file": 3, "text": "x"}', "must be strings"),
        (b'{"file": "a.jpg", "lines": [1]}', "must be strings"),
        (b'{"file": "a.jpg", "text": "\\ud83d"}', "lone surrogate"),
        (b'{"file": "a.jpg", "text": "\xfc"}', "not UTF-8"),
        (b"[" * 100_000, "no JSON"),
    ],
)
def test_bad_line_is_named_with_its_number(tmp_path: Path, line: bytes, fault: str) -> None:
    path = written(tmp_path, b'{"file": "ok.jpg", "text": "fine"}\n' + line + b"\n")
    with pytest.raises(CalibrationRefused, match=rf"labels\.jsonl, line 2: .*{fault}"):
        read_labels(path)
