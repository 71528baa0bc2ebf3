"""Trial: a configuration that reads less, slower, or with fewer cameras than before does not pass."""

from __future__ import annotations

from typing import Any

import pytest

from edge_agent.config import Config, rebuilt
from edge_agent.remote.trial import Figures, Look, between, faults


def settings(cameras: dict[str, dict[str, Any]] | None = None, **remote: Any) -> Config:
    cameras = {"a": {}} if cameras is None else cameras
    whole = {name: {"kind": "folder", "source": f"/{name}", **more} for name, more in cameras.items()}
    return rebuilt(Config(), {"cameras": whole, "remote": remote}, "settings")


def figures(
    frames: dict[str, int], text: dict[str, int] | None = None, online: str = "a", pipeline: str = "running"
) -> Figures:
    return Figures(10.0, frames, frames if text is None else text, tuple(online), pipeline)


ONE = settings()
BEFORE = figures({"a": 100})


def test_figures_are_what_happened_between_two_looks() -> None:
    earlier = Look(100.0, {"a": 50}, {"a": 10}, {"a": "online"})
    later = Look(110.0, {"a": 90, "b": 4}, {"a": 30}, {"a": "offline", "b": "online", "c": "ended"}, "degraded")
    found = between(earlier, later)
    assert found == Figures(10.0, {"a": 40, "b": 4}, {"a": 20}, ("b", "c"), "degraded")
    assert found is not None
    assert found.fps(["a", "c"]) == {"a": 4.0, "c": 0.0}
    share, low, high = found.read_share(["a"]) or (0, 0, 0)
    assert (share, round(low, 3), round(high, 3)) == (0.5, 0.374, 0.626)
    assert found.read_share(["c"]) is None
    assert Figures.from_json(found.to_json()) == found
    assert between(earlier, Look(101.0)) is None


def test_as_good_as_before_passes() -> None:
    assert faults(ONE, ONE, BEFORE, figures({"a": 60})) == []
    assert faults(ONE, ONE, None, figures({"a": 0})) == []


def test_no_frame_read_is_a_fault() -> None:
    (fault,) = faults(ONE, ONE, BEFORE, figures({"a": 0}))
    assert fault.startswith("0.00 frames/s were read, 10.00 before")


def test_slower_than_the_share_is_a_fault_and_the_share_is_a_setting() -> None:
    (fault,) = faults(ONE, ONE, BEFORE, figures({"a": 40}))
    assert "remote.min_fps_share" in fault
    assert faults(ONE, settings(min_fps_share=0.3), BEFORE, figures({"a": 40})) == []


def test_limit_that_was_wished_for_is_no_fault() -> None:
    assert faults(ONE, settings({"a": {"max_fps": 2}}), BEFORE, figures({"a": 20})) == []
    assert faults(ONE, settings({"a": {"max_fps": 2}}), BEFORE, figures({"a": 5})) != []


def test_one_frame_more_or_less_of_a_slow_camera_is_chance() -> None:
    assert faults(ONE, ONE, figures({"a": 2}), figures({"a": 1})) == []
    assert faults(ONE, ONE, figures({"a": 2}), figures({"a": 0})) == []


def test_text_in_fewer_frames_is_a_fault_unless_it_is_not_to_be_judged() -> None:
    now = figures({"a": 100}, {"a": 20})
    (fault,) = faults(ONE, ONE, BEFORE, now)
    assert fault.startswith("text was found in 20% of the frames, in 100% before")
    assert faults(ONE, settings(min_read_share=0), BEFORE, now) == []
    assert faults(ONE, ONE, figures({"a": 100}, {"a": 30}), now) == []


def test_few_frames_say_nothing_about_text() -> None:
    few, none = figures({"a": 4}, {"a": 4}), figures({"a": 2}, {"a": 0})
    assert faults(ONE, ONE, BEFORE, figures({"a": 60}, {"a": 0})) != []
    slow = settings(min_fps_share=0)
    assert faults(ONE, slow, BEFORE, none) == []
    assert faults(ONE, slow, few, figures({"a": 4}, {"a": 0})) == []
    assert faults(ONE, slow, BEFORE, figures({"a": 6}, {"a": 0})) != []


def test_camera_that_was_online_must_be() -> None:
    assert faults(ONE, ONE, BEFORE, figures({"a": 100}, online="")) == ["camera a is not online, and was before"]
    assert faults(ONE, ONE, figures({"a": 0}, online=""), figures({"a": 0}, online="")) == []


@pytest.mark.parametrize("new", [{"a": {}, "b": {}}, {"a": {}, "b": {"source": "/elsewhere"}}])
def test_camera_that_is_new_or_leads_elsewhere_must_be_online(new: dict[str, dict[str, Any]]) -> None:
    old = settings({"a": {}, "b": {"enabled": False}} if new["b"] else {"a": {}})
    assert faults(old, settings(new), BEFORE, figures({"a": 100})) == ["camera b is not online"]
    assert faults(old, settings(new), BEFORE, figures({"a": 100, "b": 1}, online="ab")) == []


def test_camera_that_was_taken_out_or_switched_off_is_not_missed() -> None:
    two = settings({"a": {}, "b": {}})
    before = figures({"a": 10, "b": 90}, online="ab")
    assert faults(two, settings({"a": {}}), before, figures({"a": 10})) == []
    assert faults(two, settings({"a": {}, "b": {"enabled": False}}), before, figures({"a": 10})) == []


def test_pipeline_that_is_worse_than_before_is_a_fault() -> None:
    degraded = figures({"a": 100}, pipeline="degraded")
    assert faults(ONE, ONE, BEFORE, degraded) == ["the pipeline is degraded"]
    assert faults(ONE, ONE, None, degraded) == ["the pipeline is degraded"]
    assert faults(ONE, ONE, degraded, degraded) == []
    assert faults(ONE, ONE, BEFORE, figures({"a": 100}, pipeline="calibrating")) == []
