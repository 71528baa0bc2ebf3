"""Server: the door in a thread and an event loop of its own, opened again where it falls shut.

Whatever happens to it, reading goes on: the main loop never waits for this thread, and nothing raised in it leaves it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import uvicorn

from edge_agent.errors import ConfigError
from edge_agent.settings.web import WebConfig
from edge_agent.transports.base import Backoff
from edge_agent.web.app import make_app
from edge_agent.web.bell import Bell
from edge_agent.web.connections import Connection, Listener
from edge_agent.web.doctor import Examinations
from edge_agent.web.endpoint import Door
from edge_agent.web.history import DAY_S, Charts
from edge_agent.web.locks import Locks
from edge_agent.web.pictures import Pictures
from edge_agent.web.site import WebSite

log = logging.getLogger(__name__)

STOP_S = 3.0
GRACE_S = 1  # for answers under way when the door closes
IDLE_S = 15  # until a connection that asks nothing is closed
TOLD_SO = 16  # connections beyond web.max_clients that are answered 503; further ones are closed
SLOW_THREADS = 3
AGAIN_MIN_S, AGAIN_MAX_S = 2.0, 60.0
MAX_HEAD_BYTES = 16_384


class Server:
    """The door's thread. `tell` says an event: kind and text."""

    def __init__(
        self, settings: WebConfig, site: WebSite, locks: Locks, charts: Charts, tell: Callable[[str, str], None]
    ) -> None:
        self._settings = settings
        self._site = site
        self._locks = locks
        self._charts = charts
        self._tell = tell
        self._ended = threading.Event()
        self._uvicorn: uvicorn.Server | None = None
        self._thread = threading.Thread(target=self._keep_open, name="door", daemon=True)

    def start(self) -> None:
        """Opens the door soon."""
        self._thread.start()

    def stop(self) -> None:
        """Closes it; waits STOP_S at most."""
        self._ended.set()
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True
        self._thread.join(STOP_S)

    def _keep_open(self) -> None:
        """Serves, each time in a thread of its own, so that whatever ends it is noticed here and ends nothing else."""
        backoff = Backoff(AGAIN_MIN_S, AGAIN_MAX_S)
        while not self._ended.is_set():
            began_mono = time.monotonic()
            serving = threading.Thread(target=self._serve, name="door-loop", daemon=True)
            serving.start()
            serving.join()
            if self._ended.is_set():
                return
            if time.monotonic() - began_mono > AGAIN_MAX_S:
                backoff.reset()
            wait_s = backoff.next_s()
            text = f"the page is not served; it is tried again in {wait_s:.0f} s"
            log.error("%s", text)
            self._tell("door", text)
            self._ended.wait(wait_s)

    def _serve(self) -> None:
        try:
            listening = self._listen()
        except OSError as exc:
            log.error("%s:%d cannot be listened on: %s", self._settings.host, self._settings.port, exc.strerror or exc)  # noqa: TRY400
            return
        with listening, ThreadPoolExecutor(SLOW_THREADS, "door-slow") as slow:
            try:
                asyncio.run(self._open(listening, slow))
            finally:
                self._site.watch(None)
                slow.shutdown(wait=False, cancel_futures=True)

    def _listen(self) -> Listener:
        host, port = self._settings.host, self._settings.port
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.create_server(address[:2], family=family, backlog=64)
        return Listener(listening, self._settings.max_clients + TOLD_SO)

    async def _open(self, listening: Listener, slow: ThreadPoolExecutor) -> None:
        settings = self._settings
        bell = Bell()
        door = Door(
            self._site, settings, self._locks, bell, Pictures(slow), self._charts, slow, Examinations(), asyncio.Lock()
        )
        door.crowded = lambda: len(listening.networks) > settings.max_clients
        self._site.watch(bell.ring)
        server = uvicorn.Server(
            uvicorn.Config(
                make_app(door),
                loop="asyncio",
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",  # its warnings are of what strangers send, one for each
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=IDLE_S,
                timeout_graceful_shutdown=GRACE_S,
                h11_max_incomplete_event_size=MAX_HEAD_BYTES,
                ssl_certfile=settings.cert_file,
                ssl_keyfile=settings.key_file,
            )
        )
        self._uvicorn = server
        if self._ended.is_set():
            return
        scheme = "http" if settings.cert_file is None else "https"
        log.info("the page is at %s://%s:%d/", scheme, settings.host, settings.port)
        older = asyncio.get_running_loop().run_in_executor(slow, self._load_older)
        await server.serve(sockets=[listening])
        older.cancel()

    def _load_older(self) -> None:
        with suppress(OSError):
            self._charts.add_older(self._site.reports(time.time() - DAY_S))


@contextmanager
def serving(
    settings: WebConfig, site: WebSite, charts: Charts, sessions_path: Path | None, tell: Callable[[str, str], None]
) -> Iterator[None]:
    """The page is served, inside. ConfigError where a file that the settings name cannot be used."""
    check_certificate(settings)
    server = Server(settings, site, Locks(settings, sessions_path), charts, tell)
    server.start()
    try:
        yield
    finally:
        server.stop()


def check_certificate(settings: WebConfig) -> None:
    """ConfigError where certificate and key cannot be loaded, or do not belong together."""
    import ssl

    if settings.cert_file is None or settings.key_file is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.cert_file, settings.key_file)
    except OSError as exc:  # ssl.SSLError is one
        reason = getattr(exc, "reason", None) or exc.strerror
        raise ConfigError(f"web.cert_file and web.key_file cannot be used together: {reason}") from exc
