"""Connections: no more than the door bears, and none held by someone who says nothing, or takes nothing.

uvicorn alone bounds requests: whoever only connects would keep a place for ever, and enough of them every place, and
the program's files.
"""

from __future__ import annotations

import asyncio
import socket
import weakref
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from edge_agent.web.locks import is_loopback, network_of

HEAD_S = 20.0  # from a connection, or the answer before, to the end of a request's head
TAKEN_S = 30.0  # within which some of an answer is taken
SHARE = 0.5  # of all connections, for one address: its visitors shall not take the place of others


class Listener(socket.socket):
    """A listening socket that closes what comes while `most` connections are open, those in a TLS handshake too, or a
    share of them from the same address. This device's own addresses have no bound of theirs: a proxy may be there."""

    def __init__(self, listening: socket.socket, most: int) -> None:
        """Takes the place of `listening`, which is detached."""
        super().__init__(fileno=listening.detach())
        self._most = most
        self._from: weakref.WeakKeyDictionary[socket.socket, str] = weakref.WeakKeyDictionary()

    @property
    def networks(self) -> list[str]:
        """Where from each open connection is."""
        return [network for connection, network in self._from.items() if connection.fileno() >= 0]

    def accept(self) -> tuple[socket.socket, Any]:
        """ConnectionAbortedError where too many are open: an event loop goes on then."""
        accepted, address = super().accept()
        network = network_of(address[0])
        networks = self.networks
        of_one = 0 if is_loopback(address[0]) else networks.count(network)
        if len(networks) >= self._most or of_one >= self._most * SHARE:
            accepted.close()
            raise ConnectionAbortedError(f"{len(networks)} connections are open, {of_one} of them from {network}")
        self._from[accepted] = network
        return accepted, address


class Connection(H11Protocol):
    """uvicorn's, which ends where the head of a request, or the taking of an answer, lasts too long."""

    _head_due: asyncio.TimerHandle | None = None
    _taken_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Its first request is waited for."""
        super().connection_made(transport)
        self._head_due = self.loop.call_later(HEAD_S, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        super().connection_lost(exc)
        self._expect_no_head()
        self._expect_no_taking()

    def handle_events(self) -> None:
        """Something came, or an answer is complete and what came meanwhile is looked at."""
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._expect_no_head()
        elif self._head_due is None and not self.transport.is_closing():
            self._head_due = self.loop.call_later(HEAD_S, self.transport.abort)

    def pause_writing(self) -> None:
        """An answer is taken slower than it is made."""
        super().pause_writing()
        self._taken_due = self.loop.call_later(TAKEN_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Some was taken."""
        super().resume_writing()
        self._expect_no_taking()

    def _expect_no_head(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _expect_no_taking(self) -> None:
        if self._taken_due is not None:
            self._taken_due.cancel()
            self._taken_due = None
