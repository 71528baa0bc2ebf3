"""Backup: taken of an outbox in use, put back without the log that belongs to another (field case STO-3)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edge_agent.__main__ import main
from edge_agent.clock import DeviceClock
from edge_agent.errors import ConfigError, EdgeAgentError
from edge_agent.outbox.accounts import read_ledger
from edge_agent.outbox.backup import back_up, restore
from edge_agent.outbox.disk import DiskOutbox, Limits
from edge_agent.outbox.soundness import ASIDE_KEPT
from tests.broker import wait_until
from tests.outbox.made_messages import payloads, reading


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "outbox.db"


def opened(path: Path) -> closing[DiskOutbox]:
    return closing(DiskOutbox(path, DeviceClock(), lambda kind, text: None, Limits(flush_s=0)))


@pytest.fixture
def backup(path: Path, tmp_path: Path) -> Iterator[Path]:
    """Of five readings, taken while the outbox was in use; then three of them left and sixty came."""
    copy = tmp_path / "copies" / "backup.db"
    copy.parent.mkdir()
    with opened(path) as outbox:
        for n in range(5):
            outbox.put(reading(n))
        assert back_up(path, copy) == 5
        outbox.done([entry.id for entry in outbox.claim(3)])
        for n in range(5, 65):
            outbox.put(reading(n))
        wait_until(lambda: read_ledger(path).totals()["cam"]["delivered"] == 3, "the deliveries on disk")
    yield copy


def waiting(path: Path) -> list[int]:
    with opened(path) as outbox:
        return sorted(payloads(outbox.claim(1000)))


def test_backup_goes_back_without_the_log_of_the_file_before(path: Path, backup: Path) -> None:
    whole = path.read_bytes()
    pid = os.fork()
    if pid == 0:  # a process that is killed leaves its log
        outbox = DiskOutbox(path, DeviceClock(), lambda kind, text: None, Limits(flush_s=0))
        for n in range(100, 160):
            outbox.put(reading(n))
        os._exit(0)
    os.waitpid(pid, 0)
    assert Path(f"{path}-wal").stat().st_size > 0
    count, aside = restore(backup, path)
    assert count == 5
    assert aside is not None
    assert not Path(f"{path}-wal").exists()
    assert path.stat().st_mode & 0o077 == 0
    assert waiting(path) == [0, 1, 2, 3, 4]
    (kept,) = [name for name in path.parent.glob("outbox.db.aside-*") if not name.name.endswith("-wal")]
    assert kept.read_bytes()[:16] == whole[:16]
    assert len(waiting(kept)) == 2 + 60 + 60, "what was aside is whole, with its log"


def test_backup_is_one_file_for_its_owner_and_can_be_put_where_nothing_is(path: Path, backup: Path) -> None:
    assert [name.name for name in backup.parent.iterdir()] == ["backup.db"]
    assert backup.stat().st_mode & 0o077 == 0
    fresh = path.parent / "new" / "outbox.db"
    assert restore(backup, fresh) == (5, None)
    assert waiting(fresh) == [0, 1, 2, 3, 4]


def test_outbox_in_use_is_not_replaced(path: Path, backup: Path) -> None:
    with opened(path) as outbox:
        with pytest.raises(EdgeAgentError, match="stop the agent first"):
            restore(backup, path)
        assert outbox.stats().depth == 62


def test_what_is_no_sound_backup_changes_nothing(path: Path, backup: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, " * 20)
    with pytest.raises(EdgeAgentError, match="is no SQLite database; nothing was changed"):
        restore(tmp_path / "text", path)
    with pytest.raises(ConfigError, match="there is no backup"):
        restore(tmp_path / "nothing", path)
    with pytest.raises(ConfigError, match="there is no outbox"):
        back_up(tmp_path / "nothing", tmp_path / "copy")
    with pytest.raises(EdgeAgentError, match="cannot be written"):
        back_up(path, tmp_path / "no folder" / "copy")
    assert len(waiting(path)) == 62
    assert not list(path.parent.glob("*.aside-*"))


def test_copy_takes_no_place_of_an_outbox_or_of_what_is_no_file(path: Path, backup: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    with opened(tmp_path / "other.db"):
        for place, why in {
            path: "is the outbox itself",
            tmp_path / "link.db": "is the outbox itself",
            tmp_path / "other.db": "has a log beside it",
            tmp_path / "pipe": "is no file that could be replaced",
            tmp_path: "is no file that could be replaced",
        }.items():
            with pytest.raises(ConfigError, match=why):
                back_up(path, place)
    assert (tmp_path / "pipe").is_fifo()
    assert len(waiting(path)) == 62


def test_oldest_that_went_aside_can_be_put_back(path: Path, backup: Path) -> None:
    for _ in range(ASIDE_KEPT):
        restore(backup, path)
    oldest = min(path.parent.glob("outbox.db.aside-*"))
    assert restore(oldest, path)[0] == 62
    assert restore(path, path)[0] == 62, "itself"
    assert len(waiting(path)) == 62


@pytest.mark.skipif(os.geteuid() != 0, reason="only root acts for others")
def test_root_puts_it_back_for_whom_the_folder_belongs_to(backup: Path, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    os.chown(folder, 12345, 54321)
    restore(backup, folder / "outbox.db")
    owners = {name.name: (name.stat().st_uid, name.stat().st_gid) for name in folder.iterdir()}
    assert owners == dict.fromkeys(["outbox.db", "outbox.db.lock"], (12345, 54321))


def test_command_does_both(path: Path, backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["outbox", "backup", str(tmp_path / "b.db"), "--database", str(path)]) == 0
    assert main(["outbox", "restore", str(backup), "--database", str(path)]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [f"{tmp_path / 'b.db'}: 62 readings wait in it", f"{path}: 5 readings wait in it"]
    assert "is replaced by a backup; it was moved to outbox.db.aside-" in said.err
