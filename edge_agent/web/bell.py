"""Bell: tells the door's event loop, from any thread, that there is something new to show."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Bell:
    """Made in the event loop, rung from any thread. Nobody waits, and ringing costs a look at a number."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()
        self._waiting = 0
        self._ringing = False

    def ring(self) -> None:
        """Wakes everyone who waits, soon; any thread. Of a loop that has ended nothing is heard."""
        if self._waiting and not self._ringing:
            self._ringing = True
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake)

    async def wait(self, timeout_s: float) -> bool:
        """Until it rings; False where it did not within `timeout_s`."""
        self._waiting += 1
        try:
            await asyncio.wait_for(self._rung.wait(), timeout_s)
        except (TimeoutError, asyncio.TimeoutError):
            return False
        finally:
            self._waiting -= 1
        return True

    def _wake(self) -> None:
        self._ringing = False
        self._rung.set()
        self._rung = asyncio.Event()
