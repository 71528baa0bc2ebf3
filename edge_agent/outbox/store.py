"""Store: the outbox's SQLite file. Rows go in and out in batches, each one transaction.

WAL, because readers then never wait for the writer, and because a batch costs one sequential write and one fsync.
`synchronous=FULL`, because with NORMAL the log is not synced at each commit, and a power cut takes back all that was
committed since the last checkpoint, not only the flush window. Freed pages are used again and the file is not shrunk
while it runs: giving pages back (auto_vacuum) moves others about, and that wears the flash for space that the next
outage needs again. It is shrunk at the start, where that costs next to nothing because nothing waits.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from edge_agent.outbox.base import Entry, cost_bytes
from edge_agent.outbox.ledger import LedgerRow
from edge_agent.records import Message, Origin

APPLICATION_ID = 0x45444F42  # "EDOB", in the file's header: whose file it is
SCHEMA = 1  # in the lowest byte of user_version; above it a number of the file's own, by which its log is known
BUSY_S = 2.0
WAL_PAGES = 1000  # of 4 KB; the log is then copied into the file, each page once however often it changed
WAL_BYTES = 8_388_608  # a log that grew beyond (a reader was in the way) is cut back to this
SHRINK_FROM_BYTES = 16_777_216
DAMAGED = b""  # in the place of a payload that is not what was written; none is empty
DEAD_KEPT = 100
DEAD_KEPT_BYTES = 4_194_304
# SQLite's result codes of troubles that are not the file's fault: PERM BUSY LOCKED NOMEM READONLY IOERR FULL CANTOPEN
NOT_THE_FILE = frozenset({3, 5, 6, 7, 8, 10, 13, 14})
# Python 3.10 knows no codes
NOT_THE_FILE_TEXTS = ("locked", "readonly", "disk I/O", "full", "unable to open", "out of memory", "permission")

TABLES = {
    "waiting": (
        "CREATE TABLE waiting (id INTEGER PRIMARY KEY, topic TEXT NOT NULL, qos INTEGER NOT NULL, camera TEXT NOT NULL,"
        " reading_id TEXT, seq INTEGER, captured_at REAL, queued_at REAL NOT NULL, queued_mono REAL NOT NULL,"
        " boot TEXT NOT NULL, trusted INTEGER NOT NULL, crc INTEGER NOT NULL, payload BLOB NOT NULL)"
    ),
    "ledger": (
        "CREATE TABLE ledger (camera TEXT NOT NULL, day INTEGER NOT NULL, produced INTEGER NOT NULL,"
        " delivered INTEGER NOT NULL, queued INTEGER NOT NULL, dropped TEXT NOT NULL, last_seq INTEGER,"
        " PRIMARY KEY (camera, day)) WITHOUT ROWID"
    ),
    "dead": (
        "CREATE TABLE dead (id INTEGER PRIMARY KEY, died_at REAL NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL,"
        " topic TEXT NOT NULL, reading_id TEXT, seq INTEGER, bytes INTEGER NOT NULL, payload BLOB NOT NULL)"
    ),
}
INSERT = "INSERT INTO waiting VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
SELECT = (
    "SELECT id, topic, qos, camera, reading_id, seq, captured_at, queued_at, queued_mono, boot, trusted, crc, payload"
    " FROM waiting WHERE id > ? AND id < ? ORDER BY id LIMIT ?"
)
SELECT_LEDGER = "SELECT camera, day, produced, delivered, queued, dropped, last_seq FROM ledger"


class StoreUnavailable(Exception):
    """The file cannot be used now (disk full, read-only, locked); trying again later may help."""


class StoreDamaged(Exception):
    """The file is not what was written; it has to be moved aside."""


@dataclass(frozen=True)
class DeadLetter:
    """A message that was given up: when (unix s), why, and the message."""

    died_at: float
    reason: str
    detail: str
    message: Message


@dataclass(frozen=True)
class Batch:
    """What one transaction changes; ids are the entries' own."""

    arrived: Sequence[Entry] = ()
    left: Sequence[int] = ()
    ledger: Sequence[LedgerRow] = ()
    folded: Sequence[tuple[str, int]] = ()
    dead: Sequence[DeadLetter] = ()
    revived: int = 0  # up to this row of `dead`, what was given up waits again

    def __bool__(self) -> bool:
        return any((self.arrived, self.left, self.ledger, self.folded, self.dead, self.revived))


