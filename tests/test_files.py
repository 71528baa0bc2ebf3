"""Files: the old bytes or the new ones, never half."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edge_agent import files
from edge_agent.files import write_atomically


def test_file_and_its_folder_are_made(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.json"
    write_atomically(path, b"{}")
    assert path.read_bytes() == b"{}"
    assert path.stat().st_mode & 0o777 == 0o644


def test_failed_write_leaves_the_old_bytes_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.json"
    write_atomically(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.json"]


def test_pipe_or_folder_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(OSError, match="no file that could be replaced"):
            write_atomically(tmp_path / name, b"x")
    assert (tmp_path / "pipe").is_fifo()
    assert len(list(tmp_path.iterdir())) == 2


def test_mode_is_as_asked(tmp_path: Path) -> None:
    write_atomically(tmp_path / "secret", b"x", mode=0o600)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_disk_is_not_waited_for_where_that_is_not_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.os, "fsync", lambda _: pytest.fail("waited"))
    write_atomically(tmp_path / "file.json", b"{}", durable=False)
    assert (tmp_path / "file.json").read_bytes() == b"{}"
