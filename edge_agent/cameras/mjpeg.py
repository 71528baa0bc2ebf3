"""Motion JPEG over HTTP: JPEG after JPEG in one endless answer, as many network cameras and ESP32 boards send it.

Read here and not by FFmpeg, which squeezes frames of a new size into the first one's and paints over damaged ones:
each part is checked and decoded on its own.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections import deque
from http.client import HTTPMessage
from typing import IO
from urllib.parse import quote, urlsplit, urlunsplit

from edge_agent.cameras.base import Clock, Image
from edge_agent.cameras.image_file import decode_image
from edge_agent.cameras.jpeg import SpareBytes
from edge_agent.cameras.native import prepare_opencv
from edge_agent.errors import CameraError, ConfigError, FrameError
from edge_agent.secrets import Secrets, masked, url_password, url_secrets, url_user, with_password
from edge_agent.settings.cameras import CameraConfig

USUAL_PORTS = {"http": 80, "https": 443}
MAX_LINE_BYTES = 8192
MAX_HEADER_LINES = 64
PIECE_BYTES = 65_536
URL_SIGNS = "%/:?#[]@!$&'()*+,;=-._~"  # RFC 3986: what stands for itself; % because it may be encoded already
BYTES_PER_PIXEL = 3  # a JPEG has fewer
SMALLEST_LIMIT_BYTES = 1_048_576
HABIT_FRAMES, HABIT_WINDOW = 5, 20  # so many of the latest frames make a habit


class RedirectsWithinHost(urllib.request.HTTPRedirectHandler):
    """Follows a camera to another of its own pages, and nowhere else: it might point at this device or its neighbours,
    and would be shown the password."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        """The request for `newurl`; HTTPError for another host or port, or https given up for http."""
        downgrade = req.full_url.startswith("https:") and not newurl.startswith("https:")
        if _door(req.full_url) != _door(newurl) or downgrade:
            raise urllib.error.HTTPError(req.full_url, code, "and leads to another host", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _door(url: str) -> tuple[str | None, int | None]:
    """Host and port; None for the scheme's usual port."""
    parts = urlsplit(url)
    return parts.hostname, None if parts.port == USUAL_PORTS.get(parts.scheme) else parts.port


