"""Child: a process that the demo starts, whose output goes to a file and that ends with the demo."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType

GRACE_S = 8.0
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Child:
    """A running process in a group of its own, so that Ctrl-C reaches the demo alone, which then ends it in order.

    It gets this process's environment without the settings for an agent (EDGE_AGENT_*), which are meant for another.
    A context manager: leaving it sends SIGTERM, then, after `grace_s`, SIGKILL to the whole group.
    """

    def __init__(self, name: str, argv: Sequence[str], log: Path, grace_s: float = GRACE_S) -> None:
        self.name = name
        self.log = log
        self._grace_s = grace_s
        environ = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_AGENT_")}
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environ,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def last_lines(self, count: int = 20) -> list[str]:
        """The end of what it wrote to stdout and stderr, control characters taken out."""
        with self.log.open("rb") as output:
            output.seek(max(0, output.seek(0, os.SEEK_END) - 32_768))
            text = output.read().decode("utf-8", "replace")
        lines = text.splitlines()[-count:]
        return ["".join(c for c in line if c.isprintable() or c == "\t") for line in lines]

    def close(self) -> None:
        """Ends it and what it started; calling it again does nothing. A second Ctrl-C cuts the grace short."""
        try:
            if self._process.poll() is None:
                self._signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(self._grace_s)
        finally:
            self._signal(signal.SIGKILL)  # also what it may have left behind in its group
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def started(name: str, argv: Sequence[str], log: Path, grace_s: float = GRACE_S) -> Iterator[Child]:
    """A running child that has ended when the block is left, also when Ctrl-C comes while it is being started."""
    with ExitStack() as opened:
        with interrupts_held():
            child = opened.enter_context(Child(name, argv, log, grace_s))
        yield child


@contextmanager
def interrupts_held() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP wait until the block is left; called by the main thread."""
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, frame: came.append(number)) for number in INTERRUPTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt
