"""Service: how the process lives under systemd (or without it): readiness, heartbeat, and the wish to stop.

The protocol is sd_notify(3): datagrams of KEY=VALUE lines to the socket that NOTIFY_SOCKET names.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from edge_agent.files import write_atomically

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
TOUCH_EVERY_S = 5.0


class Notifier:
    """Tells the service manager how the process is; does nothing where none listens. Main thread only.

    `heartbeat` is for finished work of the main loop, never for a timer: a loop that hangs must be noticed. In a
    container, where no manager listens, the age of the file that HEARTBEAT_FILE names tells the same (docker/probe.sh);
    in it stands `starting`, `ready` or `stopping`.
    """

    def __init__(self, environ: Mapping[str, str], monotonic: Callable[[], float]) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        self._watchdog_us = int(environ.get("WATCHDOG_USEC") or 0)
        self._heartbeat_every_s = self._watchdog_us / 1e6 / 4
        self._heartbeat_file = Path(environ["HEARTBEAT_FILE"]) if environ.get("HEARTBEAT_FILE") else None
        self._touched = float("-inf")
        self._state = "starting"
        self._monotonic = monotonic
        self._last_heartbeat = float("-inf")

    def ready(self, status: str) -> None:
        """Start-up is over: engines loaded and one inference passed. The watchdog watches as it was set up to."""
        watchdog = f"\nWATCHDOG_USEC={self._watchdog_us}" if self._watchdog_us else ""
        self._send(f"READY=1\nSTATUS={status}{watchdog}")
        self._enter("ready")

    def status(self, status: str) -> None:
        """One line for `systemctl status`."""
        self._send(f"STATUS={status}")

    def extend(self, more_s: float) -> None:
        """Start-up, or a stop, goes on: the manager is to wait at least `more_s` longer, its watchdog too, which goes
        on watching a process that has started afresh."""
        watchdog = "\nWATCHDOG=1" if self._watchdog_us else ""
        self._send(f"EXTEND_TIMEOUT_USEC={int(more_s * 1e6)}{watchdog}")
        self._touch()

    def heartbeat(self) -> None:
        """The main loop has come round; sent at most four times per watchdog interval."""
        now = self._monotonic()
        if now - self._last_heartbeat >= self._heartbeat_every_s:
            self._last_heartbeat = now
            self._send("WATCHDOG=1")
        self._touch()

    def restarting(self, may_take_s: float) -> None:
        """This process will be another program in a moment, which may say nothing for so long before it is `ready`."""
        longer = f"\nWATCHDOG_USEC={int(may_take_s * 1e6)}\nWATCHDOG=1" if self._watchdog_us else ""
        self._send(f"STATUS=restarting{longer}")
        self._enter("starting")

    def stopping(self) -> None:
        """Shutdown has begun."""
        self._send("STOPPING=1")
        self._enter("stopping")

    def _enter(self, state: str) -> None:
        self._state = state
        self._touched = float("-inf")
        self._touch()

    def _touch(self) -> None:
        now = self._monotonic()
        if self._heartbeat_file is not None and now - self._touched >= TOUCH_EVERY_S:
            self._touched = now
            with suppress(OSError):  # whoever looks sees the file's age
                write_atomically(self._heartbeat_file, f"{self._state}\n".encode(), durable=False)

    def _send(self, state: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                channel.sendto(state.encode(), address)
        except OSError:
            return  # the manager has gone; the agent's work does not depend on it


@contextmanager
def stop_on_signals(stop: threading.Event) -> Iterator[None]:
    """While inside, SIGTERM and SIGINT set `stop`. SIGTERM may come again (a manager repeats itself); a second
    SIGINT is a person in a hurry and ends the process at once."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}

    def wish(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        stop.set()

    for number in STOP_SIGNALS:
        signal.signal(number, wish)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)  # `start_afresh` hands them down blocked
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def start_afresh(stop: threading.Event) -> None:
    """Becomes the same program anew, by the same command line and under the same process id; returns only where a
    signal has said `stop`.

    Signals are held back meanwhile, so that one which comes in between reaches the new program. Main thread only.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    if stop.is_set() or signal.sigpending() & set(STOP_SIGNALS):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        return
    sys.stdout.flush()
    sys.stderr.flush()
    # what native libraries opened without O_CLOEXEC, a camera most of all, would stay open for ever
    for descriptor in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        with suppress(OSError):  # that of the listing itself is closed again
            os.set_inheritable(descriptor, descriptor < 3)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
