"""Soundness: finds out whether the file can be trusted, moves aside what cannot, and makes a new one.

Whatever lies there, the agent starts: a damaged, truncated, empty or foreign file, or a folder, is renamed with the
time in its name, and the newest few of those are kept. Only a disk that takes nothing, or another process that uses
the file, is no reason to rename: then the outbox works in memory and tries again.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import sqlite3
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from edge_agent.files import sync_folder
from edge_agent.outbox.store import (
    APPLICATION_ID,
    SCHEMA,
    TABLES,
    Store,
    StoreDamaged,
    StoreUnavailable,
    is_not_the_files_fault,
    open_reader,
    translated,
)

log = logging.getLogger(__name__)

CHECK_S = 3.0  # a whole check of a large file on a slow card takes longer: what it misses shows when it is read
CHECK_EVERY_STEPS = 10_000
ASIDE_KEPT = 3
HEADER = b"SQLite format 3\0"
HEADER_BYTES = 100
USER_VERSION_OFFSET = 60  # https://www.sqlite.org/fileformat.html, section 1.3
LOGS = ("-wal", "-shm", "-journal")


@dataclass(frozen=True)
class Opened:
    """An open store, and what there was to say about it."""

    store: Store
    findings: tuple[str, ...]


def open_store(path: Path, boot_id: str) -> Opened:
    """The store at `path`, sound; raises StoreUnavailable where there can be none now."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreUnavailable(f"cannot make the folder {path.parent}: {exc.strerror}") from exc
    lock = locked(path)
    try:
        findings = _made_sound(path)
        return Opened(Store(path, boot_id, lock), findings)
    except StoreDamaged as exc:  # beyond what the check looks at
        text = replace(path, f"is damaged ({exc})")
        try:
            return Opened(Store(path, boot_id, lock), (text,))
        except (StoreDamaged, StoreUnavailable) as again:
            os.close(lock)
            raise StoreUnavailable(str(again)) from again
    except BaseException:
        os.close(lock)
        raise


def replace(path: Path, why: str) -> str:
    """Moves the file aside and makes a new one; returns what happened, for people."""
    aside = _move_aside(path)
    _make(path)
    return f"{path} {why}; it was moved to {aside.name} and a new one begun"


def set_aside(path: Path, why: str) -> str:
    """Moves the file aside, if it is still there; returns what happened. The next `open_store` makes a new one."""
    aside = _move_aside(path)
    return f"{path} {why}; it was moved to {aside.name}" if aside.exists() else f"{path} {why}"


def _made_sound(path: Path) -> tuple[str, ...]:
    """Makes `path` a file that can be opened, and says what was wrong with it."""
    if not os.path.lexists(path):
        return _make_where_nothing_is(path)
    has_log = _has_content(Path(f"{path}-wal"))  # before the check, which makes an empty one
    problem = problem_of(path)
    if problem is None:
        return ()
    if has_log:
        aside = _move_aside(path, only_logs=True)
        if problem_of(path) is None:
            return (f"{path} has the log of another database beside it; that was moved to {aside.name}-wal",)
        _rename_logs(aside, path)  # they belong to what goes now
    return (replace(path, problem),)


def _make_where_nothing_is(path: Path) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    if _has_content(Path(f"{path}-wal")):
        aside = _move_aside(path, only_logs=True)
        found = (f"{path} was gone and its log still there; that was moved to {aside.name}-wal",)
    _make(path)
    return found


def problem_of(path: Path) -> str | None:
    """What is wrong with the file; None where nothing was found within CHECK_S. StoreUnavailable as ever."""
    if not path.is_file():
        return "is no file"
    try:
        with path.open("rb") as file:
            header = file.read(HEADER_BYTES)
    except OSError as exc:
        raise StoreUnavailable(f"{path} cannot be read: {exc.strerror}") from exc
    if not header:
        return "is empty"
    if not header.startswith(HEADER) or len(header) < HEADER_BYTES:
        return "is no SQLite database"
    try:
        with closing(open_reader(path)) as connection:
            return _problem_inside(connection, int.from_bytes(header[USER_VERSION_OFFSET:][:4], "big"))
    except sqlite3.Error as exc:
        if is_not_the_files_fault(exc):
            raise StoreUnavailable(f"{path} cannot be used now: {exc}") from exc
        return f"is damaged ({exc})"


