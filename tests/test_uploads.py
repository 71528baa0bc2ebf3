"""Uploads: pictures that are handed in take their turn among the cameras' frames, and each is answered with its own."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np
import pytest

from edge_agent.errors import FrameError
from edge_agent.mailbox import Mailbox
from edge_agent.records import Frame, Reading
from edge_agent.settings.expected import Rule
from edge_agent.settings.roi import RoiConfig
from edge_agent.uploads import NAMES, Uploads, check_size
from edge_agent.verify.expectation import Expectation
from edge_agent.web.site import Refused
from tests.broker import DEADLINE_S, wait_until


def picture(grey: int) -> bytes:
    return bytes(cv2.imencode(".png", np.full((40, 60, 3), grey, np.uint8))[1].tobytes())


def grey_of(frame: Frame) -> int:
    return int(frame.image[0, 0, 0])


def reading_of(frame: Frame) -> Reading:
    """One whose frame number tells whose it is."""
    return Reading(frame.camera, grey_of(frame), 1.0, 60, 40, timings_ms={"total": 2000.0})


def camera_frame(seq: int, camera: str = "left") -> Frame:
    return Frame(camera, seq, 1.0, 1.0, np.zeros((40, 60, 3), np.uint8))


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    made = Mailbox()
    yield made
    made.close()  # whoever waits for it gives up


def taken(mailbox: Mailbox, uploads: Uploads) -> Frame:
    frame = mailbox.take(10)
    assert frame is not None
    if uploads.takes(frame):
        uploads.begin(frame, {})
    return frame


def test_each_is_answered_with_its_own_reading_however_many_are_under_way(mailbox: Mailbox) -> None:
    uploads = Uploads(mailbox, most_waiting=10)
    futures = [uploads.offer(picture(grey)) for grey in range(8)]
    current: Frame | None = taken(mailbox, uploads)
    for _ in futures:
        assert current is not None
        upcoming = mailbox.take(2.0) if grey_of(current) < 7 else None  # begun while the current one is read
        if upcoming is not None:
            uploads.begin(upcoming, {})
            if grey_of(upcoming) < 7:
                wait_until(lambda: bool(mailbox.ages), "a third waits in the mailbox")
        uploads.answer(current, reading_of(current))
        current = upcoming
    assert [future.result(DEADLINE_S).seq for future in futures] == list(range(8))
    assert {future.result().camera for future in futures} == {"upload"}


def test_between_two_frames_of_a_camera_that_waits_one_is_read_at_most(mailbox: Mailbox) -> None:
    uploads = Uploads(mailbox, most_waiting=10)
    futures = [uploads.offer(picture(grey)) for grey in range(4)]
    order = []
    seq = 0
    while not all(future.done() for future in futures):
        mailbox.put(camera_frame(seq))
        if len(order) < 7:
            wait_until(lambda: len(mailbox.ages) == 2, "both wait")
        frame = taken(mailbox, uploads)
        order.append("upload" if uploads.takes(frame) else "camera")
        if uploads.takes(frame):
            uploads.answer(frame, reading_of(frame))
        seq += 1
    assert "upload upload" not in " ".join(order)
    assert order.count("upload") == 4


def test_more_than_may_wait_are_told_for_how_long(mailbox: Mailbox) -> None:
    uploads = Uploads(mailbox, most_waiting=2)
    first = uploads.offer(picture(1))
    uploads.offer(picture(2))
    with pytest.raises(Refused) as refused:
        uploads.offer(picture(3))
    assert (refused.value.status, refused.value.headers["Retry-After"]) == (429, "2")
    frame = taken(mailbox, uploads)
    uploads.answer(frame, reading_of(frame))
    first.result(DEADLINE_S)
    uploads.offer(picture(3))
    with pytest.raises(Refused) as refused:
        uploads.offer(picture(4))
    assert refused.value.headers["Retry-After"] == "4"  # a picture took two seconds


def test_picture_is_read_in_the_regions_and_by_the_expectation_that_are_meant(mailbox: Mailbox) -> None:
    uploads = Uploads(mailbox)
    of_left = {"date": RoiConfig(x=0.5, width=0.5)}
    of_its_own = {"lot": RoiConfig(angle_deg=90.0)}
    left, own = (Expectation(name, (Rule(field="lot", pattern="L9999A"),)) for name in ("left", "own"))
    seen = []
    for camera, rois, expectation in ((None, None, None), ("left", None, None), (None, of_its_own, own)):
        uploads.offer(picture(1), camera, rois, expectation)
        frame = mailbox.take(10)
        assert frame is not None
        regions = uploads.begin(frame, {"left": of_left})
        assert regions["left"] == of_left
        given = uploads.expected(frame.camera, {"left": left}.get)
        seen.append((dict(regions[frame.camera]), given))
        uploads.answer(frame, reading_of(frame))
    assert seen == [({}, None), (of_left, left), (of_its_own, own)]
    assert uploads.expected("right", {"right": own}.get) is own


def test_damage_is_the_answer_and_the_next_is_read(mailbox: Mailbox) -> None:
    uploads = Uploads(mailbox, most_waiting=1)
    with pytest.raises(Refused) as refused:
        uploads.offer(picture(1)[:-20]).result(DEADLINE_S)
    assert refused.value.status == 422
    failing = uploads.offer(picture(1))
    frame = taken(mailbox, uploads)
    uploads.fail(frame, FrameError("OpenCV cannot"))
    with pytest.raises(Refused, match="OpenCV cannot"):
        failing.result(DEADLINE_S)
    uploads.offer(picture(2))
    assert grey_of(taken(mailbox, uploads)) == 2


def test_end_answers_everyone_who_waits(mailbox: Mailbox) -> None:
    uploads = Uploads(mailbox, most_waiting=5)
    futures = [uploads.offer(picture(grey)) for grey in range(4)]
    taken(mailbox, uploads)
    uploads.close()
    for future in futures:
        with pytest.raises(Refused) as refused:
            future.result(DEADLINE_S)
        assert refused.value.status == 503


def test_what_nobody_foresaw_leaves_nobody_waiting(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("edge_agent.uploads.decode_image", broken)
    with pytest.raises(Refused) as refused:
        Uploads(mailbox).offer(picture(1)).result(DEADLINE_S)
    assert refused.value.status == 500


@pytest.mark.parametrize(("content", "status"), [(b"", 415), (b"GIF89a", 415), (picture(0), 413)])
def test_size_is_looked_up_before_anything_is_decoded(content: bytes, status: int) -> None:
    with pytest.raises(Refused) as refused:
        check_size(content, max_pixels=100)
    assert refused.value.status == status


def test_names_are_no_cameras() -> None:
    from pydantic import ValidationError

    from edge_agent.config import Config

    for name in NAMES:
        with pytest.raises(ValidationError):
            Config(cameras={name: {"kind": "video", "source": "x"}})  # type: ignore[dict-item]
