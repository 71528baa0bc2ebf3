"""Judging: a text that ended processes is known to the next one; others cost nothing."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from edge_agent.files import write_atomically
from edge_agent.remote import judging
from edge_agent.remote.desired import text_name
from edge_agent.remote.judging import FILE, Judging


class Killed(BaseException):
    """As by SIGKILL: nothing more is written."""


def test_text_that_does_no_harm_leaves_no_note_and_is_noted_once_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []

    def counting(path: Path, content: bytes, mode: int, *, durable: bool) -> None:
        written.append(content)
        write_atomically(path, content, mode, durable=durable)

    monkeypatch.setattr(judging, "write_atomically", counting)
    mine = Judging(tmp_path)
    for _ in range(3):
        with mine.of(b"a"):
            pass
    assert len(written) == 1
    assert mine.fault(b"a", 1) is None
    assert not (tmp_path / FILE).exists()


def test_text_that_runs_already_is_neither_noted_nor_refused(tmp_path: Path) -> None:
    with suppress(KeyError), Judging(tmp_path).of(b"a"):
        raise KeyError("x")
    name = text_name(b"a")
    with Judging(tmp_path, name).of(b"a"):
        pass
    assert Judging(tmp_path, name).fault(b"a", 1) is None


def test_deaths_are_counted_over_processes_and_for_one_text(tmp_path: Path) -> None:
    for _ in range(2):
        with suppress(Killed), Judging(tmp_path).of(b"a"):
            raise Killed
    assert Judging(tmp_path).fault(b"a", 3) is None
    assert Judging(tmp_path).fault(b"a", 2) == "2 processes ended while they judged it"
    assert Judging(tmp_path).fault(b"b", 1) is None
    with suppress(Killed), Judging(tmp_path).of(b"b"):
        raise Killed
    assert Judging(tmp_path).fault(b"a", 1) is None


def test_error_is_told_from_the_first_time_on(tmp_path: Path) -> None:
    with suppress(ZeroDivisionError), Judging(tmp_path).of(b"a"):
        raise ZeroDivisionError("by\nnothing")
    assert Judging(tmp_path).fault(b"a", 9) == "judging it has ended the process: ZeroDivisionError: by nothing"
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"text": 1}', b'{"text": "x", "begun": null}', b"\xff"])
def test_note_that_cannot_be_read_is_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert Judging(tmp_path).fault(b"a", 1) is None
    with Judging(tmp_path).of(b"a"):
        pass


def test_disk_that_takes_nothing_keeps_nobody_from_judging(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way of the folder")
    with Judging(tmp_path / "file").of(b"a"):
        pass
