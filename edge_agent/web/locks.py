"""Locks: who may ask. The Host that a request names, where it comes from, a session or a token, and its CSRF token.

A page of another site that a browser on this network shows can send requests here: it has neither the cookie (SameSite)
nor the CSRF token, its Origin is another, and a name that it makes lead here (DNS rebinding) is none of this device.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import logging
import secrets
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers

from edge_agent.files import write_atomically
from edge_agent.settings.web import WebConfig
from edge_agent.web.passwords import Tokens, read_password_hash, read_tokens
from edge_agent.web.site import Refused

log = logging.getLogger(__name__)

COOKIE = "edge_agent_session"
CSRF = "x-csrf"
SAFE = ("GET", "HEAD", "OPTIONS")
SESSION_S = 12 * 3600.0
MOST_SESSIONS = 100
FREE_FAILURES = 5  # then each further one makes the next wait twice as long
FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 300.0
FORGIVEN_AFTER_S = 900.0
MOST_ADDRESSES = 1000
MOST_WAITING = 4  # passwords that wait to be looked at: each takes 16 MiB
PRIVATE = 0o600


@dataclass(frozen=True)
class Visitor:
    """Who asks: `session` the cookie's, None without; `token` the name of a program's; `csrf` what a browser must send
    back. `known`: may see and change everything."""

    known: bool
    session: str | None = None
    token: str | None = None
    csrf: str = ""


class Locks:
    """`sessions_path`: where sessions outlast a restart; None: they do not. For the door's event loop alone."""

    def __init__(
        self,
        settings: WebConfig,
        sessions_path: Path | None,
        unix: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Reads the files of hashes; ConfigError where they cannot be used."""
        self._settings = settings
        self._password = None if settings.password_file is None else read_password_hash(settings.password_file)
        self._tokens = Tokens({}) if settings.token_file is None else read_tokens(settings.token_file)
        self._sessions = Sessions(sessions_path, str(self._password), unix)
        self._failures = Failures(monotonic)
        self._names = own_names(settings)
        self._one_by_one = ThreadPoolExecutor(1, "door-password")
        self._looking = 0

    @property
    def password_needed(self) -> bool:
        """Whether one must log in, or send a token."""
        return self._password is not None or bool(self._tokens.hashes) or self._settings.token_file is not None

    @property
    def secure(self) -> bool:
        """Whether the door speaks TLS."""
        return self._settings.cert_file is not None

    def visitor(self, method: str, headers: Headers, cookies: Mapping[str, str]) -> Visitor:
        """Who asks. Refused: 421 by a name that is not this device's, 403 from another site's page."""
        self._check_host(headers)
        self._check_origin(method, headers)
        visitor = self._identified(headers, cookies)
        from_browser = visitor.session is not None or bool(
            headers.get("origin", "") or headers.get("sec-fetch-site", "")
        )
        if method not in SAFE and visitor.known and visitor.token is None and from_browser:
            sent = headers.get(CSRF, "")
            if not hmac.compare_digest(sent.encode("utf-8", "replace"), visitor.csrf.encode()):
                raise Refused(403, "csrf", "the header X-CSRF is missing or old; ask GET /v1/session for it")
        return visitor

    def still_known(self, visitor: Visitor) -> bool:
        """Whether a visitor who was known still is: a session may have ended meanwhile."""
        return visitor.session is None or self._sessions.holds(visitor.session)

    def check_turn(self, address: str) -> None:
        """Refused with 429 where too many wrong passwords came from this address."""
        wait_s = self._failures.wait_s(address)
        if wait_s > 0:
            text = f"too many wrong passwords; the next one is looked at in {wait_s:.0f} s"
            raise Refused(429, "too_many_logins", text, {"Retry-After": str(int(wait_s) + 1)})

    @property
    def has_password(self) -> bool:
        """Whether there is one to log in with."""
        return self._password is not None

    async def fits(self, address: str, password: str) -> bool:
        """Whether it is the password. They are looked at one by one, beside the event loop; Refused with 429 where too
        many wait for it, or came from this address. Until it is known to be right it counts as wrong, so that none that
        come at once are looked at for nothing."""
        self.check_turn(address)
        if self._password is None:
            return False
        if self._looking >= MOST_WAITING:
            raise Refused(429, "too_many_logins", "too many log in at once", {"Retry-After": "2"})
        self._looking += 1
        self._failures.note(address)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._one_by_one, self._password.fits, password)
        finally:
            self._looking -= 1

    def log_in(self, address: str, right: bool) -> str:
        """A new session, for the right password; Refused with 401 for a wrong one."""
        if not right:
            log.warning("a wrong password for the page came from %s", address)
            raise Refused(401, "wrong_password", "that is not the password")
        self._failures.forget(address)
        return self._sessions.begin()

    def log_out(self, visitor: Visitor) -> None:
        """Ends the visitor's session."""
        if visitor.session is not None:
            self._sessions.end(visitor.session)

    def _identified(self, headers: Headers, cookies: Mapping[str, str]) -> Visitor:
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            name = self._tokens.name_of(sent.strip())
            return Visitor(name is not None, token=name)
        session = cookies.get(COOKIE)
        if session is not None and self._sessions.holds(session):
            return Visitor(True, session=session, csrf=csrf_of(session))
        return Visitor(not self.password_needed, csrf="" if self.password_needed else csrf_of(self._sessions.nobodys))

    def _check_host(self, headers: Headers) -> None:
        host = headers.get("host", "")
        if not is_own_host(host, self._names, self._settings.loopback):
            text = f"{host[:100]!r} is no name of this device; add it to web.hostnames, or use its IP address"
            raise Refused(421, "unknown_host", text)

    @staticmethod
    def _check_origin(method: str, headers: Headers) -> None:
        site, mode = headers.get("sec-fetch-site", ""), headers.get("sec-fetch-mode", "")
        origin, host = headers.get("origin", ""), headers.get("host", "")
        foreign = site in ("cross-site", "same-site") and not (method in SAFE and mode == "navigate")
        if foreign or (origin and origin.partition("://")[2].lower() != host.lower()):
            raise Refused(403, "other_site", "another site's page asked for this; nothing is done for it")


def csrf_of(session: str) -> str:
    """What a page that has this session's cookie sends back, and no other can know."""
    return hashlib.sha256(f"csrf {session}".encode("utf-8", "replace")).hexdigest()[:32]


def own_names(settings: WebConfig) -> frozenset[str]:
    """Names under which this device may be asked for, in lower case."""
    host = socket.gethostname().lower()
    short = host.partition(".")[0]
    names = {*(name.lower() for name in settings.hostnames), settings.host.lower()}
    return frozenset(names if settings.loopback else {*names, host, short, f"{short}.local"})


def is_own_host(host: str, names: frozenset[str], loopback: bool) -> bool:
    """Whether the Host of a request is this device: one of its names, localhost, or an IP address: whoever wrote an
    address was not led here by a name. With `loopback` only an address of this device for itself."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and ":" in host else host
    name = name.lower().removesuffix(".")
    if name in names or name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name[1:-1] if name.startswith("[") and name.endswith("]") else name)
    except ValueError:
        return False
    return address.is_loopback or not loopback


class Sessions:
    """Who has logged in: the hash of each session with its end, unix s. `bound_to`: with another password's hash, what
    the file holds is nobody's. `nobodys` opens nothing: where no password is set, CSRF tokens come of it."""

    def __init__(self, path: Path | None, bound_to: str, unix: Callable[[], float]) -> None:
        self._path = path
        self._bound_to = hashlib.sha256(f"sessions {bound_to}".encode()).hexdigest()
        self._unix = unix
        self.nobodys, self._ends_at = self._read()
        self._write()

    def begin(self) -> str:
        """A new one; of too many the one that ends first goes."""
        session = secrets.token_urlsafe(32)
        now = self._unix()
        self._ends_at = {name: end for name, end in self._ends_at.items() if end > now}
        while len(self._ends_at) >= MOST_SESSIONS:
            del self._ends_at[min(self._ends_at, key=lambda name: self._ends_at[name])]
        self._ends_at[_hashed(session)] = now + SESSION_S
        self._write()
        return session

    def holds(self, session: str) -> bool:
        """Whether it is one that has not ended."""
        return self._ends_at.get(_hashed(session), 0.0) > self._unix()

    def end(self, session: str) -> None:
        """It opens nothing any more."""
        if self._ends_at.pop(_hashed(session), None) is not None:
            self._write()

    def _read(self) -> tuple[str, dict[str, float]]:
        try:
            kept = json.loads(b"{}" if self._path is None else self._path.read_bytes())
            if kept["v"] == 1 and kept["bound_to"] == self._bound_to:
                return str(kept["nobodys"]), {str(name): float(end) for name, end in kept["sessions"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass  # everybody logs in again
        return secrets.token_urlsafe(32), {}

    def _write(self) -> None:
        if self._path is None:
            return
        kept = {"v": 1, "bound_to": self._bound_to, "nobodys": self.nobodys, "sessions": self._ends_at}
        content = json.dumps(kept).encode()
        with suppress(OSError):  # then a restart ends them
            write_atomically(self._path, content, PRIVATE, durable=False)


class Failures:
    """Wrong passwords by address; `monotonic` s. Of IPv6 the network of 64 bits counts, for a host has many in it."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._failed: OrderedDict[str, tuple[int, float]] = OrderedDict()  # how many, and when the last one came

    def wait_s(self, address: str) -> float:
        """How long until another one is looked at."""
        failures, last_mono = self._failed.get(network_of(address), (0, 0.0))
        if failures < FREE_FAILURES:
            return 0.0
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(failures - FREE_FAILURES, 10))
        return max(0.0, last_mono + wait_s - self._monotonic())

    def note(self, address: str) -> None:
        """A wrong one came."""
        network, now_mono = network_of(address), self._monotonic()
        failures, last_mono = self._failed.get(network, (0, now_mono))
        self._failed[network] = (1 if now_mono - last_mono > FORGIVEN_AFTER_S else failures + 1, now_mono)
        self._failed.move_to_end(network)
        while len(self._failed) > MOST_ADDRESSES:
            self._failed.popitem(last=False)

    def forget(self, address: str) -> None:
        """The right one came."""
        self._failed.pop(network_of(address), None)


def network_of(address: str) -> str:
    """What counts as one visitor's: the address; of IPv6 the network of 64 bits, for a host has many in it."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False)) if parsed.version == 6 else address


def is_loopback(address: str) -> bool:
    """Whether a visitor's address is this device's for itself."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _hashed(session: str) -> str:
    return hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()
