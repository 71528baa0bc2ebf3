"""Causes: why a broker cannot be reached, in words for whoever must mend it, and said once."""

from __future__ import annotations

import logging
import socket
import ssl
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

# X509_V_ERR_* of OpenSSL's x509_vfy.h
_NOT_YET_VALID = 9
_EXPIRED = 10
_HOSTNAME_MISMATCH = 62
_IP_ADDRESS_MISMATCH = 64


def explain(error: OSError, host: str, port: int, now: float) -> str:
    """What kept us from reaching `host`, with a cure; `now` is this device's clock, unix s. Names no secret."""
    where = f"{host}:{port}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate(error, host, where, now)
    if isinstance(error, ssl.SSLError):
        return (
            f"TLS with {where} failed ({error.strerror or error}); check that this port speaks TLS and mqtt.cert_file"
        )
    if isinstance(error, socket.gaierror):
        return f"the name {host} cannot be resolved ({error.strerror}); check mqtt.host and the network's DNS"
    if isinstance(error, ConnectionRefusedError):
        return f"nothing listens on {where} (connection refused); check mqtt.port and that the broker runs"
    if isinstance(error, ConnectionResetError):
        return f"{where} broke off the connection at once; check mqtt.port, and mqtt.tls for it"
    if isinstance(error, TimeoutError):
        return f"{where} does not answer (timed out); check mqtt.host, the network and firewalls"
    return f"{where} cannot be reached ({error.strerror or type(error).__name__})"


def _certificate(error: ssl.SSLCertVerificationError, host: str, where: str, now: float) -> str:
    if error.verify_code == _NOT_YET_VALID:
        clock = time.strftime("%Y-%m-%d", time.gmtime(now))
        return (
            f"the clock of this device says {clock}, before the certificate of {where} becomes valid;"
            " waiting for the clock to be set (time synchronisation)"
        )
    if error.verify_code in (_HOSTNAME_MISMATCH, _IP_ADDRESS_MISMATCH):
        return f"the certificate of {where} is for another name, not {host}; set mqtt.host to the name in it"
    if error.verify_code == _EXPIRED:
        return f"the certificate of {where} has expired; renew it on the broker, or set this device's clock"
    return f"the certificate of {where} is not trusted ({error.verify_message}); set mqtt.ca_file to its authority"


class CauseLog:
    """Logs a cause when it first appears, then at most every `repeat_s` while it lasts, with a count of tries."""

    def __init__(self, repeat_s: float = 600.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._repeat_s = repeat_s
        self._clock = clock
        self._said_mono: dict[str, float] = {}
        self._tries = 0

    def failed(self, cause: str) -> None:
        """One more try ended with `cause`."""
        self._tries += 1
        said = self._said_mono.get(cause)
        if said is None or self._clock() - said >= self._repeat_s:
            self._said_mono[cause] = self._clock()
            log.warning("not connected after %d %s: %s", self._tries, "try" if self._tries == 1 else "tries", cause)

    def connected(self) -> None:
        """A try succeeded: every cause is news again, unless it was said within `repeat_s`."""
        self._tries = 0
        limit_mono = self._clock() - self._repeat_s
        self._said_mono = {cause: said for cause, said in self._said_mono.items() if said > limit_mono}
