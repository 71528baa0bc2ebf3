"""Backup: an outbox as one file, taken of one in use as well, and put back in its place."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path

from edge_agent.errors import ConfigError, EdgeAgentError
from edge_agent.files import PARTIAL, sync_folder
from edge_agent.outbox.accounts import read_ledger
from edge_agent.outbox.soundness import locked, problem_of, set_aside
from edge_agent.outbox.store import StoreUnavailable, open_reader


def back_up(path: Path, to: Path) -> int:
    """Copies the outbox at `path`, in use or not, whole into the file `to`; how many readings wait in the copy.

    Raises ConfigError where there is no outbox, EdgeAgentError where it cannot be read or the copy not be written.
    """
    read_ledger(path)  # says what is wrong with it
    _copy(path, to)
    return read_ledger(to).queued


def restore(backup: Path, path: Path) -> tuple[int, str | None]:
    """Puts a backup in the place of the outbox at `path`; how many readings wait in it, and what became of the file
    that was there, if one was. Logs beside that file (-wal, -shm) go with it: they belong to it.

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
    except (OSError, StoreUnavailable) as exc:
        raise EdgeAgentError(
            f"{path} is in use, or may not be written; stop the agent first, and do this as its user"
        ) from exc
    try:
        aside = set_aside(path, "is replaced by a backup") if os.path.lexists(path) else None
        _copy(backup, path)
    except StoreUnavailable as exc:
        raise EdgeAgentError(str(exc)) from exc
    finally:
        os.close(lock)
    return read_ledger(path).queued, aside


def _copy(source: Path, target: Path) -> None:
    """One file without a log, for its owner's eyes only; whole or not at all."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}-", suffix=PARTIAL, dir=target.parent)
        os.close(handle)
        try:
            with closing(open_reader(source)) as reading, closing(sqlite3.connect(name)) as writing:
                reading.backup(writing)
                writing.execute("PRAGMA journal_mode=DELETE").fetchall()
            Path(name).replace(target)
        finally:
            with suppress(FileNotFoundError):
                Path(name).unlink()
        sync_folder(target.parent)
    except OSError as exc:
        raise EdgeAgentError(f"{target} cannot be written: {exc.strerror}") from exc
    except sqlite3.Error as exc:
        raise EdgeAgentError(f"{source} cannot be copied to {target}: {exc}") from exc