class Store:
    """An open file that was checked before (see `soundness`). One thread writes, one at a time reads.

    An entry's id is its row's id less the highest that was there at the start: what was found has ids up to 0.
    `lock` is an open file, locked as long as it is open, which keeps other processes out. Every method raises
    StoreUnavailable or StoreDamaged.
    """

    def __init__(self, path: Path, boot_id: str, lock: int) -> None:
        self.path = path
        self._boot_id = boot_id
        self._lock = lock
        with translated():
            self._writer = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
            self._reader = self._writer
            try:
                self._configure()
                self._reader = open_reader(path)
                first, last = self._writer.execute("SELECT min(id), max(id) FROM waiting").fetchone()
                self._shrink(empty=last is None)
            except sqlite3.Error:
                self._close_connections()
                raise
        self._offset = int(last or 0)
        self.first_id = int(first or 1) - self._offset  # of what was found; 1 where that was nothing

    def write(self, batch: Batch) -> None:
        """Makes all of the batch's changes lasting, or none of them."""
        if not self._still_there():
            raise StoreDamaged("it was removed, or replaced by another")
        if not batch:
            return
        with translated():
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                self._change(batch)
                self._writer.execute("COMMIT")
            except sqlite3.Error:
                if self._writer.in_transaction:
                    with suppress(sqlite3.Error):
                        self._writer.execute("ROLLBACK")
                raise

    def make_room(self) -> None:
        """Lets the log be used again from its beginning, so that rows can be deleted though the disk is full."""
        with suppress(sqlite3.Error):
            self._writer.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()

    def read(self, after: int, before: int, most: int, most_bytes: int) -> tuple[list[Entry], bool]:
        """Entries between two ids, in order, and whether there were no more of them."""
        entries: list[Entry] = []
        size_bytes = 0
        bounds = (after + self._offset, before + self._offset, most)
        with translated():
            rows = self._reader.execute(SELECT, bounds)
            try:
                for row in rows:
                    entries.append(self._entry(row))
                    size_bytes += cost_bytes(entries[-1].message)
                    if size_bytes >= most_bytes:
                        return entries, False
            finally:
                rows.close()
        return entries, len(entries) < most

    def given_up(self, after: int) -> tuple[int, list[Message]]:
        """The messages that were given up and are kept whole, oldest first, from the row `after` on, and the last
        one's row; 0 without any."""
        select = "SELECT id, topic, payload FROM dead WHERE id > ? AND length(payload) = bytes ORDER BY id"
        with translated():
            rows = self._reader.execute(select, (after,)).fetchall()
        return max((_int(id_) for id_, _, _ in rows), default=0), [Message(str(t), _bytes(p)) for _, t, p in rows]

    def ledger(self) -> list[LedgerRow]:
        """Every row of the ledger."""
        with translated():
            return ledger_rows(self._writer)

    def used_bytes(self) -> int:
        """What is taken of the file; pages that were freed and wait to be used again do not count."""
        with translated():
            pages, free, size = (self._pragma(name) for name in ("page_count", "freelist_count", "page_size"))
        return (pages - free) * size

    def close(self) -> None:
        """Copies the log into the file and closes it; other processes may open it then."""
        self._close_connections()
        os.close(self._lock)

    def _still_there(self) -> bool:
        """Whether the path still leads to the file that is open."""
        try:
            return self.path.stat().st_ino == self._inode
        except OSError:
            return False

    def _configure(self) -> None:
        self._writer.execute("PRAGMA journal_mode=WAL").fetchall()
        self._writer.execute("PRAGMA synchronous=FULL")
        self._writer.execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES}").fetchall()
        self._writer.execute(f"PRAGMA journal_size_limit={WAL_BYTES}").fetchall()
        self._writer.execute("PRAGMA temp_store=MEMORY")
        self._inode = os.stat(self.path).st_ino  # noqa: PTH116 - beside sqlite3, which has it open

    def _shrink(self, *, empty: bool) -> None:
        if empty and self._pragma("page_count") * self._pragma("page_size") >= SHRINK_FROM_BYTES:
            with suppress(sqlite3.OperationalError):
                self._writer.execute("VACUUM")

    def _pragma(self, name: str) -> int:
        return int(self._writer.execute(f"PRAGMA {name}").fetchone()[0])

    def _close_connections(self) -> None:
        for connection in (self._reader, self._writer):  # the writer last: then the log is copied and removed
            with suppress(sqlite3.Error):
                connection.close()

    def _change(self, batch: Batch) -> None:
        run = self._writer
        run.executemany(INSERT, (self._row(entry) for entry in batch.arrived))
        run.executemany(
            "DELETE FROM waiting WHERE id BETWEEN ? AND ?",
            ((first + self._offset, last + self._offset) for first, last in ranges(batch.left)),
        )
        run.executemany(
            "INSERT OR REPLACE INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (r.source, r.day, r.produced, r.delivered, r.queued, json.dumps(r.dropped), r.last_seq)
                for r in batch.ledger
            ),
        )
        run.executemany("DELETE FROM ledger WHERE camera = ? AND day = ?", batch.folded)
        run.execute("DELETE FROM dead WHERE id <= ? AND length(payload) = bytes", (batch.revived,))
        if batch.dead:
            run.executemany(
                "INSERT INTO dead VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", (_dead_row(letter) for letter in batch.dead)
            )
            self._bury_oldest()

    def _bury_oldest(self) -> None:
        kept_bytes = 0
        for n, (id_, size_bytes) in enumerate(
            self._writer.execute("SELECT id, length(payload) FROM dead ORDER BY id DESC").fetchall()
        ):
            kept_bytes += size_bytes
            if n >= DEAD_KEPT or kept_bytes > DEAD_KEPT_BYTES:
                self._writer.execute("DELETE FROM dead WHERE id <= ?", (id_,))
                return

    def _row(self, entry: Entry) -> tuple[object, ...]:
        message, origin = entry.message, entry.message.origin
        about = (None, None, None) if origin is None else (origin.id, origin.seq, origin.captured_at)
        boot = self._boot_id if entry.queued_mono > float("-inf") else ""
        mono = entry.queued_mono if boot else 0.0
        when = (entry.queued_at, mono, boot, int(entry.trusted))
        id_ = entry.id + self._offset
        crc = zlib.crc32(message.payload)
        return (id_, message.topic, message.qos, entry.source, *about, *when, crc, message.payload)

    def _entry(self, row: tuple[object, ...]) -> Entry:
        id_, topic, qos, camera, reading_id, seq, captured_at, queued_at, queued_mono, boot, trusted, crc, payload = row
        content = _bytes(payload)
        origin = None
        if reading_id is not None:
            origin = Origin(str(reading_id), str(camera), _int(seq), _float(captured_at))
        # SQLite finds out when a page does not fit the others, not when the bytes of a value have changed
        is_sound = zlib.crc32(content) == crc
        message = Message(str(topic), content if is_sound else DAMAGED, _int(qos), origin=origin)
        mono = _float(queued_mono) if boot == self._boot_id else float("-inf")
        return Entry(_int(id_) - self._offset, message, mono, _float(queued_at), bool(trusted))


