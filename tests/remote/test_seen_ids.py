"""SeenIds: which commands came is known after any end of the process (MQ-6)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from edge_agent.remote.seen_ids import SeenIds


def opened(folder: Path, kept: int = 4) -> SeenIds:
    return SeenIds(folder / "state" / "commands.json", kept, lambda: 1_796_040_000.0)


def test_new_id_is_unknown_and_then_remembered_with_its_answer(tmp_path: Path) -> None:
    seen = opened(tmp_path)
    assert seen.get("c-1") is None
    seen.accept("c-1", "ping")
    seen.end("c-1", "done", {"result": {"uptime_s": 3.0}})
    again = opened(tmp_path).get("c-1")
    assert again is not None
    assert (again.name, again.state, again.body) == ("ping", "done", {"result": {"uptime_s": 3.0}})


def test_accepted_and_not_ended_is_under_way_for_the_next_process(tmp_path: Path) -> None:
    seen = opened(tmp_path)
    for command_id in ("c-1", "c-2", "c-3"):
        seen.accept(command_id, "calibrate")
    seen.end("c-2", "failed", {"reason": "no"})
    assert [each.id for each in opened(tmp_path).under_way()] == ["c-1", "c-3"]


def test_the_newest_are_kept(tmp_path: Path) -> None:
    seen = opened(tmp_path)
    for n in range(9):
        seen.accept(f"c-{n}", "ping")
    again = opened(tmp_path)
    assert [n for n in range(9) if again.get(f"c-{n}")] == [5, 6, 7, 8]
    seen.end("c-0", "done", {})
    assert seen.get("c-0") is None


def test_large_answer_is_not_kept_but_that_it_was_given(tmp_path: Path) -> None:
    seen = opened(tmp_path)
    seen.accept("c-1", "snapshot")
    seen.end("c-1", "done", {"result": {"jpeg_base64": "x" * 100_000}})
    again = opened(tmp_path).get("c-1")
    assert again is not None
    assert (again.state, again.body) == ("done", {})


def test_what_is_under_way_outlasts_any_number_of_newer_ones(tmp_path: Path) -> None:
    seen = opened(tmp_path)
    seen.accept("c-0", "calibrate")
    for n in range(1, 9):
        seen.accept(f"c-{n}", "ping")
        seen.end(f"c-{n}", "done", {})
    assert [each.id for each in opened(tmp_path).under_way()] == ["c-0"]
    assert [n for n in range(9) if opened(tmp_path).get(f"c-{n}")] == [0, 6, 7, 8]


def test_repeatable_command_is_written_once_with_its_end(tmp_path: Path) -> None:
    seen = opened(tmp_path)
    seen.accept("c-1", "ping", at_once=False)
    assert seen.get("c-1") is not None
    assert not (tmp_path / "state").exists()
    seen.end("c-1", "done", {})
    assert opened(tmp_path).get("c-1") is not None


def test_file_stays_small_whatever_the_answers_are(tmp_path: Path) -> None:
    """It is written for each command: 60 a minute with answers of 4 KB each would wear the flash out."""
    seen = opened(tmp_path, kept=256)
    for n in range(32):
        seen.accept(f"c-{n}", "ledger", at_once=False)
        seen.end(f"c-{n}", "done", {"result": {"text": "x" * 4000}})
    assert (tmp_path / "state" / "commands.json").stat().st_size < 32_000
    newest, oldest = opened(tmp_path, 256).get("c-31"), opened(tmp_path, 256).get("c-0")
    assert newest is not None
    assert oldest is not None
    assert (newest.body != {}, oldest.body, oldest.state) == (True, {}, "done")


def test_forgotten_id_may_come_again(tmp_path: Path) -> None:
    seen = opened(tmp_path)
    seen.accept("c-1", "calibrate")
    seen.forget("c-1")
    assert opened(tmp_path).get("c-1") is None


@pytest.mark.parametrize("content", [b"", b"[]", b'{"v": 9}', b'{"v": 1, "commands": [{}]}', b"\0" * 100])
def test_damaged_file_is_put_aside_aloud(tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "state" / "commands.json"
    path.parent.mkdir()
    path.write_bytes(content)
    assert opened(tmp_path).under_way() == []
    assert "is damaged" in caplog.text
    assert path.with_suffix(".damaged").read_bytes() == content


def test_disk_that_takes_nothing_costs_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("edge_agent.remote.seen_ids.write_atomically", full)
    seen = opened(tmp_path)
    seen.accept("c-1", "ping")
    assert seen.get("c-1") is not None
    for n in range(100):
        seen.accept(f"d-{n}", "ping")
    assert [text for text in caplog.messages if "No space left" in text] == caplog.messages[:1]


def test_killed_while_it_writes_the_id_is_known_or_not_but_never_half(tmp_path: Path) -> None:
    for n in range(12):
        folder = tmp_path / str(n)
        opened(folder).accept("c-0", "ping")
        pid = os.fork()
        if pid == 0:
            left = n
            for name in ("fsync", "open", "close"):
                operation = getattr(os, name)

                def instead(*args: object, operation=operation, **more: object) -> object:  # type: ignore[no-untyped-def]
                    nonlocal left
                    left -= 1
                    if left < 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return operation(*args, **more)

                setattr(os, name, instead)
            try:
                opened(folder).accept("c-1", "ping")
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        again = opened(folder)
        assert again.get("c-0") is not None
        assert [each.id for each in again.under_way()] in (["c-0"], ["c-0", "c-1"])


def test_others_cannot_read_it(tmp_path: Path) -> None:
    opened(tmp_path).accept("c-1", "ping")
    assert (tmp_path / "state" / "commands.json").stat().st_mode & 0o077 == 0
