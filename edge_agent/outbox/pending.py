"""Pending: what the file of an outbox does not say yet: readings that came and left, counts, messages given up."""

from __future__ import annotations

from collections.abc import Iterable

from edge_agent.outbox.base import Entry, cost_bytes
from edge_agent.outbox.ledger import Ledger
from edge_agent.outbox.store import Batch, DeadLetter

DEAD_IN_MEMORY = 20  # while the disk fails


class Pending:
    """Gathers changes for one transaction after the other; from `batch` to `written` or `take_back` it is under way.

    Not for several threads at once: the outbox's lock guards it.
    """

    def __init__(self) -> None:
        self.unwritten: dict[int, Entry] = {}  # oldest first, without those under way
        self.unwritten_bytes = 0  # taken since the last write began
        self.dead: list[DeadLetter] = []
        self.forget_row = 0  # up to this row, what was given up waits again
        self._writing: dict[int, Entry] = {}
        self._gone: set[int] = set()  # rows to be deleted
        self._deleting: set[int] = set()

    def __len__(self) -> int:
        """Readings that are in memory only."""
        return len(self.unwritten) + len(self._writing)

    @property
    def is_writing(self) -> bool:
        """Whether readings are under way to the disk."""
        return bool(self._writing)

    @property
    def can_wait(self) -> bool:
        """Whether there is something that may wait for a reading to be written with."""
        return bool(self._gone or self.dead or self.forget_row)

    def add(self, entry: Entry) -> None:
        """A reading came."""
        self.unwritten[entry.id] = entry
        self.unwritten_bytes += cost_bytes(entry.message)

    def delete(self, id_: int) -> bool:
        """A reading left; True where it is the first row to be deleted."""
        if self.unwritten.pop(id_, None) is not None:
            return False
        self._gone.add(id_)
        return len(self._gone) == 1

    def holds(self, id_: int) -> bool:
        """Whether a reading is in memory only."""
        return id_ in self.unwritten or id_ in self._writing

    def is_leaving(self, id_: int) -> bool:
        """Whether a row is still to be deleted."""
        return id_ in self._gone or id_ in self._deleting

    def batch(self, ledger: Ledger) -> Batch:
        """Everything there is, with what has changed in the ledger."""
        folded = ledger.fold()
        rows = ledger.take_changed()
        self._writing, self.unwritten = self.unwritten, {}
        self.unwritten_bytes = 0
        self._deleting, self._gone = self._gone, set()
        dead, self.dead = self.dead, []
        forget_row, self.forget_row = self.forget_row, 0
        return Batch(list(self._writing.values()), sorted(self._deleting), rows, folded, dead, forget_row)

    def written(self) -> bool:
        """The batch is on the disk; whether any reading was in it."""
        any_new = bool(self._writing)
        self._writing, self._deleting = {}, set()
        return any_new

    def take_back(self, batch: Batch, ledger: Ledger) -> None:
        """What was not written waits for the next time."""
        for id_ in self._writing.keys() & self._gone:  # it has left meanwhile and was never on disk
            del self._writing[id_]
            self._gone.discard(id_)
        self.unwritten = {**self._writing, **self.unwritten}
        self._gone |= self._deleting
        self._writing, self._deleting = {}, set()
        ledger.mark_changed((row.source, row.day) for row in batch.ledger)
        self.dead = [*batch.dead, *self.dead][-DEAD_IN_MEMORY:]
        self.forget_row = max(self.forget_row, batch.revived)

    def begin_anew(self, entries: Iterable[Entry]) -> None:
        """The file is given up: these are to be written into the next, and nothing is to be deleted there."""
        self.unwritten = {entry.id: entry for entry in sorted(entries, key=lambda entry: entry.id)}
        self._gone = set()
