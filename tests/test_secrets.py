"""Secrets: passwords are masked, removed from logs, and read only from files fit for them."""

from __future__ import annotations

import io
import json
import logging
import os
import re
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from edge_agent.errors import ConfigError
from edge_agent.secrets import (
    Secrets,
    is_secret_key,
    masked,
    private_file_caution,
    read_password_file,
    url_password,
    url_secrets,
    url_user,
    with_password,
)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("rtsp://admin:S3cret%21pw@127.0.0.1:1/live", "rtsp://admin:***@127.0.0.1:1/live"),
        ("rtsp://admin:S3cr#t@pw@host/live", "rtsp://admin:***@host/live"),
        ("rtps://admin:S3cr#t@pw@host/live", "rtps://admin:***@host/live"),
        ("rtsp:/admin:S3cr#t@host/live", "rtsp:/admin:***@host/live"),
        ("rtsp//admin:S3cr#t@host/live", "rtsp//admin:***@host/live"),
        ("admin:S3cr#t@host/live", "admin:***@host/live"),
        ("rtsp://admin:S3/c?r:t@host/live", "rtsp://admin:***@host/live"),
        ("rtsp://admin:@host/live", "rtsp://admin:***@host/live"),
        ("rtsp://admin@host/live", "rtsp://admin@host/live"),
        ("rtsp://[fe80::1]:554/live", "rtsp://[fe80::1]:554/live"),
        ("rtsp://host:554/live", "rtsp://host:554/live"),
        ("/dev/v4l/by-id/usb-cam-index0", "/dev/v4l/by-id/usb-cam-index0"),
        ("rtsp://host/live?user=a&password=S3cret&channel=1", "rtsp://host/live?user=a&password=***&channel=1"),
        ("rtsp://host/live?token=S3cr#t", "rtsp://host/live?token=***"),
        ("http://host/live?token=S3 cr t&x=1", "http://host/live?token=***&x=1"),
        ("http://host/v.mjpg?api_key=S3cret;x=1", "http://host/v.mjpg?api_key=***;x=1"),
        ("rtsp://host:554/live?password=S3cr@t", "rtsp://***"),
        ("rtsp://a:S3cret@host/live?PWD=S3cret", "rtsp://a:***@host/live?PWD=***"),
    ],
)
def test_masked_hides_every_password(url: str, shown: str) -> None:
    assert masked(url) == shown


@pytest.mark.parametrize(
    ("url", "secrets"),
    [
        ("rtsp://admin:S3cr#t@pw@host/live", ("S3cr#t@pw",)),
        ("rtsp://admin:one@host/live?token=two", ("one", "two")),
        ("rtsp://admin@host/live", ()),
        ("/videos/a.mp4", ()),
    ],
)
def test_url_secrets_are_those_written_in_the_url(url: str, secrets: tuple[str, ...]) -> None:
    assert url_secrets(url) == secrets


@pytest.mark.parametrize(
    ("url", "password", "expected"),
    [
        ("rtsp://admin@host/live", "S3cr#t@pw", "rtsp://admin:S3cr%23t%40pw@host/live"),
        ("rtsp://admin:old@host/live", "new/1", "rtsp://admin:new%2F1@host/live"),
        ("rtsp://admin:S3cr#t@pw@host/live", None, "rtsp://admin:S3cr%23t%40pw@host/live"),
        ("rtsp://admin:S3cret%21pw@host/live", None, "rtsp://admin:S3cret%21pw@host/live"),
        ("rtsp://admin:50%off@host/live", None, "rtsp://admin:50%25off@host/live"),
        ("rtsp://admin:pw@host/live@720p", None, "rtsp://admin:pw@host/live@720p"),
        ("rtsp://host:554/live?password=x@y", None, "rtsp://host:554/live?password=x@y"),
        ("rtsp://host/live", "unused", "rtsp://host/live"),
    ],
)
def test_with_password_gives_a_url_that_ffmpeg_can_split(url: str, password: str | None, expected: str) -> None:
    assert with_password(url, password) == expected


def test_url_user_and_password_are_decoded() -> None:
    assert url_user("rtsp://ad%40min:S3cret%21pw@host/live") == "ad@min"
    assert url_password("rtsp://ad%40min:S3cret%21pw@host/live") == "S3cret!pw"
    assert url_user("rtsp://host/live") is None
    assert url_password("rtsp://admin@host/live") is None


@pytest.mark.parametrize("name", ["password", "Passwd", "username", "source", "api_key", "token", "client_secret"])
def test_secret_keys_are_known_by_name(name: str) -> None:
    assert is_secret_key(name)


@pytest.mark.parametrize("name", ["host", "port", "keepalive_s", "kind", "max_fps"])
def test_plain_keys_may_be_repeated(name: str) -> None:
    assert not is_secret_key(name)


class _Log:
    """A logger with the filter on its handler; `text()` is what came out."""

    def __init__(self, *secrets: str, formatter: logging.Formatter | None = None) -> None:
        self.stream = io.StringIO()
        stream_handler = logging.StreamHandler(self.stream)
        stream_handler.setFormatter(formatter)
        self.secrets = Secrets(secrets)
        stream_handler.addFilter(self.secrets)
        self.logger = logging.Logger("test")
        self.logger.addHandler(stream_handler)

    def text(self) -> str:
        return self.stream.getvalue()


