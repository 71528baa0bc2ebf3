"""Outbox on disk: what outlives the process, what stays in memory, bounds, ages over boots, and a disk that fails."""

from __future__ import annotations

import itertools
import re
import resource
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edge_agent.clock import BOOT_ID_FILE, NOT_BEFORE_UNIX_S, DeviceClock
from edge_agent.outbox import disk
from edge_agent.outbox.accounts import read_dead_letters, read_ledger
from edge_agent.outbox.disk import DiskOutbox, Limits
from edge_agent.outbox.store import Batch, Store
from tests.broker import DEADLINE_S, wait_until
from tests.outbox.made_messages import payloads, reading, state

NOW = NOT_BEFORE_UNIX_S + 1_000_000.0
DAY_S = 86_400.0


class Device:
    """Outboxes of one device, one after the other, on one file; the test moves its clocks and boots it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "outbox.db"
        self.mono, self.unix, self.trusted = 1000.0, NOW, True
        self.told: list[tuple[str, str]] = []
        self.limits = Limits(flush_s=0, retry_s=0.05)
        self._root = folder / "root"
        self._open: list[DiskOutbox] = []
        self.boot("1" * 32)

    def boot(self, boot_id: str) -> None:
        file = self._root / BOOT_ID_FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(boot_id)

    def start(self, **limits: Any) -> DiskOutbox:
        clock = DeviceClock(self._root, lambda: self.mono, lambda: self.unix, lambda: self.trusted)
        outbox = DiskOutbox(self.path, clock, lambda *told: self.told.append(told), replace(self.limits, **limits))
        self._open.append(outbox)
        return outbox

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.told]

    def close(self) -> None:
        for outbox in self._open:
            outbox.close()


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    device = Device(tmp_path)
    yield device
    device.close()


def rows(path: Path) -> list[int]:
    """The payloads on disk, as another process sees them."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return [int(payload) for (payload,) in connection.execute("SELECT payload FROM waiting ORDER BY id")]


def balanced(outbox: DiskOutbox) -> bool:
    return all(row.produced == row.delivered + row.queued + sum(row.dropped.values()) for row in outbox.ledger().rows())


# What outlives the process


def test_readings_outlive_the_process_in_order_with_all_that_was_known_of_them(device: Device) -> None:
    outbox = device.start()
    for n in range(5):
        outbox.put(reading(n))
    outbox.put(state(9))
    claimed = outbox.claim(3)
    outbox.done([entry.id for entry in claimed if entry.message == reading(0)])
    outbox.close()
    again = device.start()
    assert again.stats().depth == 4
    assert [entry.message for entry in again.claim(10)] == [reading(1), reading(2), reading(3), reading(4)]
    assert again.next_seq("cam") == 5


def test_new_readings_go_behind_those_of_before(device: Device) -> None:
    for start in range(3):
        outbox = device.start(live_first=False)
        outbox.put(reading(start * 2))
        outbox.put(reading(start * 2 + 1))
        outbox.close()
    outbox = device.start(live_first=False)
    assert payloads(outbox.claim(4)) == [0, 1, 2, 3]
    outbox.put(reading(6))
    device.mono += 20
    assert payloads(outbox.claim(10)) == [4, 5, 6]


def test_only_live_readings_and_claimed_ones_are_in_memory(device: Device) -> None:
    outbox = device.start()
    for n in range(50):
        outbox.put(reading(n, size=10_000))
    assert outbox.stats().bytes > 500_000
    device.mono += 11
    assert outbox.stats().depth == 50
    outbox.put(reading(50))
    entries = outbox.claim(3)
    assert payloads(entries) == [50, 0, 1]
    outbox.requeue([entry.id for entry in entries])
    assert payloads(outbox.claim(60)) == [50, *range(50)]


