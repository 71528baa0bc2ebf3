"""Background: work that a thread of its own does, so that a slow disk holds nobody up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Full, Queue
from types import TracebackType
from typing import Generic, TypeVar

CLOSE_S = 2.0

Work = TypeVar("Work")


class Background(Generic[Work]):
    """Does `work` with what is offered, in that order; at most `most_waiting` pieces wait. A context manager.

    `work` deals with its own errors.
    """

    def __init__(self, name: str, work: Callable[[Work], None], most_waiting: int) -> None:
        self._work = work
        self._queue: Queue[tuple[Work] | None] = Queue(maxsize=most_waiting)
        self._thread = threading.Thread(target=self._do_all, name=name, daemon=True)
        self._thread.start()

    def offer(self, piece: Work) -> bool:
        """Whether it will be done; False where as much as may be waits already."""
        try:
            self._queue.put_nowait((piece,))
        except Full:
            return False
        return True

    def close(self) -> None:
        """Does what was taken and ends; does not wait for a disk that hangs."""
        with suppress(Full):
            self._queue.put(None, timeout=CLOSE_S)
        self._thread.join(CLOSE_S)

    def __enter__(self) -> Background[Work]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _do_all(self) -> None:
        while (taken := self._queue.get()) is not None:
            self._work(taken[0])