class MjpegCamera:
    """An http:// or https:// address that answers with multipart/x-mixed-replace. Basic and digest login."""

    def __init__(self, name: str, config: CameraConfig, *, clock: Clock | None = None) -> None:
        """Raises ConfigError for an address that is not http:// or https://."""
        prepare_opencv()
        self.name = name
        self._config = config
        self._clock = clock or Clock()
        self._shown = masked(config.source)
        self._secrets = Secrets(url_secrets(config.source))
        self._url = self._address()
        # urllib has one time-out for both: the stricter one holds
        self._timeout_s = min(config.open_timeout_s, config.read_timeout_s)
        self._limit_bytes = max(SMALLEST_LIMIT_BYTES, config.max_pixels * BYTES_PER_PIXEL)
        self._answer: http.client.HTTPResponse | None = None
        self._boundary = b""
        self._spare: deque[bool] = deque(maxlen=HABIT_WINDOW)  # whether the latest frames had bytes left over
        self._past_boundary = False  # the line that begins the next part was read with the last one

    def open(self) -> None:
        """Asks for the stream; CameraError when there is none."""
        self.close()
        try:
            answer = self._opener().open(self._url, timeout=self._timeout_s)
        except urllib.error.HTTPError as exc:
            exc.close()
            raise CameraError(f"{self._shown} answers {exc.code} {self._secrets.scrub(str(exc.reason))}") from None
        except (OSError, http.client.HTTPException, ValueError) as exc:
            reason = getattr(exc, "reason", None) or exc
            raise CameraError(f"{self._shown} did not open: {self._secrets.scrub(str(reason))}") from None
        if not isinstance(answer, http.client.HTTPResponse):
            raise CameraError(f"{self._shown} gave no HTTP answer")
        kind, boundary = answer.headers.get_content_maintype(), answer.headers.get_boundary()
        if kind != "multipart" or not boundary:
            answer.close()
            raise CameraError(
                f"{self._shown} sends {answer.headers.get_content_type()}; expected multipart/x-mixed-replace, "
                "a stream of JPEGs (for a video file, download it and give its path)"
            )
        self._answer, self._boundary = answer, b"--" + boundary.encode("latin-1").removeprefix(b"--")

    def read(self) -> Image | None:
        """The next picture; FrameError for a damaged one, CameraError when none came or the camera hung up."""
        if self._answer is None:
            raise CameraError(f"{self._shown} is not open; call open first")
        deadline = self._clock.monotonic() + self._timeout_s
        try:
            content = self._next_part(self._answer, deadline)
        except TimeoutError:
            raise CameraError(
                f"{self._shown} gave no whole picture within {self._timeout_s:g} s (open_timeout_s, read_timeout_s)"
            ) from None
        except (OSError, http.client.HTTPException, ValueError) as exc:
            raise CameraError(f"{self._shown} broke off: {self._secrets.scrub(str(exc))}") from None
        if not content.startswith(b"\xff\xd8"):
            raise FrameError(f"part of {len(content)} bytes is no JPEG: begins with {content[:8].hex(' ')}")
        return self._decoded(content)

    def close(self) -> None:
        """Hangs up."""
        if self._answer is not None:
            self._answer.close()
        self._answer = None
        self._past_boundary = False

    def _address(self) -> str:
        """The source without user and password, as HTTP has it: blanks and letters beyond ASCII percent-encoded."""
        try:
            parts = urlsplit(with_password(self._config.source, None))
            port = parts.port
        except ValueError:  # brackets that are not closed, a port that is no number
            parts, port = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"cameras.{self.name}.source is {self._shown}; expected http://host[:port]/path or a file"
            )
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        path, query = (quote(text, safe=URL_SIGNS) for text in (parts.path or "/", parts.query))
        return urlunsplit((parts.scheme, host if port is None else f"{host}:{port}", path, query, ""))

    def _decoded(self, content: bytes) -> Image:
        """The picture; a few bytes left over are damage, unless this camera is in the habit of them."""
        try:
            image = decode_image(content, self._config.max_pixels, spare_bytes=0)
        except SpareBytes:
            self._spare.append(True)
            if sum(self._spare) < HABIT_FRAMES:
                raise
            return decode_image(content, self._config.max_pixels)
        self._spare.append(False)
        return image

    def _opener(self) -> urllib.request.OpenerDirector:
        """HTTP and HTTPS only, without the proxies that the environment may name: a camera is in the next room."""
        logins = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        user = url_user(self._config.source)
        if user is not None:
            logins.add_password(None, self._url, user, url_password(self._config.source) or "")
        opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            RedirectsWithinHost(),
            urllib.request.HTTPErrorProcessor(),
            urllib.request.HTTPBasicAuthHandler(logins),
            urllib.request.HTTPDigestAuthHandler(logins),
        ):
            opener.add_handler(handler)
        return opener

    def _next_part(self, answer: http.client.HTTPResponse, deadline: float) -> bytes:
        """The body of the next part. A length that is wrong costs this part and the one it runs into, no more."""
        while not self._past_boundary:
            self._past_boundary = self._line(answer, deadline).startswith(self._boundary)
        self._past_boundary = False
        length: int | None = None
        for _ in range(MAX_HEADER_LINES):
            line = self._line(answer, deadline).strip()
            if not line:
                break
            key, _, value = line.partition(b":")
            if key.strip().lower() == b"content-length":
                length = int(value)
        if length is None:
            return self._until_jpeg_end(answer, deadline)
        if not 0 <= length <= self._limit_bytes:
            raise ValueError(f"a part declares {length} bytes; at most {self._limit_bytes} are read")
        content = bytearray()
        while len(content) < length:
            content += self._piece(answer, min(PIECE_BYTES, length - len(content)), deadline)
        return bytes(content)

    def _until_jpeg_end(self, answer: http.client.HTTPResponse, deadline: float) -> bytes:
        """A part without a length: all lines up to one that ends in a JPEG's end marker, or to the next part."""
        content = bytearray()
        while len(content) <= self._limit_bytes:
            line = self._line(answer, deadline)
            if line.startswith(self._boundary):
                self._past_boundary = True
                return bytes(content)
            content += line
            if line.rstrip(b"\r\n").endswith(b"\xff\xd9"):
                return bytes(content)
        raise ValueError(f"a part has no end within {self._limit_bytes} bytes")

    def _line(self, answer: http.client.HTTPResponse, deadline: float) -> bytes:
        line = answer.readline(MAX_LINE_BYTES)
        self._check(line, deadline)
        return line

    def _piece(self, answer: http.client.HTTPResponse, size: int, deadline: float) -> bytes:
        piece = answer.read1(size)
        self._check(piece, deadline)
        return piece

    def _check(self, got: bytes, deadline: float) -> None:
        if not got:
            raise CameraError(f"{self._shown} hung up")
        if self._clock.monotonic() > deadline:
            raise TimeoutError
