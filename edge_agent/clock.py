"""Clock: which boot this is, how much time has passed in it, and whether the time of day can be believed.

A board without a battery starts in 1970, or where it was switched off, until time synchronisation sets it. Durations
are therefore measured by the monotonic clock, and the time of day says whether it was synchronised when it was read.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

ROOT = Path("/")
BOOT_ID_FILE = "proc/sys/kernel/random/boot_id"
TIMESYNCD_FILE = "run/systemd/timesync/synchronized"  # made by systemd-timesyncd after the first synchronisation
LOOK_EVERY_S = 1.0
NOT_BEFORE_UNIX_S = 1_735_689_600.0  # 2025-01-01: an earlier time of day is wrong, whoever vouches for it

# adjtimex(2): struct timex of 64-bit Linux has `status` at byte 40; STA_UNSYNC and TIME_ERROR say "not synchronised"
TIMEX_BYTES = 512
STATUS_OFFSET = 40
STA_UNSYNC = 0x0040
TIME_ERROR = 5


class DeviceClock:
    """Where time comes from. Every method may be called from any thread.

    `root` is where proc/ and run/ are looked for; `kernel_says` tells whether the kernel holds the clock for
    synchronised (None: it does not say). chrony, ntpd and systemd-timesyncd all tell the kernel.
    """

    def __init__(
        self,
        root: Path = ROOT,
        monotonic: Callable[[], float] = time.monotonic,
        unix: Callable[[], float] = time.time,
        kernel_says: Callable[[], bool | None] | None = None,
    ) -> None:
        self.boot_id = read_boot_id(root)
        self.believed = False  # whether the operator vouches for it where nothing synchronises it: items.trust_clock
        self.monotonic = monotonic
        self.unix = unix
        self._timesyncd_file = root / TIMESYNCD_FILE
        self._kernel_says = kernel_says or kernel_synchronised
        self._looked = (float("-inf"), False)  # when, monotonic s, and what was found

    def trusted(self) -> bool:
        """Whether the time of day is synchronised; looked up at most once in LOOK_EVERY_S."""
        looked_mono, found = self._looked
        now_mono = self.monotonic()
        if now_mono - looked_mono >= LOOK_EVERY_S:
            found = self._look()
            self._looked = (now_mono, found)
        return found and self.unix() >= NOT_BEFORE_UNIX_S

    def unix_if_trusted(self) -> float | None:
        """Unix seconds, or None while they cannot be believed."""
        return self.unix() if self.believed or self.trusted() else None

    def _look(self) -> bool:
        return self._kernel_says() is True or self._timesyncd_file.exists()


def read_boot_id(root: Path = ROOT) -> str:
    """The kernel's id of this boot, 32 hexadecimal digits; one made for this process where there is none."""
    try:
        return uuid.UUID((root / BOOT_ID_FILE).read_text(encoding="ascii").strip()).hex
    except (OSError, ValueError):
        return uuid.uuid4().hex


def kernel_synchronised() -> bool | None:
    """What the kernel says (adjtimex, which only reads here); None where it cannot be asked."""
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_long) != 8:
        return None
    timex = ctypes.create_string_buffer(TIMEX_BYTES)
    try:
        state = int(ctypes.CDLL(None).adjtimex(timex))
    except (AttributeError, OSError):
        return None
    if state < 0:
        return None
    (status,) = struct.unpack_from("i", timex, STATUS_OFFSET)
    return state != TIME_ERROR and not status & STA_UNSYNC
