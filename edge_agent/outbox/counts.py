"""Counts: what came into an outbox and how it left: the ledger of its readings, and all drops by reason."""

from __future__ import annotations

from collections import Counter

from edge_agent.outbox.base import Entry, is_state
from edge_agent.outbox.ledger import Ledger


class Counts:
    """States are not in the ledger; what is dropped of them is counted all the same. The outbox's lock guards it."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.dropped: Counter[str] = Counter()  # since the start

    def came(self, entry: Entry) -> None:
        """A message was taken."""
        if not is_state(entry.message):
            origin = entry.message.origin
            self.ledger.produced(entry.source, entry.day, None if origin is None else origin.seq)

    def delivered(self, entry: Entry) -> None:
        """It was confirmed."""
        if not is_state(entry.message):
            self.ledger.delivered(entry.source, entry.day)

    def given_up(self, entry: Entry, reason: str) -> None:
        """It will not be delivered."""
        self.dropped[reason] += 1
        if not is_state(entry.message):
            self.ledger.dropped(entry.source, entry.day, reason)
