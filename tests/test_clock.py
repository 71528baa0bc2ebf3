"""Clock: boot id, and whether the time of day is synchronised, on made trees."""

from __future__ import annotations

from pathlib import Path

from edge_agent.clock import BOOT_ID_FILE, NOT_BEFORE_UNIX_S, TIMESYNCD_FILE, DeviceClock, read_boot_id

LATER = NOT_BEFORE_UNIX_S + 86_400


class Times:
    def __init__(self, unix: float = LATER) -> None:
        self.mono = 100.0
        self.unix = unix


def clock(root: Path, times: Times, kernel: bool | None) -> DeviceClock:
    return DeviceClock(root, lambda: times.mono, lambda: times.unix, lambda: kernel)


def made(root: Path, name: str, text: str = "") -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_boot_id_is_the_kernels(tmp_path: Path) -> None:
    made(tmp_path, BOOT_ID_FILE, "52856abe-7ad3-41ca-8889-5fe5d84edad3\n")
    assert read_boot_id(tmp_path) == "52856abe7ad341ca88895fe5d84edad3"


def test_boot_id_is_made_where_the_kernel_has_none(tmp_path: Path) -> None:
    made(tmp_path, BOOT_ID_FILE, "none\n")
    first, second = read_boot_id(tmp_path), read_boot_id(tmp_path / "nowhere")
    assert len(first) == len(second) == 32
    assert first != second


def test_clock_is_trusted_once_the_kernel_or_timesyncd_says_so(tmp_path: Path) -> None:
    assert clock(tmp_path, Times(), True).trusted()
    assert not clock(tmp_path, Times(), False).trusted()
    assert not clock(tmp_path, Times(), None).trusted()
    made(tmp_path, TIMESYNCD_FILE)
    assert clock(tmp_path, Times(), None).trusted()
    assert clock(tmp_path, Times(), False).trusted()


def test_synchronisation_is_noticed_within_a_second(tmp_path: Path) -> None:
    times = Times()
    device = clock(tmp_path, times, None)
    assert device.unix_if_trusted() is None
    made(tmp_path, TIMESYNCD_FILE)
    times.mono += 1.0
    assert device.unix_if_trusted() == LATER


def test_time_of_day_before_this_program_was_written_is_never_trusted(tmp_path: Path) -> None:
    times = Times(unix=42.0)
    device = clock(tmp_path, times, True)
    assert not device.trusted()
    times.unix = LATER  # set in the meantime: no waiting for the next look
    assert device.trusted()


def test_the_real_clock_answers() -> None:
    device = DeviceClock()
    assert len(device.boot_id) == 32
    assert device.trusted() in (True, False)
