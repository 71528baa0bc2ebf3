"""Sources: each kind of camera has its form of source; what is wrong is said without the source."""

from __future__ import annotations

import pytest

from edge_agent.settings.sources import has_password, login_problem, source_caution, source_problem


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("rtsp", "rtsp://host/live"),
        ("rtsp", "RTSPS://host:322/live?x=1"),
        ("rtsp", "rtsp://admin:S3cret%21pw@127.0.0.1:1/live"),
        ("rtsp", "rtsp://admin:S3cr#t@pw@host/live"),
        ("rtsp", "rtsp://[fe80::1]:554/"),
        ("rtsp", "rtsp://cam_1.plant.local"),
        ("csi", "0"),
        ("csi", "csi://15"),
        ("v4l2", "0"),
        ("v4l2", "/dev/v4l/by-id/usb-cam-index0"),
        ("folder", "/frames"),
        ("folder", "C:frames"),
        ("video", "clip.mp4"),
        ("video", "http://host/stream.mjpg"),
        ("video", "https://admin:S3cr#t@pw@[fe80::1]:8443/ä b?token=x"),
    ],
)
def test_good_source_has_no_problem(kind: str, source: str) -> None:
    assert source_problem(kind, source) is None


@pytest.mark.parametrize(
    ("kind", "source", "reason"),
    [
        ("rtsp", "rtps://admin:S3cret@host/live", "cannot begin with rtps://; did you mean rtsp:// or rtsps://?"),
        ("rtsp", "rstp://admin:S3cret@host/live", "did you mean rtsp://"),
        ("rtsp", "http://admin:S3cret@host/live", "expected rtsp:// or rtsps://"),
        ("rtsp", "admin:S3cret@host/live", "has no scheme"),
        ("rtsp", "rtsp:/admin:S3cret@host/live", "has no scheme"),
        ("rtsp", "rtsp://", "needs host[:port]"),
        ("rtsp", "rtsp://admin:S3cret@/live", "needs host[:port]"),
        ("rtsp", "rtsp://admin:S3cret/x@host/live", "must be written %2F"),
        ("rtsp", "rtsp://admin:S3cret@host:x/live", "needs host[:port]"),
        ("rtsp", "rtsp://admin:S3cret@host:70000/live", "port 70000 is not between 1 and 65535"),
        ("rtsp", "rtsp://admin:S3cret@host:0/live", "port 0 is not between"),
        ("csi", "16", "0 to 15"),
        ("csi", "-1", "0 to 15"),
        ("csi", "/dev/video0", "0 to 15"),
        ("v4l2", "video0", "/dev/v4l/by-id"),
        ("v4l2", "-1", "/dev/v4l/by-id"),
        ("folder", "rtsp://admin:S3cret@host/live", "kind: rtsp"),
        ("folder", "http://admin:S3cret@host/live", "kind: video"),
        ("video", "htpp://admin:S3cret@host/live", "cannot begin with htpp://; did you mean http"),
        ("video", "file:///S3cret/clip.mp4", "expected http:// or https://"),
        ("video", "http://admin:S3cret@[::1/live", "needs host[:port]"),
        ("video", "http://admin:S3cret@host:abc/live", "needs host[:port]"),
        ("video", "http://admin:S3cret@host:70000/live", "port 70000 is not between"),
        ("video", "rtsp://admin:S3cret@host/live", "kind: rtsp"),
        ("video", "~/clip.mp4", "write it in full"),
    ],
)
def test_bad_source_is_said_without_repeating_it(kind: str, source: str, reason: str) -> None:
    text = source_problem(kind, source)
    assert text is not None
    assert reason in text
    assert "S3cret" not in text


@pytest.mark.parametrize(
    ("kind", "source", "reason"),
    [
        ("v4l2", "0", "/dev/v4l/by-id"),
        ("v4l2", "/dev/video2", "/dev/v4l/by-id"),
        ("rtsp", "rtsp://a:S3cret@h/live", "password_file"),
        ("rtsp", "rtsp://h/live?token=S3cret", "password_file"),
    ],
)
def test_source_that_may_not_last_is_cautioned(kind: str, source: str, reason: str) -> None:
    text = source_caution(kind, source)
    assert text is not None
    assert reason in text
    assert "S3cret" not in text


@pytest.mark.parametrize(("kind", "source"), [("v4l2", "/dev/v4l/by-id/x"), ("rtsp", "rtsp://a@h/live"), ("csi", "0")])
def test_good_source_is_not_cautioned(kind: str, source: str) -> None:
    assert source_caution(kind, source) is None


def test_password_in_a_source_is_seen() -> None:
    assert has_password("rtsp://a:b@h/")
    assert not has_password("rtsp://a@h/")


def test_password_file_needs_a_user_and_no_second_password() -> None:
    assert login_problem("rtsp://admin@host/live") is None
    assert "needs a user" in (login_problem("rtsp://host/live") or "")
    assert "keep one of them" in (login_problem("rtsp://admin:S3cret@host/live") or "")
    assert "keep one of them" in (login_problem("rtsp://admin:S3cr#t@pw@host/live") or "")
