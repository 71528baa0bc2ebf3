"""Soundness: whatever lies in the outbox's place, it starts within seconds, keeps what it found, and works."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edge_agent.clock import DeviceClock
from edge_agent.outbox import soundness
from edge_agent.outbox.disk import DiskOutbox, Limits
from edge_agent.outbox.soundness import ASIDE_KEPT, open_store
from edge_agent.outbox.store import SCHEMA, StoreUnavailable
from tests.broker import wait_until
from tests.outbox.made_messages import payloads, reading

STARTS_WITHIN_S = 10.0


class Site:
    """A folder with an outbox's file in it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "outbox.db"
        self.told: list[tuple[str, str]] = []

    def start(self) -> DiskOutbox:
        return DiskOutbox(self.path, DeviceClock(), lambda *told: self.told.append(told), Limits(flush_s=0))

    def fill(self, first: int = 0, count: int = 40) -> None:
        """Leaves readings behind, as a tidy stop does."""
        outbox = self.start()
        for n in range(first, first + count):
            outbox.put(reading(n, size=500))
        outbox.close()

    def kill(self, first: int = 0, count: int = 40) -> None:
        """Leaves readings behind in file and log, as a power cut does."""
        outbox = self.start()
        for n in range(first, first + count):
            outbox.put(reading(n, size=500))
        saved = self.path.parent / "saved"
        saved.mkdir()
        for end in ("", "-wal"):  # the log index is in memory, and gone with the power
            shutil.copy(f"{self.path}{end}", saved)
        outbox.close()
        for end in ("", "-wal", "-shm"):
            Path(f"{self.path}{end}").unlink(missing_ok=True)
        for file in saved.iterdir():
            file.rename(self.path.parent / file.name)
        saved.rmdir()

    def aside(self) -> list[str]:
        return sorted(path.name for path in self.path.parent.glob("outbox.db.aside-*"))

    def works(self) -> list[int]:
        """Starts in time, and what is put into it comes out after the next start; returns what else came."""
        began = time.monotonic()
        outbox = self.start()
        assert time.monotonic() - began < STARTS_WITHIN_S
        assert outbox.fault is None
        outbox.put(reading(1000))
        found = []
        while entries := outbox.claim(100):
            found += payloads(entries)
        outbox.close()
        again = self.start()
        kept = []
        while entries := again.claim(100):
            kept += payloads(entries)
        again.close()
        assert sorted(kept) == sorted(found)
        assert 1000 in found
        return [n for n in found if n != 1000]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """In memory where there is such a folder: hundreds of starts wait for the disk otherwise, which is not tested."""
    in_memory = Path("/dev/shm")
    folder = in_memory if os.access(in_memory, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(prefix="edge-agent-test-", dir=folder) as place:
        yield Site(Path(place) / "state")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("mqtt:\n  host: 127.0.0.1\n" * 100)


def short(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0")


def zeros(path: Path) -> None:
    path.write_bytes(bytes(65_536))


def folder(path: Path) -> None:
    (path / "within").mkdir(parents=True)


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE waiting (id INTEGER PRIMARY KEY, note TEXT)")
        connection.execute("INSERT INTO waiting VALUES (1, 'mine')")
        connection.commit()


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version={(number & ~0xFF) | (SCHEMA + 1)}")


def without_a_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE ledger")


def with_another_column(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE waiting ADD COLUMN more TEXT")


def overwritten(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[8192:16384] = b"\xa5" * 8192
    path.write_bytes(content)


WRONG: dict[Callable[[Path], None], str] = {
    empty: "is empty",
    text: "is no SQLite database",
    short: "is no SQLite database",
    zeros: "is no SQLite database",
    foreign: "belongs to another program",
    newer: "was written by a newer version",
    without_a_table: "lacks a table",
    with_another_column: "lacks a table, or has it otherwise",
    overwritten: "is damaged",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_file_that_is_wrong_is_moved_aside_and_told(site: Site, wrong: Callable[[Path], None]) -> None:
    site.fill()
    if wrong is foreign:
        site.path.unlink()
    wrong(site.path)
    before = site.path.read_bytes()
    assert site.works() == []
    assert [kind for kind, _ in site.told] == ["outbox_replaced"]
    (name,) = site.aside()
    assert WRONG[wrong] in site.told[0][1]
    assert name in site.told[0][1]
    assert (site.path.parent / name).read_bytes() == before


def test_folder_in_the_place_of_the_file_is_moved_aside_whole(site: Site) -> None:
    folder(site.path)
    assert site.works() == []
    assert "is no file" in site.told[0][1]
    assert (site.path.parent / site.aside()[0] / "within").is_dir()


def test_device_is_left_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "outbox.db"
    path.symlink_to(os.devnull)
    with pytest.raises(StoreUnavailable, match="is a device; name a file, or set outbox.kind to memory"):
        open_store(path, "boot")
    assert [name.name for name in tmp_path.iterdir()] == ["outbox.db"]
    assert path.is_char_device()


def test_first_start_makes_the_file_and_says_nothing(site: Site) -> None:
    assert site.works() == []
    assert site.told == []
    assert site.aside() == []


def test_what_a_power_cut_left_in_the_log_is_found(site: Site) -> None:
    site.kill()
    assert site.works() == list(range(40))
    assert site.told == []


def cuts(length: int) -> Iterator[int]:
    """Lengths to cut a file to: around every page's border, and odd ones between."""
    for page in range(0, length + 1, 4096):
        yield from (page - 1, page, page + 1, page + 100, page + 2048)


def test_file_that_is_cut_off_anywhere_costs_readings_but_never_the_start(site: Site) -> None:
    site.fill()
    whole = site.path.read_bytes()
    for length in sorted({cut for cut in cuts(len(whole)) if 0 <= cut < len(whole)}):
        site.path.write_bytes(whole[:length])
        found = site.works()
        assert set(found) <= set(range(40)), f"cut to {length} bytes"
        remove_all(site)


def test_log_that_is_cut_off_anywhere_keeps_what_was_committed_before(site: Site) -> None:
    site.kill(count=12)
    log_path = Path(f"{site.path}-wal")
    whole, log = site.path.read_bytes(), log_path.read_bytes()
    most: list[int] = []
    for length in range(0, len(log), 1300):
        site.path.write_bytes(whole)
        log_path.write_bytes(log[:length])
        found = site.works()
        assert found == list(range(len(found))), f"log cut to {length} bytes"
        assert len(found) >= len(most)
        most = found
        remove_all(site)
    assert len(most) >= 11


@pytest.mark.parametrize("seed", range(6))
def test_file_with_bytes_overwritten_anywhere_starts_and_works(site: Site, seed: int) -> None:
    site.fill()
    content = bytearray(site.path.read_bytes())
    for n in range(20):
        at = (seed * 7919 + n * 104_729) % (len(content) - 64)
        content[at : at + 64] = bytes((seed * 31 + n * 7 + k) % 256 for k in range(64))
    site.path.write_bytes(content)
    outbox = site.start()
    outbox.put(reading(1000))
    while entries := outbox.claim(100):
        assert all(len(entry.message.payload) > 500 or entry.message == reading(1000) for entry in entries)
        outbox.done([entry.id for entry in entries])
    wait_until(lambda: outbox.fault is None, "a file that works")
    outbox.close()
    assert site.works() == []


def test_log_of_another_outbox_is_not_played_into_this_one(site: Site, tmp_path: Path) -> None:
    site.fill(count=3)
    other = Site(tmp_path / "other")
    other.kill(first=500, count=60)
    shutil.copy(f"{other.path}-wal", f"{site.path}-wal")
    assert site.works() == [0, 1, 2]
    assert "has the log of another database beside it" in site.told[0][1]
    assert [name for name in site.aside() if name.endswith("-wal")]


def test_log_of_another_program_is_not_played_into_this_one(site: Site, tmp_path: Path) -> None:
    site.fill(count=3)
    foreign_path = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign_path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT)")
        connection.executemany("INSERT INTO notes (note) VALUES (?)", [("x" * 500,)] * 50)
        connection.commit()
        shutil.copy(f"{foreign_path}-wal", f"{site.path}-wal")
    assert site.works() == [0, 1, 2]
    assert len(site.told) == 1


def test_backup_that_is_put_back_beside_a_newer_log_is_used_without_it_or_moved_aside(site: Site) -> None:
    site.fill(count=5)
    backup = site.path.read_bytes()
    site.kill(first=5, count=60)
    site.path.write_bytes(backup)
    found = site.works()
    assert found in ([0, 1, 2, 3, 4], list(range(65)), [])
    if found == []:
        assert site.aside()


def test_log_without_its_file_is_moved_aside(site: Site) -> None:
    site.kill(count=3)
    site.path.unlink()
    assert site.works() == []
    assert "was gone and its log still there" in site.told[0][1]
    assert [name for name in site.aside() if name.endswith("-wal")]


def test_only_the_newest_of_those_moved_aside_are_kept(site: Site) -> None:
    for _ in range(ASIDE_KEPT + 3):
        site.path.parent.mkdir(exist_ok=True)
        text(site.path)
        site.start().close()
    assert len(site.aside()) == ASIDE_KEPT


def test_check_of_a_large_file_ends_in_time_and_believes_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.fill(count=80)
    monkeypatch.setattr(soundness, "CHECK_S", 0.0)
    monkeypatch.setattr(soundness, "CHECK_EVERY_STEPS", 1)
    assert len(site.works()) == 80
    assert site.told == []


def test_file_that_cannot_be_made_is_no_reason_to_end(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnavailable, match="cannot make the folder"):
        open_store(tmp_path / "file" / "outbox.db", "b")


def remove_all(site: Site) -> None:
    for path in site.path.parent.glob("outbox.db*"):
        path.unlink()
    site.told.clear()