def _problem_inside(connection: sqlite3.Connection, number_in_file: int) -> str | None:
    application, number = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
    )
    if application != APPLICATION_ID:
        return "belongs to another program"
    if number != number_in_file:
        return "has the log of another outbox beside it"
    if number & 0xFF > SCHEMA:
        return f"was written by a newer version (its schema is {number & 0xFF}, ours {SCHEMA})"
    tables = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
    if any(tables.get(name) != sql for name, sql in TABLES.items()):
        return "lacks a table, or has it otherwise"
    deadline = time.monotonic() + CHECK_S
    connection.set_progress_handler(lambda: int(time.monotonic() > deadline), CHECK_EVERY_STEPS)
    try:
        (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as exc:
        if "interrupt" in str(exc):
            return None
        raise
    return None if result == "ok" else f"is damaged ({result})"


def _make(path: Path) -> None:
    """An empty outbox, for its owner's eyes only; whole or not at all."""
    fresh = path.with_name(f".{path.name}.new")
    number = secrets.randbelow(1 << 22) << 8 | SCHEMA
    try:
        for end in ("", *LOGS):
            Path(f"{fresh}{end}").unlink(missing_ok=True)
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with translated(), closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={number}")
            for sql in TABLES.values():
                connection.execute(sql)
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
        fresh.rename(path)
        sync_folder(path.parent)
    except OSError as exc:
        raise StoreUnavailable(f"{path} cannot be made: {exc.strerror}") from exc


def _move_aside(path: Path, *, only_logs: bool = False) -> Path:
    """Renames the file and its logs, the time in the new name; returns that name, of the file itself."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    names = (path.with_name(f"{path.name}.aside-{stamp}{more}") for more in ("", *(f"-{n}" for n in range(1, 100))))
    aside = next((name for name in names if not _exists(name)), path.with_name(f"{path.name}.aside-{stamp}-last"))
    try:
        _rename_logs(path, aside)  # first: a log without its file is known for what it is, a file without is not
        if not only_logs and os.path.lexists(path):
            path.rename(aside)
        sync_folder(path.parent)
    except OSError as exc:
        raise StoreUnavailable(f"{path} cannot be moved aside: {exc.strerror}") from exc
    _remove_older(path)
    return aside


def _rename_logs(path: Path, target: Path) -> None:
    for end in LOGS:
        log_file = Path(f"{path}{end}")
        if end == "-shm" or not _has_content(log_file):  # the log's index is made anew from the log
            log_file.unlink(missing_ok=True)
        else:
            log_file.rename(f"{target}{end}")


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _exists(aside: Path) -> bool:
    return any(os.path.lexists(f"{aside}{end}") for end in ("", *LOGS))


def _remove_older(path: Path) -> None:
    """Keeps the newest ASIDE_KEPT of what was moved aside; a folder stays, nobody knows what is in it."""
    prefix = f"{path.name}.aside-"
    found = [name.name for name in path.parent.iterdir() if name.name.startswith(prefix)]
    bases = sorted({name.removesuffix("-wal").removesuffix("-shm").removesuffix("-journal") for name in found})
    for base in bases[:-ASIDE_KEPT]:
        for end in ("", *LOGS):
            with suppress(OSError):
                path.with_name(f"{base}{end}").unlink(missing_ok=True)


def _is_device(path: Path) -> bool:
    try:
        return path.is_char_device() or path.is_block_device()
    except OSError:  # a folder that must not be entered, which opening the lock tells
        return False


def locked(path: Path) -> int:
    """The lock beside the file, taken: an open file; StoreUnavailable while another process holds it, and for a device,
    which nobody means to have moved aside."""
    if _is_device(path):
        raise StoreUnavailable(f"{path} is a device; name a file, or set outbox.kind to memory")
    name = f"{path}.lock"
    try:
        lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise StoreUnavailable(f"{name} cannot be opened: {exc.strerror}") from exc
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        os.close(lock)
        raise StoreUnavailable(f"{path} is in use by another edge-agent; give each its own outbox.path") from exc
    return lock
