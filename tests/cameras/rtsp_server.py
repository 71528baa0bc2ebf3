"""A small real RTSP server for tests: one client at a time, JPEG over RTP (RFC 2435) inside the TCP connection."""

from __future__ import annotations

import base64
import contextlib
import socket
import struct
import threading
from collections.abc import Callable

import cv2
import numpy as np
import numpy.typing as npt

CLOCK_HZ = 90_000
FRAGMENT_BYTES = 1400
SDP = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=test\r\nt=0 0\r\nm=video 0 RTP/AVP 26\r\na=control:track0\r\n"


class RtspServer:
    """Serves `picture(n)` as frame n to whoever asks, and demands `user:password` where `login` is given.

    `stop_after`: frames after which it falls silent, the connection left open.
    """

    def __init__(
        self,
        picture: Callable[[int], npt.NDArray[np.uint8]],
        login: str | None = None,
        stop_after: int | None = None,
        frame_every_s: float = 0.02,
    ) -> None:
        self._frame_every_s = frame_every_s
        self._picture = picture
        self._login = login
        self._stop_after = stop_after
        self._over = threading.Event()
        self.logins: list[str] = []
        self.transports: list[str] = []
        self.sessions = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> RtspServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _serve(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(10)
                self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        incoming = connection.makefile("rb")
        while not self._over.is_set():
            method, headers = self._request(incoming)
            if not method:
                return
            self._answer(connection, method, headers)
            if method == "PLAY":
                self.sessions += 1
                self._stream(connection)
                return

    @staticmethod
    def _request(incoming) -> tuple[str, dict[str, str]]:  # type: ignore[no-untyped-def]
        method = incoming.readline().decode().partition(" ")[0].strip()
        headers: dict[str, str] = {}
        while line := incoming.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return method, headers

    def _answer(self, connection: socket.socket, method: str, headers: dict[str, str]) -> None:
        extra, body, status = "", "", "200 OK"
        if self._login is not None and not self._admits(headers):
            status, extra = "401 Unauthorized", 'WWW-Authenticate: Basic realm="camera"\r\n'
        elif method == "OPTIONS":
            extra = "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n"
        elif method == "DESCRIBE":
            body = SDP
            extra = f"Content-Type: application/sdp\r\nContent-Base: rtsp://127.0.0.1:{self.port}/live/\r\n"
        elif method == "SETUP":
            self.transports.append(headers.get("transport", ""))
            extra = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n"
        else:
            extra = "Session: 1\r\n"
        head = f"RTSP/1.0 {status}\r\nCSeq: {headers.get('cseq', '0')}\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
        connection.sendall((head + body).encode())

    def _admits(self, headers: dict[str, str]) -> bool:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind != "Basic":
            return False
        self.logins.append(base64.b64decode(token).decode())
        return self.logins[-1] == self._login

    def _stream(self, connection: socket.socket) -> None:
        sequence = 0
        number = 0
        while not self._over.wait(self._frame_every_s):
            if self._stop_after is not None and number >= self._stop_after:
                if self._hung_up(connection):
                    return
                continue
            for payload, last in jpeg_fragments(self._picture(number)):
                time_stamp = int(number * self._frame_every_s * CLOCK_HZ)
                header = struct.pack(
                    ">BBHII", 0x80, 26 | (0x80 if last else 0), sequence & 0xFFFF, time_stamp & 0xFFFFFFFF, 7
                )
                packet = header + payload
                connection.sendall(struct.pack(">cBH", b"$", 0, len(packet)) + packet)
                sequence += 1
            number += 1

    def _hung_up(self, connection: socket.socket) -> bool:
        connection.settimeout(self._frame_every_s)
        try:
            return connection.recv(4096) == b""
        except TimeoutError:
            return False


def jpeg_fragments(picture: npt.NDArray[np.uint8]) -> list[tuple[bytes, bool]]:
    """RFC 2435 payloads of one picture (type 1: 4:2:0, quantisation tables in band), each with its marker bit."""
    height, width = picture.shape[:2]
    coded = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes()
    tables, at = b"", 2
    while coded[at + 1] != 0xDA:
        length = struct.unpack_from(">H", coded, at + 2)[0]
        if coded[at + 1] == 0xDB:
            segment, inner = coded[at + 4 : at + 2 + length], 0
            while inner < len(segment):
                tables += segment[inner + 1 : inner + 65]
                inner += 65
        at += 2 + length
    scan = coded[at + 2 + struct.unpack_from(">H", coded, at + 2)[0] : -2]
    assert len(tables) == 128
    fragments = []
    for offset in range(0, len(scan), FRAGMENT_BYTES):
        head = struct.pack(">I", offset) + bytes([1, 255, width // 8, height // 8])
        if offset == 0:
            head += struct.pack(">BBH", 0, 0, len(tables)) + tables
        fragments.append(
            (head + scan[offset : offset + FRAGMENT_BYTES], offset + FRAGMENT_BYTES >= len(scan)),
        )
    return fragments