@contextmanager
def translated() -> Iterator[None]:
    """Errors of SQLite as what they mean for us."""
    try:
        yield
    except (sqlite3.Error, TypeError, ValueError) as exc:  # a value of another type than was written, too
        if isinstance(exc, sqlite3.Error) and is_not_the_files_fault(exc):
            raise StoreUnavailable(str(exc)) from exc
        raise StoreDamaged(str(exc)) from exc


def is_not_the_files_fault(exc: sqlite3.Error) -> bool:
    """Whether the file may well be sound, and only cannot be used now."""
    if isinstance(exc, sqlite3.ProgrammingError):  # it is being closed
        return True
    code = getattr(exc, "sqlite_errorcode", None)
    if code is not None:
        return (code & 0xFF) in NOT_THE_FILE
    return isinstance(exc, sqlite3.OperationalError) and any(text in str(exc) for text in NOT_THE_FILE_TEXTS)


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that can change nothing; raises sqlite3.Error."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)


def ledger_rows(connection: sqlite3.Connection) -> list[LedgerRow]:
    """Every row of the ledger; raises sqlite3.Error, or ValueError for what nobody wrote."""
    return [
        LedgerRow(str(camera), int(day), int(produced), int(delivered), int(queued), _counts(dropped), last_seq)
        for camera, day, produced, delivered, queued, dropped, last_seq in connection.execute(SELECT_LEDGER)
    ]


def dead_letters(connection: sqlite3.Connection) -> list[DeadLetter]:
    """What was given up, oldest first; raises sqlite3.Error."""
    select = "SELECT died_at, reason, detail, topic, payload FROM dead ORDER BY id"
    return [
        DeadLetter(float(died_at), str(reason), str(detail), Message(str(topic), bytes(payload)))
        for died_at, reason, detail, topic, payload in connection.execute(select)
    ]


def ranges(ids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Runs of consecutive ids, as (first, last)."""
    first = last = None
    for id_ in sorted(ids):
        if first is None or last is None:
            first = last = id_
        elif id_ == last + 1:
            last = id_
        else:
            yield first, last
            first = last = id_
    if first is not None and last is not None:
        yield first, last


def _dead_row(letter: DeadLetter) -> tuple[object, ...]:
    message, origin = letter.message, letter.message.origin
    about = (None, None) if origin is None else (origin.id, origin.seq)
    kept = message.payload[: DEAD_KEPT_BYTES // 4]
    return (letter.died_at, letter.reason, letter.detail, message.topic, *about, len(message.payload), kept)


def _counts(text: str) -> dict[str, int]:
    return {str(reason): int(count) for reason, count in json.loads(text).items()}


def _int(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} where a whole number was written")
    return value


def _float(value: object) -> float:
    if not isinstance(value, (int, float)):
        raise TypeError(f"{value!r} where a number was written")
    return float(value)


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"{type(value).__name__} where bytes were written")
    return value
