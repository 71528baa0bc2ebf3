"""Capture thread: frames keep flowing, whatever a camera does; and what it does is told."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.cameras.base import Camera, Clock, NoFrameYet
from edge_agent.cameras.capture import CaptureThread
from edge_agent.cameras.reader import Backoff, Rate
from edge_agent.errors import CameraError, ConfigError, FrameError
from edge_agent.mailbox import Mailbox
from edge_agent.records import Frame
from edge_agent.settings.cameras import CameraConfig
from tests.broker import DEADLINE_S
from tests.cameras.conftest import config, eventually, numbered
from tests.fakes import FakeCamera

Picture = npt.NDArray[np.uint8]
QUICK = {"reconnect_min_s": 0.001, "reconnect_max_s": 0.01, "open_timeout_s": 1.0, "read_timeout_s": 1.0}


class Sink:
    """Takes frames; as many as `room` allows."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.room = 1_000_000
        self.refused = 0

    def put(self, frame: Frame) -> bool:
        if len(self.frames) >= self.room:
            self.refused += 1
            return False
        self.frames.append(frame)
        return True

    @property
    def seqs(self) -> list[int]:
        return [frame.seq for frame in self.frames]


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Frees whatever a test left hanging, so that no thread outlives it."""
    event = threading.Event()
    yield event
    event.set()


def script(*steps: object, every_s: float = 0.001) -> Callable[[], Picture | None]:
    """A read that goes through `steps` (pictures, errors, None), then gives pictures for ever."""
    rest = iter(steps)

    def read() -> Picture | None:
        time.sleep(every_s)
        step = next(rest, numbered(1))
        if isinstance(step, Exception):
            raise step
        assert step is None or isinstance(step, np.ndarray)
        return step

    return read


def making(*cameras: Camera) -> Callable[[str, CameraConfig], Camera]:
    """A `make` that hands out these cameras, one a call."""
    rest = iter(cameras)
    return lambda name, settings: next(rest)


def test_frames_are_numbered_from_where_an_earlier_process_ended() -> None:
    sink = Sink()
    capture = CaptureThread("a", config(), sink.put, make=making(FakeCamera(script())))
    capture.number_from(71)
    with capture:
        eventually(lambda: len(sink.frames) >= 3, "three frames")
    assert sink.seqs[:3] == [71, 72, 73]


def test_camera_that_has_given_nothing_yet_says_so() -> None:
    capture = CaptureThread("a", config(), lambda frame: True, make=making(FakeCamera(script())))
    assert (capture.status().state, capture.status().reason) == ("starting", "no frame yet")


def test_frames_flow_numbered_and_timed() -> None:
    sink = Sink()
    before_s, before_mono = time.time(), time.monotonic()
    with CaptureThread("a", config(), sink.put, make=making(FakeCamera(script(every_s=0.01)))) as capture:
        assert capture.status().state in ("starting", "online")
        eventually(lambda: len(sink.frames) >= 30, "30 frames")
        status = capture.status()
    assert sink.seqs == list(range(len(sink.frames)))
    assert all(frame.camera == "a" and not frame.image.flags.writeable for frame in sink.frames)
    monos = [frame.captured_mono for frame in sink.frames]
    assert before_mono <= monos[0]
    assert monos == sorted(monos)
    assert before_s <= sink.frames[0].captured_at <= time.time()
    assert status.state == "online"
    assert status.reason is None
    assert status.frames >= 30
    assert (status.width_px, status.height_px) == (64, 48)
    assert 0 < status.fps < 110
    assert status.last_frame_at is not None
    assert status.last_frame_at >= before_s
    assert capture.status().state == "offline"
    assert capture.status().reason == "stopped"


def test_disabled_camera_is_neither_made_nor_opened() -> None:
    def make(name: str, settings: CameraConfig) -> Camera:
        raise AssertionError("made")

    with CaptureThread("a", config(enabled=False), Sink().put, make=make) as capture:
        assert capture.status().state == "disabled"
    assert capture.status().state == "disabled"


def test_wrong_setting_is_raised_where_the_capture_is_made(tmp_path: Path) -> None:
    settings = config("rtsp", "rtsp://admin@127.0.0.1/live", password_file=tmp_path / "absent")
    with pytest.raises(ConfigError, match="password_file .* cannot be read"):
        CaptureThread("a", settings, Sink().put)


def test_wrong_setting_met_later_gives_the_camera_up_without_retry() -> None:
    def fail() -> None:
        raise ConfigError("password_file is gone")

    camera = FakeCamera(script(), fail)
    with CaptureThread("a", config(**QUICK), Sink().put, make=making(camera)) as capture:
        eventually(lambda: capture.config_error is not None, "the error is surfaced")
        assert capture.status().state == "offline"
        assert capture.status().reason == "password_file is gone"
    assert camera.opens == 1
    assert capture.status().reason == "password_file is gone", "stopping hid why the camera was given up"


def test_lost_camera_is_opened_again_and_numbers_go_on() -> None:
    sink = Sink()
    camera = FakeCamera(script(numbered(1), numbered(2), CameraError("unplugged"), numbered(3), CameraError("again")))
    with CaptureThread("a", config(**QUICK), sink.put, make=making(camera)) as capture:
        eventually(lambda: len(sink.frames) >= 6, "frames after two losses")
        status = capture.status()
    assert sink.seqs == list(range(len(sink.frames)))
    assert status.reconnects == 2
    assert status.state == "online"
    assert camera.opens == 3
    assert camera.closes >= 3


def test_camera_that_does_not_open_is_offline_and_says_why() -> None:
    opens, plugged_in = itertools.count(), threading.Event()

    def refuse() -> None:
        if next(opens) < 5 or not plugged_in.is_set():
            raise CameraError("rtsp://admin:***@host/live did not open")

    camera = FakeCamera(script(), refuse)
    sink = Sink()
    seen: list[tuple[str, str | None]] = []
    slow = {**QUICK, "reconnect_min_s": 0.05, "reconnect_max_s": 0.05}
    with CaptureThread("a", config(**slow), sink.put, make=making(camera)) as capture:
        eventually(lambda: capture.status().state == "offline", "offline")
        seen.append((capture.status().state, capture.status().reason))
        plugged_in.set()
        eventually(lambda: sink.frames, "frames once it opens")
        assert capture.status().state == "online"
    assert seen == [("offline", "rtsp://admin:***@host/live did not open")]


def test_delays_between_attempts_grow_to_a_cap_with_jitter_and_reset() -> None:
    backoff = Backoff(config(reconnect_min_s=0.5, reconnect_max_s=8.0))
    delays = [backoff.next_s() for _ in range(10)]
    for delay_s, full_s in zip(delays, [0.5, 1, 2, 4, 8, 8, 8, 8, 8, 8], strict=True):
        assert full_s / 2 <= delay_s <= full_s
    assert len(set(delays)) == 10, "no jitter"
    backoff.reset()
    assert backoff.next_s() <= 0.5


def test_attempts_are_spaced_by_the_back_off_and_start_small_again_after_frames() -> None:
    waits: list[float] = []

    def wait(event: threading.Event, timeout_s: float) -> bool:
        waits.append(timeout_s)
        return event.wait(0.002)

    fails = iter([True] * 6 + [False])

    def open_() -> None:
        if next(fails, False):
            raise CameraError("refused")

    good_then_lost = itertools.cycle([numbered(1)] * 20 + [CameraError("lost")])

    def read() -> Picture:
        time.sleep(0.001)
        step = next(good_then_lost)
        if isinstance(step, CameraError):
            raise step
        return step

    # frames flow for 20 ms at a time, longer than the first delays: so the small ones come back
    settings = config(reconnect_min_s=0.001, reconnect_max_s=0.016)
    capture = CaptureThread("a", settings, Sink().put, make=making(FakeCamera(read, open_)), clock=Clock(wait=wait))
    with capture:
        eventually(lambda: len(waits) >= 9, "nine attempts")
    assert all(delay_s <= 0.016 for delay_s in waits)
    assert waits[5] > waits[0]
    assert max(waits[6:9]) <= 0.001


def test_stop_interrupts_the_wait_between_attempts() -> None:
    def refuse() -> None:
        raise CameraError("refused")

    capture = CaptureThread(
        "a", config(reconnect_min_s=600.0, reconnect_max_s=600.0), Sink().put, make=making(FakeCamera(script(), refuse))
    )
    capture.start()
    eventually(lambda: capture.status().state == "offline", "waiting for the next attempt")
    assert capture.stop(timeout_s=DEADLINE_S)


def test_hung_read_shows_as_stalled_then_a_fresh_capture_takes_over(
    release: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sink = Sink()

    def hang() -> Picture:
        release.wait(60)
        return numbered(9)

    first = FakeCamera(script(numbered(1), numbered(2)))
    reads = itertools.count()
    gives_two = first._read
    first._read = lambda: gives_two() if next(reads) < 2 else hang()
    second = FakeCamera(script())
    settings = config(**{**QUICK, "stalled_after_s": 0.3, "read_timeout_s": 3.0})
    with CaptureThread("a", settings, sink.put, make=making(first, second)) as capture:
        eventually(lambda: capture.status().state == "stalled", "stalled while the read hangs")
        assert "no frame for" in str(capture.status().reason)
        assert capture.status().fps == 0
        eventually(lambda: len(sink.frames) > 5, "frames from the fresh capture")
        eventually(lambda: capture.status().state == "online", "online")
        assert capture.status().abandoned == 1
        assert first.closes == 0, "another thread touched the camera that hangs"
        release.set()
        eventually(lambda: first.closes == 1, "the abandoned thread closes its camera when it returns")
        assert not any((frame.image == numbered(9)).all() for frame in sink.frames), "a frame of the past came through"
        assert sink.seqs == sorted(set(sink.seqs))
    assert "did not return from read" in caplog.text


def test_hung_open_is_abandoned_too(release: threading.Event) -> None:
    sink = Sink()
    first = FakeCamera(script(), lambda: release.wait(60) and None)
    settings = config(**{**QUICK, "stalled_after_s": 0.2})
    with CaptureThread("a", settings, sink.put, make=making(first, FakeCamera(script()))) as capture:
        eventually(lambda: sink.frames, "frames from the fresh capture")
        assert capture.status().abandoned == 1
        release.set()


def test_captures_left_hanging_are_bounded_and_then_it_says_so(release: threading.Event) -> None:
    sink = Sink()
    made: list[FakeCamera] = []

    def make(name: str, settings: CameraConfig) -> Camera:
        made.append(FakeCamera(script() if release.is_set() else lambda: release.wait(60) and None))
        return made[-1]

    settings = config(**{**QUICK, "stalled_after_s": 0.05, "read_timeout_s": 0.05})
    with CaptureThread("a", settings, sink.put, make=make, max_abandoned=2) as capture:
        eventually(lambda: "restart edge-agent" in str(capture.status().reason), "it says that it gave up")
        assert capture.status().state == "offline"
        assert capture.status().abandoned == 2
        assert len(made) == 2
        release.set()
        eventually(lambda: sink.frames, "once a hung capture has returned, a fresh one may begin")


def test_stop_returns_in_time_although_a_read_hangs(release: threading.Event) -> None:
    capture = CaptureThread("a", config(), Sink().put, make=making(FakeCamera(lambda: release.wait(60) and None)))
    capture.start()
    started = time.monotonic()
    assert not capture.stop(timeout_s=0.2)
    assert time.monotonic() - started < 5
    release.set()
    assert capture.stop(timeout_s=DEADLINE_S)


def test_still_scene_is_no_stall() -> None:
    still = numbered(3)
    states: set[str] = set()
    sink = Sink()
    camera = FakeCamera(lambda: time.sleep(0.01) or still.copy())  # type: ignore[func-returns-value]
    with CaptureThread("a", config(stalled_after_s=1.5), sink.put, make=making(camera)) as capture:
        eventually(lambda: sink.frames, "a first frame")
        deadline = time.monotonic() + 2.0
        while time.monotonic() < deadline:
            states.add(capture.status().state)
            time.sleep(0.01)
    assert states == {"online"}


def test_source_with_nothing_new_is_online_and_says_what_it_waits_for(release: threading.Event) -> None:
    def read() -> Picture:
        if release.is_set():
            time.sleep(60 if not done.wait(20) else 0)
        time.sleep(0.01)
        raise NoFrameYet("waiting for new images in /spool")

    done = threading.Event()
    settings = config(stalled_after_s=1.0, read_timeout_s=30.0)
    with CaptureThread("a", settings, Sink().put, make=making(FakeCamera(read))) as capture:
        eventually(lambda: capture.status().state == "online", "online")
        time.sleep(1.3)
        assert capture.status().state == "online"
        assert capture.status().reason == "waiting for new images in /spool"
        release.set()
        eventually(lambda: capture.status().state == "stalled", "a hang is still noticed")
        done.set()


def test_source_that_changes_its_size_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    steps = [numbered(1, 320, 240)] * 3 + [numbered(1, 640, 480)] * 3 + [None]
    sink = Sink()
    with CaptureThread("a", config(), sink.put, make=making(FakeCamera(script(*steps)))) as capture:
        eventually(lambda: capture.status().state == "ended", "the end")
        status = capture.status()
    assert [frame.width_px for frame in sink.frames] == [320] * 3 + [640] * 3
    assert status.resizes == 1
    assert (status.width_px, status.height_px) == (640, 480)
    assert "gives frames of 320x240 pixels" in caplog.text


def test_size_other_than_asked_for_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    camera = FakeCamera(script(*[numbered(1, 2560, 1472)] * 5, None))
    with CaptureThread("a", config(width_px=640, height_px=480), Sink().put, make=making(camera)) as capture:
        eventually(lambda: capture.status().state == "ended", "the end")
        assert (capture.status().width_px, capture.status().height_px) == (2560, 1472)
    said = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert said == ["camera a is online and gives frames of 2560x1472 pixels, although 640x480 was asked for"]


def test_damaged_frames_are_counted_and_the_next_one_is_taken() -> None:
    sink = Sink()
    camera = FakeCamera(script(numbered(1), FrameError("cut short"), numbered(2), FrameError("cut short"), None))
    with CaptureThread("a", config(), sink.put, make=making(camera)) as capture:
        eventually(lambda: capture.status().state == "ended", "the end")
        status = capture.status()
    assert (status.frames, status.bad_frames, status.reconnects) == (2, 2, 0)
    assert sink.seqs == [0, 1]
    assert camera.opens == 1


def test_source_of_nothing_but_damaged_frames_is_stalled_with_the_reason() -> None:
    def read() -> Picture:
        raise FrameError("not an image")

    camera = FakeCamera(read)
    settings = config(stalled_after_s=0.1, open_timeout_s=0.1)
    with CaptureThread("a", settings, Sink().put, make=making(camera)) as capture:
        eventually(lambda: capture.status().state == "stalled", "stalled")
        assert "not an image" in str(capture.status().reason)
        assert capture.status().abandoned == 0
        reads, at = camera.reads, time.monotonic()
        time.sleep(0.5)
        assert camera.reads - reads < (time.monotonic() - at) * 200, "spins on damaged frames"


@pytest.mark.parametrize("failure", [CameraError("lost"), FrameError("cut short")])
def test_a_minute_of_failures_is_a_handful_of_log_lines(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    now = [0.0]

    def wait(event: threading.Event, timeout_s: float) -> bool:
        now[0] += timeout_s
        return event.is_set()

    failures = itertools.count()

    def read() -> Picture:
        now[0] += 0.005
        if next(failures) % 7 == 0:
            return numbered(1)
        raise failure

    clock = Clock(monotonic=lambda: now[0], wait=wait)
    settings = config(reconnect_min_s=0.005, reconnect_max_s=0.005, stalled_after_s=86_400.0)
    with CaptureThread("a", settings, Sink().put, make=making(FakeCamera(read)), clock=clock) as capture:
        eventually(lambda: now[0] >= 60.0, "sixty seconds of failures")
        capture.stop()
    assert next(failures) > 1000
    lines = [record for record in caplog.records if record.name.startswith("edge_agent.cameras")]
    assert 2 <= len(lines) < 30
    assert "more like it" in caplog.text


def test_max_fps_keeps_frames_of_a_live_source_back_and_counts_them() -> None:
    sink = Sink()
    settings = config(max_fps=20.0)
    with CaptureThread("a", settings, sink.put, make=making(FakeCamera(script(every_s=0.002)))) as capture:
        eventually(lambda: len(sink.frames) >= 12, "12 frames")
        status = capture.status()
    span_s = sink.frames[11].captured_mono - sink.frames[0].captured_mono
    assert span_s >= 10.5 / 20, f"12 frames in {span_s:.2f} s is more than 20 a second"
    assert sink.seqs == list(range(len(sink.frames))), "a frame held back on purpose is no gap"
    assert status.skipped > 0
    assert status.frames > len(sink.frames[:12])


def test_rate_keeps_to_its_mean_with_a_camera_that_is_not_a_multiple() -> None:
    rate = Rate(max_fps=10.0)
    offered = 0
    for number in range(600):  # 20 s at 30 frames/s with jitter
        now = number / 30 + (0.004 if number % 2 else 0)
        if rate.early_s(now) == 0:
            rate.taken(now)
            offered += 1
    assert 195 <= offered <= 202


def test_max_fps_slows_down_a_source_of_which_every_frame_counts() -> None:
    sink = Sink()
    camera = FakeCamera(script(*[numbered(1)] * 8, None, every_s=0))
    settings = config(max_fps=50.0, pace="every_frame")
    started = time.monotonic()
    with CaptureThread("a", settings, sink.put, make=making(camera)) as capture:
        eventually(lambda: capture.status().state == "ended", "the end")
        assert capture.status().skipped == 0
    assert len(sink.frames) == 8
    assert time.monotonic() - started >= 6 / 50


def test_every_frame_source_waits_for_room_and_loses_none() -> None:
    mailbox = Mailbox()
    camera = FakeCamera(script(*[numbered(n) for n in range(10)], None, every_s=0))
    put = partial(mailbox.put_waiting, timeout_s=0.01)
    taken: list[int] = []
    settings = config(pace="every_frame", stalled_after_s=1.0, read_timeout_s=1.0)
    with CaptureThread("a", settings, put, make=making(camera)) as capture:
        time.sleep(1.3)  # a slow reader is not a stalled camera, and no reason to abandon it
        assert capture.status().state == "online"
        assert capture.status().abandoned == 0
        while len(taken) < 10:
            frame = mailbox.take(DEADLINE_S)
            assert frame is not None
            taken.append(frame.seq)
        eventually(lambda: capture.status().state == "ended", "the end")
    assert taken == list(range(10))
    assert mailbox.drops == {}


def test_stop_does_not_wait_for_room() -> None:
    sink = Sink()
    sink.room = 0
    capture = CaptureThread("a", config(pace="every_frame"), sink.put, make=making(FakeCamera(script())))
    capture.start()
    eventually(lambda: sink.refused > 1, "offered again")
    assert capture.stop(timeout_s=DEADLINE_S)


def test_end_of_the_source_ends_the_thread_and_closes_the_camera() -> None:
    camera = FakeCamera(script(numbered(1), None))
    capture = CaptureThread("a", config(), Sink().put, make=making(camera))
    capture.start()
    eventually(lambda: camera.closes == 1, "closed")
    assert capture.stop(timeout_s=DEADLINE_S)
    assert capture.status().state == "ended"
    assert camera.opens == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_bug_in_a_camera_is_told_and_a_fresh_capture_begins() -> None:
    sink = Sink()
    broken, sound = FakeCamera(script(ZeroDivisionError("bug"))), FakeCamera(script())
    settings = config(reconnect_min_s=4.0, reconnect_max_s=4.0)
    with CaptureThread("a", settings, sink.put, make=making(broken, sound)) as capture:
        eventually(lambda: "bug" in str(capture.status().reason), "it says so")
        assert capture.status().state == "offline"
        assert broken.closes == 1
        eventually(lambda: sink.frames, "frames from the fresh capture")


def test_frame_processed_by_a_slow_reader_is_a_fresh_one() -> None:
    mailbox = Mailbox()
    newest, seqs = [-1], list[int]()

    def put(frame: Frame) -> bool:
        there = mailbox.put(frame)
        newest.append(frame.seq)
        return there

    with CaptureThread("a", config(), put, make=making(FakeCamera(script()))):
        for _ in range(6):
            there = newest[-1]
            frame = mailbox.take(DEADLINE_S)
            assert frame is not None
            assert frame.seq >= there
            seqs.append(frame.seq)
            eventually(lambda: newest[-1] >= seqs[-1] + 20, "frames that pass meanwhile")
    assert mailbox.drops["a"] > 50
    assert seqs[-1] - seqs[0] > 50, "old frames were read one after the other"


def test_limit_is_changed_while_frames_flow() -> None:
    sink = Sink()
    cameras = making(FakeCamera(script(every_s=0.002)))
    with CaptureThread("a", config(max_fps=1000.0), sink.put, make=cameras) as capture:
        eventually(lambda: len(sink.frames) > 20, "frames")
        capture.limit(0.001)
        seen = len(sink.frames)
        eventually(lambda: capture.status().skipped > 20, "frames that are kept back")
        assert len(sink.frames) <= seen + 2
        assert capture.config.max_fps == 0.001
        capture.limit(None)
        seen = len(sink.frames)
        eventually(lambda: len(sink.frames) > seen + 20, "frames again")