PASSWORD = "S3cr#t@pw ü'\"\\"


@pytest.mark.parametrize(
    "form",
    [
        PASSWORD,
        quote(PASSWORD, safe=""),
        re.sub("%..", lambda code: code.group().lower(), quote(PASSWORD, safe="")),
        quote(PASSWORD),
        quote_plus(PASSWORD),
        quote(quote(PASSWORD, safe=""), safe=""),
        repr(PASSWORD),
        json.dumps(PASSWORD),
        repr(PASSWORD.encode()),
    ],
)
@pytest.mark.parametrize("registered", [PASSWORD, quote(PASSWORD, safe="")])
def test_log_holds_no_form_of_a_registered_secret(form: str, registered: str) -> None:
    log = _Log(registered)
    log.logger.error("cannot open rtsp://admin:%s@host/live", form)
    assert "S3cr" not in log.text()
    assert "pw" not in log.text()
    assert "***" in log.text()


def test_traceback_stack_and_extra_hold_no_secret() -> None:
    log = _Log("S3cret!pw", formatter=logging.Formatter("%(message)s %(url)s"))
    try:
        int("S3cret!pw")
    except ValueError:
        log.logger.exception("failed", stack_info=True, extra={"url": "rtsp://a:S3cret%21pw@h"})
    assert "invalid literal for int() with base 10: '***'" in log.text()
    assert "rtsp://a:***@h" in log.text()
    assert "S3cret" not in log.text()


def test_arguments_that_do_not_fit_are_logged_without_the_secret(capsys: pytest.CaptureFixture[str]) -> None:
    log = _Log("S3cret!pw")
    log.logger.error("%d frames from %s", "S3cret!pw")  # noqa: PLE1206
    assert "do not fit" in log.text()
    assert "S3cret" not in log.text() + capsys.readouterr().err


def test_longer_secret_is_removed_whole_though_another_begins_like_it() -> None:
    assert Secrets(["S3cret", "S3cret-extended"]).scrub("x S3cret-extended y S3cret") == "x *** y ***"


def test_short_secret_is_removed_only_as_a_word() -> None:
    assert Secrets(["1"]).scrub("a:1@host, 10 frames") == "a:***@host, 10 frames"


def test_no_secret_registered_changes_nothing() -> None:
    assert Secrets([""]).scrub("plain") == "plain"
    log = _Log()
    log.logger.warning("frame %d", 7)
    assert log.text() == "frame 7\n"


def _password_file(folder: Path, raw: bytes, mode: int = 0o600) -> Path:
    path = folder / "password"
    path.write_bytes(raw)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("raw", "password"),
    [
        (b"S3cret\n", "S3cret"),
        (b"S3cret", "S3cret"),
        (b"S3cret\r\n", "S3cret"),
        (b" S3 cret \n", " S3 cret "),
        (b"\xef\xbb\xbfS3cret\n", "S3cret"),
    ],
)
def test_password_file_loses_one_newline_only(tmp_path: Path, raw: bytes, password: str) -> None:
    assert read_password_file(_password_file(tmp_path, raw)) == password


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"S3cret\n\n", "more than one line"),
        (b"user\nS3cret\n", "more than one line"),
        (b"M\xfcnchen\n", "not UTF-8"),
        (b"x" * 5000, "longer than 4096"),
        (b"a\0b", "NUL"),
    ],
)
def test_password_file_refuses_what_is_no_password(tmp_path: Path, raw: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        read_password_file(_password_file(tmp_path, raw))
    assert "S3cret" not in str(caught.value)


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o400, False), (0o640, True), (0o644, True)])
def test_private_file_that_others_may_read_is_named_with_the_cure(tmp_path: Path, mode: int, warned: bool) -> None:
    path = _password_file(tmp_path, b"S3cret\n", mode)
    caution = private_file_caution(path)
    assert caution == (f"{path} may be read by others (mode {mode:04o}); run: chmod 600 {path}" if warned else None)


def test_reading_a_password_again_and_again_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = _password_file(tmp_path, b"S3cret\n", 0o644)
    assert {read_password_file(path) for _ in range(3)} == {"S3cret"}
    assert caplog.text == ""


def test_file_in_a_private_folder_or_nowhere_is_not_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edge_agent.secrets.PRIVATE_FOLDERS", (tmp_path,))
    assert private_file_caution(_password_file(tmp_path, b"S3cret\n", 0o444)) is None
    assert private_file_caution(Path("/nowhere/at/all")) is None


def test_password_file_that_anybody_may_write_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="written by anybody.*chmod 600"):
        read_password_file(_password_file(tmp_path, b"S3cret\n", 0o666))


def test_password_file_missing_or_a_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_password_file(tmp_path / "absent")
    with pytest.raises(ConfigError, match="not a regular file"):
        read_password_file(tmp_path)


def test_password_file_that_is_no_regular_file_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="not a regular file"):
        read_password_file(tmp_path / "pipe")
