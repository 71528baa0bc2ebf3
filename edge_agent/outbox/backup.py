"""Backup: an outbox as one file, taken of one in use as well, and put back in its place."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from edge_agent.errors import ConfigError, EdgeAgentError
from edge_agent.files import PARTIAL, sync_folder
from edge_agent.outbox.accounts import read_ledger
from edge_agent.outbox.soundness import LOGS, locked, problem_of, set_aside
from edge_agent.outbox.store import StoreUnavailable, open_reader


def back_up(path: Path, to: Path) -> int:
    """Copies the outbox at `path`, in use or not, whole into the file `to`; how many readings wait in the copy.

    Raises ConfigError where there is no outbox or `to` is no place for a copy, EdgeAgentError where the outbox cannot
    be read or the copy not be written.
    """
    read_ledger(path)  # says what is wrong with it
    _refuse_place(path, to)
    with _replacing(path, to):
        pass
    return read_ledger(to).queued


def restore(backup: Path, path: Path) -> tuple[int, str | None]:
    """Puts a backup in the place of the outbox at `path`; how many readings wait in it, and what became of the file
    that was there, if one was. Logs beside that file (-wal, -shm) go with it: they belong to it.

    Root does it for whoever the folder belongs to: the agent must be able to open what lies there.
    Raises ConfigError where there is no backup, EdgeAgentError where it is not sound, or the agent runs.
    """
    if not backup.is_file():
        raise ConfigError(f"there is no backup at {backup.absolute()}")
    try:
        problem = problem_of(backup)
    except StoreUnavailable as exc:
        raise EdgeAgentError(str(exc)) from exc
    if problem is not None:
        raise EdgeAgentError(f"{backup} {problem}; nothing was changed")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = locked(path)
    except StoreUnavailable as exc:
        raise EdgeAgentError(f"{exc}; to restore, stop the agent first, and do this as its user or root") from exc
    except OSError as exc:
        raise EdgeAgentError(f"{path.parent} cannot be made: {exc.strerror}") from exc
    try:
        # copied before: to make room for what goes aside, the oldest of what went before it is removed
        with _replacing(backup, path) as copy:
            _hand_over(copy, lock, path.parent)
            aside = set_aside(path, "is replaced by a backup") if os.path.lexists(path) else None
    except StoreUnavailable as exc:
        raise EdgeAgentError(str(exc)) from exc
    finally:
        os.close(lock)
    return read_ledger(path).queued, aside


def _refuse_place(path: Path, to: Path) -> None:
    """ConfigError where a copy would take the place of a device, or of an outbox that may be in use."""
    if to.resolve() == path.resolve():
        raise ConfigError(f"{to} is the outbox itself; name another file for its backup")
    if to.exists() and not to.is_file():
        raise ConfigError(f"{to} is no file that could be replaced; name one for the backup")
    logs = [name for name in (f"{to}{end}" for end in LOGS) if os.path.lexists(name)]
    if logs:
        raise ConfigError(f"{to} has a log beside it, {logs[0]}, as an outbox has; name another file for the backup")


def _hand_over(copy: Path, lock: int, folder: Path) -> None:
    if os.geteuid() == 0:
        owner = folder.stat()
        os.chown(copy, owner.st_uid, owner.st_gid)
        os.fchown(lock, owner.st_uid, owner.st_gid)


@contextmanager
def _replacing(source: Path, target: Path) -> Iterator[Path]:
    """A copy, one file without a log for its owner's eyes only, which takes the target's place at the end; an error
    inside leaves the target as it is."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}-", suffix=PARTIAL, dir=target.parent)
        os.close(handle)
        try:
            with closing(open_reader(source)) as reading, closing(sqlite3.connect(name)) as writing:
                reading.backup(writing)
                writing.execute("PRAGMA journal_mode=DELETE").fetchall()
            yield Path(name)
            Path(name).replace(target)
        finally:
            with suppress(FileNotFoundError):
                Path(name).unlink()
        sync_folder(target.parent)
    except OSError as exc:
        raise EdgeAgentError(f"{target} cannot be written: {exc.strerror}") from exc
    except sqlite3.Error as exc:
        raise EdgeAgentError(f"{source} cannot be copied to {target}: {exc}") from exc
