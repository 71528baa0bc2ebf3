"""Web: the page on this machine, and what programs ask for over HTTP."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from edge_agent.settings.cameras import MAX_PIXELS
from edge_agent.settings.scalars import Host, LocalPath, Port, SidePx
from edge_agent.settings.section import Section, one_without_other, refuse

WebHost = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?$")]


class WebConfig(Section):
    """The page on this machine, and what programs ask for over HTTP."""

    enabled: bool = False
    """Whether the page is served. Needs the Python packages starlette and uvicorn (the extra `web`)."""
    host: Host = "127.0.0.1"
    """The address that is listened on; 127.0.0.1: this device alone; any other needs a password or token, and TLS."""
    port: Port = 8480
    """The port."""
    hostnames: Annotated[tuple[WebHost, ...], Field(max_length=32)] = ()
    """Names under which browsers ask for the page, beside the host's own name and IP addresses."""
    password_file: LocalPath | None = None
    """A file with the password's hash, made by `edge-agent web set-password FILE`; null: no password opens the page."""
    token_file: LocalPath | None = None
    """A file with the hashes of tokens for programs, made by `edge-agent web add-token FILE NAME`; null: none."""
    cert_file: LocalPath | None = None
    """The page's certificate (PEM), with those between it and its root, together with key_file; null: no TLS."""
    key_file: LocalPath | None = None
    """The key (PEM, no passphrase) of cert_file."""
    allow_insecure: bool = False
    """true: serve other machines without TLS, so that passwords and pictures cross the network readable."""
    max_upload_bytes: Annotated[int, Field(ge=1024, le=268_435_456)] = 20_971_520
    """Largest picture taken by POST /v1/read, bytes."""
    max_upload_pixels: Annotated[int, Field(ge=1)] = MAX_PIXELS
    """The same in px; looked up in its header before it is decoded."""
    max_waiting_reads: Annotated[int, Field(ge=1, le=100)] = 4
    """Most pictures taken in that wait for their turn; more are answered 429."""
    max_clients: Annotated[int, Field(ge=4, le=1000)] = 64
    """Most connections at once; more are answered 503."""
    stream_fps: Annotated[float, Field(gt=0, le=60)] = 5.0
    """Most pictures a second that a viewer is shown of a camera."""
    stream_max_side_px: SidePx = 960
    """Longer side, px, that pictures for viewers are made smaller to."""

    @property
    def loopback(self) -> bool:
        """Whether this device alone can ask."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @model_validator(mode="after")
    def _keys_agree(self) -> WebConfig:
        problems = list(one_without_other(self, "cert_file", "key_file"))
        if self.enabled and not self.loopback:
            if self.password_file is None and self.token_file is None:
                why = f"is missing; with host {self.host} other machines can ask"
                problems.append(("password_file", f"{why}: make one by `edge-agent web set-password FILE`"))
            if self.cert_file is None and self.key_file is None and not self.allow_insecure:
                why = f"is missing; with host {self.host} passwords would cross the network readable"
                problems.append(("cert_file", f"{why}: give a certificate, or write allow_insecure: true"))
        refuse(problems)
        return self