def test_what_several_threads_miss_at_once_is_read_from_disk_once(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each of them would fill memory with one part more, beyond the bound."""
    outbox = device.start(max_memory_bytes=300_000)
    for n in range(50):
        outbox.put(reading(n, size=4000))
    device.mono += 11
    go_on, read, reads = threading.Event(), Store.read, list[int]()

    def slow(*arguments: Any) -> Any:
        reads.append(1)
        go_on.wait(DEADLINE_S)
        return read(*arguments)

    monkeypatch.setattr(Store, "read", slow)
    lookers = [threading.Thread(target=outbox.stats) for _ in range(4)]
    for looker in lookers:
        looker.start()
    wait_until(lambda: bool(reads), "one that reads")
    lookers[1].join(0.1)  # the others come to where it reads
    go_on.set()
    for looker in lookers:
        looker.join(DEADLINE_S)
    assert len(reads) == 1
    assert outbox.stats().bytes < 2 * 300_000 // 8


def test_backlog_larger_than_what_is_read_at_once_leaves_in_order_and_once(device: Device) -> None:
    outbox = device.start(flush_s=0.01)
    count = 3 * disk.FILL_READINGS + 17
    for n in range(count):
        outbox.put(reading(n))
    wait_until(lambda: outbox.stats().unwritten == 0, "all on disk")
    device.mono += 11
    got: list[int] = []
    turn = 0
    while outbox.stats().depth > 0:
        turn += 1
        entries = outbox.claim(20)
        if turn <= 60:
            outbox.put(reading(count + turn))  # live ones come in between
        lost = entries[::7] if turn % 5 == 0 else []
        outbox.requeue([entry.id for entry in lost])
        outbox.done([entry.id for entry in entries if entry not in lost])
        got += payloads([entry for entry in entries if entry not in lost])
    old = [n for n in got if n < count]
    assert sorted(old) == list(range(count))
    assert outbox.stats().depth == 0
    assert balanced(outbox)


def test_reading_is_not_offered_before_it_is_on_disk(device: Device) -> None:
    outbox = device.start(flush_s=0.3)
    heard = threading.Event()
    outbox.put(reading(0))  # after a quiet moment: at once
    wait_until(lambda: outbox.stats().unwritten == 0, "the first on disk")
    outbox.watch(heard.set)
    outbox.put(reading(1))
    claimed = payloads(outbox.claim(10))
    on_disk = rows(device.path)
    assert 1 in on_disk or 1 not in claimed
    assert heard.wait(DEADLINE_S), "the publisher is woken once the reading can go"
    assert rows(device.path) == [0, 1]
    assert payloads(outbox.claim(10)) == [1]


def test_put_returns_before_the_disk_has_answered(device: Device) -> None:
    outbox = device.start(flush_s=60)
    outbox.put(reading(0))
    wait_until(lambda: outbox.stats().unwritten == 0, "the first on disk")
    for n in range(1, 100):
        outbox.put(reading(n))
    assert outbox.stats().unwritten == 99
    outbox.close()
    assert rows(device.path) == list(range(100))


def test_delivered_reading_leaves_the_disk_without_another_to_be_written_with(device: Device) -> None:
    outbox = device.start()
    outbox.put(reading(0))
    outbox.done([entry.id for entry in outbox.claim(1)])
    wait_until(lambda: rows(device.path) == [], "an empty table")
    assert read_ledger(device.path).totals() == {"cam": {"produced": 1, "delivered": 1, "queued": 0, "dropped": {}}}


def test_states_and_telemetry_are_never_written(device: Device) -> None:
    outbox = device.start()
    outbox.put(state(1))
    outbox.put(reading(2))
    assert rows(device.path) == [2]
    outbox.close()
    assert payloads(device.start().claim(10)) == [2]


def test_ledger_on_disk_agrees_with_the_rows_at_every_moment(device: Device) -> None:
    outbox = device.start(flush_s=0.002)
    stop = threading.Event()

    def produce() -> None:
        n = 0
        while not stop.is_set():
            outbox.put(reading(n, f"line{n % 3}"))
            outbox.done([entry.id for entry in outbox.claim(2)][:1])
            n += 1

    producer = threading.Thread(target=produce)
    producer.start()
    try:
        for _ in range(40):
            with closing(sqlite3.connect(f"{device.path.as_uri()}?mode=ro", uri=True)) as connection:
                connection.execute("BEGIN")
                ledger = connection.execute("SELECT sum(produced), sum(delivered), sum(queued) FROM ledger").fetchone()
                (waiting,) = connection.execute("SELECT count(*) FROM waiting").fetchone()
            produced, delivered, queued = (value or 0 for value in ledger)
            assert (produced, queued) == (delivered + queued, waiting)
    finally:
        stop.set()
        producer.join()


def test_dead_letter_is_kept_whole_and_only_the_newest_of_them(device: Device) -> None:
    outbox = device.start()
    for n in range(105):
        outbox.put(reading(n))
        outbox.drop([entry.id for entry in outbox.claim(1)], "poison", f"number {n}")
    wait_until(lambda: any(letter.detail == "number 104" for letter in read_dead_letters(device.path)), "the last")
    letters = read_dead_letters(device.path)
    assert len(letters) == 100
    assert (letters[0].detail, letters[-1].detail) == ("number 5", "number 104")
    assert (letters[-1].reason, letters[-1].message.payload) == ("poison", b"104")
    assert balanced(outbox)


# Bounds and ages


def test_oldest_readings_are_dropped_once_the_file_is_full_and_it_stays_within_its_bound(device: Device) -> None:
    limits = {"max_bytes": 2_000_000, "max_memory_bytes": 300_000, "flush_s": 0.01}
    outbox = device.start(**limits)
    for n in range(1500):
        outbox.put(reading(n, size=4000))
        if n % 50 == 0:
            wait_until(lambda: outbox.stats().unwritten == 0, "on disk")
            wait_until(lambda: outbox.stats().bytes <= 310_000, "memory within its bound")
    wait_until(lambda: outbox.stats().unwritten == 0 and outbox.stats().disk_bytes <= 2_000_000, "the bound")
    assert device.path.stat().st_size < 3_000_000
    stats = outbox.stats()
    assert stats.depth + stats.dropped["outbox_full"] == 1500
    assert balanced(outbox)
    got: list[int] = []
    while entries := outbox.claim(100):
        got += payloads(entries)
        outbox.done([entry.id for entry in entries])
    assert sorted(got) == list(range(1500 - stats.depth, 1500))
    wait_until(lambda: device.kinds() == ["outbox_full"], "one event, not a thousand")


def test_message_that_is_larger_than_half_the_outbox_pushes_nothing_out(device: Device) -> None:
    outbox = device.start(max_memory_bytes=100_000)
    outbox.put(reading(0))
    outbox.put(reading(1, size=60_000))
    assert payloads(outbox.claim(10)) == [0]
    assert outbox.stats().dropped == {"too_large": 1}
    assert balanced(outbox)


def test_file_that_grew_in_an_outage_is_shrunk_at_a_start_with_nothing_waiting(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edge_agent.outbox.store.SHRINK_FROM_BYTES", 1_000_000)
    outbox = device.start(flush_s=0.01)
    for n in range(300):
        outbox.put(reading(n, size=4000))
    wait_until(lambda: outbox.stats().unwritten == 0, "on disk")
    while entries := outbox.claim(100):
        outbox.done([entry.id for entry in entries])
    outbox.close()
    assert device.path.stat().st_size > 1_000_000
    device.start().close()
    assert device.path.stat().st_size < 100_000


@pytest.mark.parametrize("jump_s", [-50 * 365 * DAY_S, 50 * 365 * DAY_S])
def test_jump_of_the_time_of_day_drops_nothing(device: Device, jump_s: float) -> None:
    outbox = device.start(max_age_s=60)
    outbox.put(reading(0))
    device.unix += jump_s
    device.mono += 30
    assert outbox.stats().oldest_age_s == 30
    assert payloads(outbox.claim(10)) == [0]
    outbox.close()
    again = device.start(max_age_s=60)  # in the same boot
    assert again.stats().oldest_age_s == 30
    assert payloads(again.claim(10)) == [0]


def test_reading_of_an_earlier_boot_ages_by_the_time_of_day_if_that_is_trusted(device: Device) -> None:
    outbox = device.start(max_age_s=DAY_S)
    outbox.put(reading(0))
    device.unix += 0.9 * DAY_S
    outbox.put(reading(1))
    outbox.close()
    device.boot("2" * 32)
    device.mono, device.unix = 5.0, device.unix + 0.2 * DAY_S
    again = device.start(max_age_s=DAY_S)
    entries = again.claim(10)
    assert payloads(entries) == [1]
    assert entries[0].queued_mono == float("-inf")  # older than any live one
    assert again.stats().dropped == {"too_old": 1}


@pytest.mark.parametrize("trusted", [(False, True), (True, False), (False, False)])
def test_reading_of_an_earlier_boot_is_kept_where_one_of_the_clocks_is_not_trusted(
    device: Device, trusted: tuple[bool, bool]
) -> None:
    device.trusted = trusted[0]
    outbox = device.start(max_age_s=DAY_S)
    outbox.put(reading(0))
    outbox.close()
    device.boot("2" * 32)
    device.mono, device.unix, device.trusted = 5.0, NOW + 400 * DAY_S, trusted[1]
    again = device.start(max_age_s=DAY_S)
    (entry,) = again.claim(10)
    again.requeue([entry.id])
    device.mono += DAY_S + 1  # so long at least it has waited
    assert again.claim(10) == []
    assert again.stats().dropped == {"too_old": 1}


def test_jump_after_the_clock_was_trusted_drops_nothing_of_an_earlier_boot(device: Device) -> None:
    outbox = device.start(max_age_s=DAY_S)
    outbox.put(reading(0))
    outbox.close()
    device.boot("2" * 32)
    device.mono = 5.0
    again = device.start(max_age_s=DAY_S)
    assert again.stats().oldest_age_s == pytest.approx(0, abs=1)
    device.unix += 1000 * DAY_S
    device.mono += 2
    assert payloads(again.claim(10)) == [0]


def test_old_readings_are_dropped_though_nobody_claims_them(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "PURGE_EVERY_S", 0.01)
    outbox = device.start(max_age_s=60, flush_s=0.01)
    for n in range(10):
        outbox.put(reading(n))
    device.mono += 50
    outbox.put(reading(10))
    device.mono += 20
    wait_until(lambda: outbox.stats().dropped == {"too_old": 10}, "ten dropped")
    wait_until(lambda: rows(device.path) == [10], "one row")


# A disk that fails


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of that size, where root may mount one."""
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("needs root, to mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)


@pytest.fixture
def goes_on(device: Device) -> Callable[[DiskOutbox], None]:
    """Asserts that readings go through an outbox whose disk fails, and that it says so once."""

    def goes_on(outbox: DiskOutbox) -> None:
        for n in range(100, 103):
            outbox.put(reading(n))
        assert outbox.fault is not None
        claimed = [entry for entry in outbox.claim(1000) if int(entry.message.payload) >= 100]
        assert payloads(claimed) == [100, 101, 102]
        outbox.done([claimed[0].id])
        outbox.requeue([entry.id for entry in claimed[1:]])
        wait_until(lambda: device.kinds().count("outbox_in_memory") == 1, "the event")
        assert balanced(outbox)

    return goes_on


def test_full_disk_is_told_and_what_waits_in_memory_moves_to_it_later(
    device: Device, tmp_path: Path, goes_on: Callable[[DiskOutbox], None]
) -> None:
    with small_disk(tmp_path / "small", "1m") as folder:
        device.path = folder / "outbox.db"
        outbox = device.start()
        outbox.put(reading(0))
        blocker = folder / "log"
        with blocker.open("wb", buffering=0) as file, pytest.raises(OSError):
            while True:
                file.write(b"x" * 4096)
        for n in range(1, 100):
            outbox.put(reading(n, size=8000))
            if outbox.fault is not None:
                break
        assert "full" in str(outbox.fault)
        goes_on(outbox)
        blocker.unlink()
        wait_until(lambda: outbox.fault is None, "recovery")
        wait_until(lambda: device.kinds() == ["outbox_in_memory", "outbox_on_disk"], "both events")
        assert outbox.stats().unwritten == 0
        assert rows(device.path)[0] == 0
        assert rows(device.path)[-2:] == [101, 102]
        assert balanced(outbox)
        outbox.close()


def test_disk_that_is_full_at_the_start_is_used_once_there_is_room(
    device: Device, tmp_path: Path, goes_on: Callable[[DiskOutbox], None]
) -> None:
    with small_disk(tmp_path / "small", "1m") as folder:
        device.path = folder / "outbox.db"
        outbox = device.start()
        for n in range(3):
            outbox.put(reading(n))
        outbox.close()
        device.path.unlink()
        blocker = folder / "log"
        with blocker.open("wb", buffering=0) as file, pytest.raises(OSError):
            while True:
                file.write(b"x" * 4096)
        outbox = device.start()
        goes_on(outbox)
        blocker.unlink()
        wait_until(lambda: outbox.fault is None, "recovery")
        assert rows(device.path) == [101, 102]
        outbox.close()


def test_read_only_disk_is_told_and_its_backlog_still_leaves(
    device: Device, tmp_path: Path, goes_on: Callable[[DiskOutbox], None]
) -> None:
    with small_disk(tmp_path / "small", "4m") as folder:
        device.path = folder / "outbox.db"
        outbox = device.start(retry_s=0.05)
        for n in range(3):
            outbox.put(reading(n))
        device.mono += 11
        outbox.close()
        remount(folder, "ro")
        outbox = device.start()
        goes_on(outbox)
        remount(folder, "rw")
        wait_until(lambda: outbox.fault is None, "recovery")
        assert rows(device.path) == [0, 1, 2, 101, 102]
        assert payloads(outbox.claim(10))[-3:] == [0, 1, 2]  # those of before are the backlog now
        outbox.close()


def test_file_that_may_not_grow_is_a_full_disk_and_limits_what_is_kept_in_memory(device: Device) -> None:
    outbox = device.start(max_memory_bytes=200_000)
    outbox.put(reading(0))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
    try:
        for n in range(1, 200):
            outbox.put(reading(n, size=4000))
        wait_until(lambda: "outbox_in_memory" in device.kinds(), "the event")
        stats = outbox.stats()
        assert stats.bytes <= 200_000
        assert stats.dropped["outbox_full"] > 100
        assert balanced(outbox)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    wait_until(lambda: outbox.fault is None and outbox.stats().unwritten == 0, "recovery")
    kept = rows(device.path)
    assert kept[-1] == 199
    assert kept == sorted(kept)
    assert len(kept) == outbox.ledger().queued


def test_second_agent_on_one_file_works_in_memory_until_the_first_has_gone(device: Device) -> None:
    first = device.start()
    first.put(reading(0))
    second = device.start()
    assert "is in use by another edge-agent" in str(second.fault)
    second.put(reading(1))
    assert payloads(second.claim(10)) == [1]
    first.close()
    wait_until(lambda: second.fault is None, "the file")
    assert rows(device.path) == [0, 1]
    assert second.stats().depth == 2
    assert second.ledger().totals()["cam"]["produced"] == 2


def test_file_that_another_program_locks_is_used_again_when_it_is_free(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edge_agent.outbox.store.BUSY_S", 0.05)
    outbox = device.start(flush_s=0.01)
    outbox.put(reading(0))
    wait_until(lambda: rows(device.path) == [0], "the first")
    with closing(sqlite3.connect(device.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        outbox.put(reading(1))
        wait_until(lambda: "locked" in str(outbox.fault), "the fault")
        assert payloads(outbox.claim(10)) == [0, 1]
        other.execute("ROLLBACK")
    wait_until(lambda: outbox.fault is None, "recovery")
    assert rows(device.path) == [0, 1]


@pytest.mark.parametrize("flush_s", [0.0, 0.005])
def test_disk_that_does_not_answer_holds_nothing_up_for_long(
    device: Device, monkeypatch: pytest.MonkeyPatch, flush_s: float
) -> None:
    monkeypatch.setattr(disk, "HANG_S", 0.1)
    answer, write = threading.Event(), Store.write

    def hang(store: Store, batch: Batch) -> None:
        assert answer.wait(DEADLINE_S)
        write(store, batch)

    outbox = device.start(flush_s=flush_s)
    outbox.put(reading(0))
    wait_until(lambda: outbox.stats().unwritten == 0, "the first on disk")
    monkeypatch.setattr(Store, "write", hang)
    numbers = itertools.count(1)

    def told() -> bool:
        outbox.put(reading(next(numbers)))
        return device.kinds() == ["outbox_in_memory"]

    wait_until(told, "the event")
    assert "has not answered" in str(outbox.fault)
    last = next(numbers)
    assert payloads(outbox.claim(100_000)) == list(range(last))
    answer.set()
    wait_until(lambda: device.kinds() == ["outbox_in_memory", "outbox_on_disk"], "recovery")
    wait_until(lambda: rows(device.path) == list(range(last)), "all of it on disk")


def test_more_readings_than_the_flush_window_was_meant_for_are_written_sooner(device: Device) -> None:
    outbox = device.start(flush_s=60, max_memory_bytes=400_000)
    outbox.put(reading(0))
    wait_until(lambda: outbox.stats().unwritten == 0, "the first on disk")
    for n in range(1, 100):
        outbox.put(reading(n, size=4000))
        wait_until(lambda: outbox.stats().unwritten < 30, "some on disk")
    assert outbox.stats().dropped == {}
    assert outbox.stats().depth == 100


def test_file_that_is_removed_while_in_use_is_made_again_with_all_that_is_in_memory(device: Device) -> None:
    outbox = device.start()
    for n in range(3):
        outbox.put(reading(n))
    for name in device.path.parent.glob("outbox.db*"):
        if not name.name.endswith(".lock"):
            name.unlink()
    outbox.put(reading(3))
    wait_until(lambda: device.path.exists() and rows(device.path) == [0, 1, 2, 3], "the new file")
    assert "outbox_replaced" in device.kinds()
    assert balanced(outbox)


def damaged_while_in_use(device: Device, harm: Callable[[bytearray], None]) -> DiskOutbox:
    """An outbox with readings 0 to 799 whose file comes to harm after the check at the start."""
    outbox = device.start(flush_s=0.01)
    for n in range(800):
        outbox.put(reading(n, size=1000))
    outbox.close()
    content = bytearray(device.path.read_bytes())
    harm(content)
    outbox = device.start()
    outbox.put(reading(800))
    assert outbox.fault is None
    with device.path.open("r+b") as file:
        file.write(content)
    return outbox


def test_damage_that_shows_while_running_costs_what_is_not_in_memory_and_is_counted(device: Device) -> None:
    def harm(content: bytearray) -> None:
        for page in range(20, len(content) // 4096, 2):
            content[page * 4096 : page * 4096 + 4096] = b"\xff" * 4096

    outbox = damaged_while_in_use(device, harm)
    got: list[int] = []
    while entries := outbox.claim(50):
        got += payloads(entries)
        outbox.done([entry.id for entry in entries])
    assert 800 in got
    wait_until(lambda: "outbox_replaced" in device.kinds(), "a new file")
    wait_until(lambda: outbox.fault is None, "recovery")
    for n in range(900, 903):
        outbox.put(reading(n))
    assert payloads(outbox.claim(10)) == [900, 901, 902]
    assert balanced(outbox)
    dropped = outbox.ledger().totals()["cam"]["dropped"]
    assert dropped == {"damaged": 801 - len(got)}
    assert list(device.path.parent.glob("outbox.db.aside-*"))


def test_reading_whose_bytes_have_changed_is_not_sent_and_costs_no_other(device: Device) -> None:
    def harm(content: bytearray) -> None:
        at = content.index(b"700" + b" " * 1000)
        content[at : at + 3] = b"701"

    outbox = damaged_while_in_use(device, harm)
    got: list[int] = []
    while entries := outbox.claim(50):
        got += payloads(entries)
        outbox.done([entry.id for entry in entries])
    assert sorted(got) == [n for n in range(801) if n != 700]
    assert outbox.ledger().totals()["cam"]["dropped"] == {"damaged": 1}
    assert balanced(outbox)


def test_closing_with_a_disk_that_fails_says_what_is_lost(device: Device, caplog: pytest.LogCaptureFixture) -> None:
    device.path = device.path.parent / "file" / "outbox.db"
    device.path.parent.write_text("in the way of the folder")
    outbox = device.start()
    outbox.put(reading(0))
    outbox.close()
    outbox.close()
    assert [text for text in caplog.messages if "1 readings were not delivered and are lost" in text]


@pytest.mark.parametrize(("flush_s", "count"), [(0.2, 10_000), (0.0, 200)])
def test_little_is_written_for_a_reading_and_file_and_log_are_capped(
    device: Device, flush_s: float, count: int
) -> None:
    def written_bytes() -> int:
        return int(re.findall(r"^write_bytes: (\d+)", Path("/proc/self/io").read_text(), re.MULTILINE)[0])

    outbox = device.start(flush_s=flush_s, max_bytes=8_000_000)
    before = written_bytes()
    for n in range(count):
        outbox.put(reading(n, size=1500))
    wait_until(lambda: outbox.stats().unwritten == 0 and outbox.stats().disk_bytes <= 8_000_000, "all on disk")
    assert written_bytes() - before < 40_000 * count
    assert device.path.stat().st_size < 40_000_000
    assert Path(f"{device.path}-wal").stat().st_size < 40_000_000


def test_file_is_for_its_owner_alone(device: Device) -> None:
    outbox = device.start()
    outbox.put(reading(0))
    for name in device.path.parent.glob("outbox.db*"):
        assert name.stat().st_mode & 0o077 == 0, name
