"""Can the page be served: are its packages there, its passwords, and a certificate that browsers take?"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from pathlib import Path

from edge_agent.doctor.base import Patient, Row
from edge_agent.doctor.packages import version_of
from edge_agent.errors import ConfigError
from edge_agent.settings.web import WebConfig
from edge_agent.web.passwords import read_password_hash, read_tokens

PACKAGES = ("starlette", "uvicorn")
SOON_S = 14 * 86_400.0  # to the end of a certificate: time to get another


def check(patient: Patient) -> Iterator[Row]:
    if patient.config is None:
        return
    web = patient.config.web
    if not web.enabled:
        yield Row("page", "ok", "not served: web.enabled is false")
        return
    missing = [name for name in PACKAGES if version_of(name) is None]
    if missing:
        yield Row("page", "fail", f"packages are missing: {', '.join(missing)}", "pip install 'edge-agent[web]'")
    yield from locks(web)
    if web.cert_file is not None and web.key_file is not None:
        yield certificate(web.cert_file, web.key_file, time.time())


def locks(web: WebConfig) -> Iterator[Row]:
    """What opens the page."""
    try:
        if web.password_file is not None:
            read_password_hash(web.password_file)
            yield Row("page", "ok", "web.password_file: holds a password's hash")
        if web.token_file is not None:
            count = len(read_tokens(web.token_file).hashes)
            yield Row("page", "ok", f"web.token_file: holds {count} tokens' hashes")
    except ConfigError as exc:
        yield Row(
            "page", "fail", str(exc), "edge-agent web set-password FILE, or add-token FILE NAME, as the agent's user"
        )


def certificate(cert: Path, key: Path, now_unix: float) -> Row:
    """Whether browsers take the page's certificate for valid now, and for some time to come."""
    cure = "put a new certificate at web.cert_file and start the agent again"
    try:
        ends_unix = ssl.cert_time_to_seconds(str(served(cert, key)["notAfter"]))
    except ssl.SSLCertVerificationError as exc:
        return Row("page", "fail", f"{cert}: {exc.verify_message}", cure)
    except OSError as exc:  # ssl.SSLError is one
        reason = getattr(exc, "reason", None) or exc.strerror
        return Row("page", "fail", f"web.cert_file and web.key_file cannot be used together: {reason}", cure)
    days = int((ends_unix - now_unix) / 86_400)
    soon = ends_unix - now_unix < SOON_S
    return Row("page", "warn" if soon else "ok", f"{cert}: valid for {days} days more", cure if soon else None)


def served(cert: Path, key: Path) -> dict[str, object]:
    """The certificate, as one who trusts it sees it in a handshake within memory. SSLError, OSError."""
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(cert, key)
    client_side = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_side.check_hostname = False
    client_side.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client_side.load_verify_locations(cert)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_side.wrap_bio(there, back, server_side=True)
    client = client_side.wrap_bio(back, there)
    for _ in range(4):  # flights
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return dict(client.getpeercert() or {})
