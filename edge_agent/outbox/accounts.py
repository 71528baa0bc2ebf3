"""Accounts: what an outbox's file says of the readings that went through it; it may be in use, and is not changed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from edge_agent.errors import ConfigError, EdgeAgentError
from edge_agent.outbox.ledger import Ledger
from edge_agent.outbox.store import APPLICATION_ID, DeadLetter, dead_letters, ledger_rows, open_reader

T = TypeVar("T")


def read_ledger(path: Path) -> Ledger:
    """The ledger; ConfigError where there is no outbox, EdgeAgentError where it cannot be read."""
    return Ledger(_read(path, ledger_rows))


def read_dead_letters(path: Path) -> list[DeadLetter]:
    """What was given up, oldest first; raises as `read_ledger` does."""
    return _read(path, dead_letters)


def _read(path: Path, of: Callable[[sqlite3.Connection], T]) -> T:
    if not path.is_file():
        raise ConfigError(
            f"there is no outbox at {path.absolute()}; name the file with --database, or run the agent first"
        )
    if not os.access(path, os.R_OK):
        raise EdgeAgentError(f"{path} may not be read; do it as the user of the service, or as root")
    try:
        with closing(open_reader(path)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            if application != APPLICATION_ID:
                raise EdgeAgentError(f"{path} is the database of another program, not an outbox")
            return of(connection)
    except (sqlite3.Error, ValueError, TypeError) as exc:
        raise EdgeAgentError(
            f"{path} cannot be read: {exc}; the agent moves a damaged file aside when it starts"
        ) from exc
