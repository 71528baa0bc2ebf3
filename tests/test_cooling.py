"""Cooling: the policy as a table of made-up samples, and the brake on real capture threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.cameras.capture import CaptureThread
from edge_agent.cooling import Brake, Step, next_step
from edge_agent.settings.cameras import CameraConfig
from edge_agent.settings.thermal import ThermalConfig
from edge_agent.telemetry.watch import Signs
from tests.fakes import FakeCamera

BOUNDS = ThermalConfig()  # 92, 95, 98 C; 4 C of hysteresis; 30 s


def walked(*samples: tuple[float, Signs], bounds: ThermalConfig = BOUNDS) -> list[Step]:
    """The steps that samples, each with its time, lead to."""
    steps = [Step()]
    for at_mono, signs in samples:
        steps.append(next_step(steps[-1], signs, at_mono, bounds))
    return steps[1:]


def heat(**temp_c: float) -> Signs:
    return Signs(temp_c)


@pytest.mark.parametrize(
    ("signs", "share", "reason"),
    [
        (heat(cpu=91.9, gpu=60.0, tj=93.9), 1.0, None),
        (heat(gpu=92.0), 0.75, "hot: gpu 92 C; reading three of four frames"),
        (heat(gpu=96.0, cpu=93.0), 0.5, "hot: gpu 96 C; reading every second frame"),
        (heat(gpu=98.0), 0.25, "hot: gpu 98 C; reading every fourth frame"),
        (heat(gpu=150.0), 0.25, "hot: gpu 150 C; reading every fourth frame"),
        (heat(soc0=92.0), 0.75, "hot: soc0 92 C; reading three of four frames"),
        (heat(cv1=95.5), 0.5, "hot: cv1 96 C; reading every second frame"),
        (heat(tj=94.0), 0.75, "hot: tj 94 C; reading three of four frames"),
        (heat(gpu0=95.0), 0.5, "hot: gpu0 95 C; reading every second frame"),
        (heat(nvme_composite=120.0, coretemp_core_0=99.0), 1.0, None),
        (heat(), 1.0, None),
        (Signs({"gpu": 50.0}, over_current=1), 0.75, "held back by its supply (over-current); reading three of four"),
        (Signs({}, slowed=("cpu0 (2 of 9)",)), 0.75, "held back: cpu0 (2 of 9); reading three of four frames"),
        (Signs({"gpu": 96.0}, 3, ("cpu0 (2 of 9)",)), 0.5, "hot: gpu 96 C; reading every second frame"),
    ],
)
def test_first_sample_leads_to_its_step(signs: Signs, share: float, reason: str | None) -> None:
    (step,) = walked((0.0, signs))
    assert step.share == share
    assert step.reason == reason if reason is None else (step.reason or "").startswith(reason)


@dataclass(frozen=True)
class Course:
    """Samples of one zone over time, and the levels that they lead to."""

    name: str
    samples: tuple[tuple[float, float], ...]  # when, gpu temperature
    levels: tuple[int, ...]


COURSES = (
    Course("hotter goes up at once, however soon", ((0, 92), (1, 95), (2, 98)), (1, 2, 3)),
    Course("from cold to the hottest in one step", ((0, 40), (1, 99)), (0, 3)),
    Course("a little cooler stays", ((0, 92), (60, 88.1), (120, 90)), (1, 1, 1)),
    Course("cooler by the hysteresis goes down", ((0, 92), (60, 87.9)), (1, 0)),
    Course("not before the dwell is over", ((0, 92), (29, 40), (30, 40)), (1, 1, 0)),
    Course("down one by one, each after a dwell", ((0, 99), (40, 40), (50, 40), (70, 40), (100, 40)), (3, 2, 2, 1, 0)),
    Course("hot again on the way down", ((0, 99), (40, 40), (41, 99), (70, 40), (72, 40)), (3, 2, 3, 3, 2)),
    Course("swinging around a bound changes nothing", tuple((n * 40.0, 92.0 - n % 2) for n in range(8)), (1,) * 8),
    Course("between two bounds it settles on the upper level", ((0, 95), (40, 92), (80, 91.5)), (2, 2, 2)),
    Course("and goes down below", ((0, 95), (40, 90.9), (80, 90.9)), (2, 1, 1)),
)


@pytest.mark.parametrize("course", COURSES, ids=lambda course: course.name)
def test_levels_follow_the_heat_with_hysteresis_and_dwell(course: Course) -> None:
    steps = walked(*((float(at), heat(gpu=celsius)) for at, celsius in course.samples))
    assert [step.level for step in steps] == list(course.levels)


def test_events_push_one_step_a_dwell_and_hold_it_as_long_as_they_come() -> None:
    pushed, quiet = Signs({"gpu": 50.0}, over_current=1), Signs({"gpu": 50.0})
    steps = walked((0, pushed), (1, pushed), (30, pushed), (60, pushed), (90, pushed), (119, quiet), (120, quiet))
    assert [step.level for step in steps] == [1, 1, 2, 3, 3, 3, 2]


def test_lost_sensors_keep_the_level_that_is_there() -> None:
    steps = walked((0, heat(gpu=99.0)), (100, heat()), (200, heat()), (300, heat(gpu=50.0)))
    assert [step.level for step in steps] == [3, 3, 3, 2]


def test_reason_stays_while_the_level_does_and_ends_with_it() -> None:
    steps = walked((0, heat(gpu=96.0)), (10, heat(gpu=96.9)), (40, heat(gpu=88.0)), (80, heat(gpu=80.0)))
    assert [step.reason for step in steps] == [
        "hot: gpu 96 C; reading every second frame",
        "hot: gpu 96 C; reading every second frame",
        "hot: gpu 88 C; reading three of four frames",
        None,
    ]


def test_bounds_are_the_settings() -> None:
    bounds = ThermalConfig(gpu_c=60.0, step_c=10.0, hysteresis_c=1.0, dwell_s=1.0)
    steps = walked((0, heat(gpu=79.0)), (1, heat(gpu=68.9)), (2, heat(gpu=59.0)), bounds=bounds)
    assert [step.level for step in steps] == [2, 1, 1]
    (off,) = walked((0, Signs({"gpu": 120.0}, 9, ("x",))), bounds=ThermalConfig(enabled=False))
    assert off == Step()


# ---- the brake ------------------------------------------------------------------------------------------------------


class Turns:
    """A brake over cameras that are never started, with rates and a clock that the test moves."""

    def __init__(self, **max_fps: float | None) -> None:
        self.fps: dict[str, float | None] = {}
        self.now_mono = 0.0
        self.cameras = [
            CaptureThread(
                name,
                CameraConfig(kind="csi", source="0", max_fps=limit),
                lambda frame: True,
                make=lambda *_: FakeCamera(lambda: np.zeros((8, 8, 3), np.uint8)),
            )
            for name, limit in max_fps.items()
        ]
        self.brake = Brake(self.cameras, lambda: self.fps, lambda: self.now_mono)

    def hold(self, share: float) -> list[float | None]:
        self.brake.hold(share)
        return [camera._limit_fps() for camera in self.cameras]


def test_rate_is_a_share_of_what_was_read_before_it_got_hot() -> None:
    turns = Turns(left=None, right=4.0)
    turns.fps = {"left": 20.0, "right": 4.0}
    assert turns.hold(1.0) == [None, 4.0]
    assert turns.hold(0.5) == [10.0, 2.0]
    turns.fps = {"left": 10.0, "right": 2.0}  # what it became must not be halved again
    assert turns.hold(0.25) == [5.0, 1.0]
    assert turns.hold(0.75) == [15.0, 3.0]
    assert turns.hold(1.0) == [None, 4.0]


def test_max_fps_that_is_lower_stays_in_force_and_one_set_meanwhile_too() -> None:
    turns = Turns(left=30.0)
    turns.fps = {"left": 20.0}
    assert turns.hold(0.5) == [10.0]
    turns.cameras[0].limit(2.0)
    assert turns.hold(0.5) == [2.0]
    turns.cameras[0].limit(None)
    assert turns.hold(0.5) == [10.0]
    assert turns.hold(1.0) == [None]


def test_camera_that_comes_back_while_it_is_hot_is_held_as_well() -> None:
    turns = Turns(left=None)
    assert turns.hold(0.5) == [None]
    turns.fps = {"left": 12.0}
    assert turns.hold(0.5) == [None]  # looked at once a second
    turns.now_mono = 1.0
    assert turns.hold(0.5) == [6.0]


@pytest.fixture
def started() -> Iterator[list[CaptureThread]]:
    threads: list[CaptureThread] = []
    yield threads
    for thread in threads:
        thread.stop()


def test_reader_at_work_and_the_one_after_it_keep_to_the_rate(started: list[CaptureThread]) -> None:
    def picture() -> npt.NDArray[np.uint8]:
        return np.zeros((8, 8, 3), np.uint8)

    def make(_name: str, _config: CameraConfig) -> FakeCamera:
        return FakeCamera(picture)

    capture = CaptureThread("left", CameraConfig(kind="csi", source="0"), lambda frame: True, make=make)
    capture.hold(0.001)
    started.append(capture)
    capture.start()
    reader = capture._reader
    assert reader is not None
    assert reader._rate._interval_s == 1000.0
    capture.hold(None)
    assert reader._rate._interval_s == 0.0
