"""A process that reads nothing and puts on: prints each reading's number once `put` has returned, until it is killed.

python -m tests.outbox.put_on PATH FIRST FLUSH_MS
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from edge_agent.clock import DeviceClock
from edge_agent.outbox.disk import DiskOutbox, Limits
from tests.outbox.made_messages import reading


def main(path: str, first: str, flush_ms: str) -> None:
    outbox = DiskOutbox(Path(path), DeviceClock(), print, Limits(flush_s=int(flush_ms) / 1000))
    for n in range(int(first), int(first) + 1_000_000):
        outbox.put(reading(n, f"line{n % 2}", size=300))
        print(n, time.monotonic(), flush=True)
        time.sleep(0.001)


if __name__ == "__main__":
    main(*sys.argv[1:])
