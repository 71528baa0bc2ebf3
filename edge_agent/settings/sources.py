"""Sources: what a camera's `source` may be, by the camera's kind; nothing said here repeats a source."""

from __future__ import annotations

import difflib
import re

from edge_agent.secrets import MASK, masked

STREAM_SCHEMES = ("rtsp", "rtsps")
PICTURE_SCHEMES = ("http", "https")  # motion JPEG
STORED_KINDS = frozenset({"folder", "video"})  # they end, and can be read frame by frame
MAX_CSI_SENSOR = 15

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[\w.-]+)(?::(\d{1,5}))?")


def is_address(source: str) -> bool:
    """Whether `source` is a URL rather than a path."""
    return "://" in source


def source_problem(kind: str, source: str) -> str | None:
    """What is wrong with `source` for a camera of this kind; None when nothing is."""
    if kind == "rtsp":
        return _address_problem("an rtsp source", source, STREAM_SCHEMES, ", or the password put into password_file")
    if kind == "csi":
        sensor = re.fullmatch(r"(?:csi://)?(\d{1,2})", source)
        known = sensor is not None and int(sensor[1]) <= MAX_CSI_SENSOR
        return None if known else f"a csi source is the number of the sensor, 0 to {MAX_CSI_SENSOR}"
    if kind == "v4l2":
        fits = source.startswith("/") or re.fullmatch(r"\d{1,3}", source)
        return None if fits else "a v4l2 source is a path such as /dev/v4l/by-id/..., or a number such as 0"
    match = _SCHEME.match(source)
    if match and match[1].lower() in STREAM_SCHEMES:
        return f"a {kind} source is a path; for a network camera write kind: rtsp"
    if match and kind == "folder":
        return "a folder source is a path; for motion JPEG over HTTP write kind: video"
    if match:
        return _address_problem("a video source that is an address", source, PICTURE_SCHEMES)
    return "a path cannot begin with ~; write it in full" if source.startswith("~") else None


def source_caution(kind: str, source: str) -> str | None:
    """What works today but may not tomorrow; None when nothing is to be said."""
    if kind == "v4l2" and re.fullmatch(r"\d+|/dev/video\d+", source):
        return "this number changes when cameras are unplugged; use the camera's name in /dev/v4l/by-id"
    if kind == "rtsp" and has_password(source):
        return "the password stands in the address; password_file keeps it out of files that are copied around"
    return None


def has_password(source: str) -> bool:
    """Whether `source` holds a password or another secret parameter."""
    return MASK in masked(source)


def _address_problem(what: str, source: str, schemes: tuple[str, ...], more_advice: str = "") -> str | None:
    """What is wrong with an address that must begin with one of `schemes`; `what` it is, in words."""
    match = _SCHEME.match(source)
    if match is None:
        return f"{what} has no scheme; expected {schemes[0]}://[user@]host[:port]/path"
    scheme = match[1].lower()
    if scheme not in schemes:
        near = difflib.get_close_matches(scheme, schemes, cutoff=0.7)
        hint = f"did you mean {':// or '.join(sorted(near))}://?" if near else f"expected {':// or '.join(schemes)}://"
        return f"{what} cannot begin with {scheme[:20]}://; {hint}"
    authority = source[match.end() :].partition("/")[0]
    address = _ADDRESS.fullmatch(authority.rpartition("@")[2])
    if address is None:
        return (
            f"{what} needs host[:port] before its first single slash; a slash in the password must be "
            f"written %2F{more_advice}"
        )
    if address[1] and not 1 <= int(address[1]) <= 65535:
        return f"port {address[1]} is not between 1 and 65535"
    return None


def login_problem(source: str) -> str | None:
    """Why a password file does not go with this rtsp source; None when it does."""
    if not is_address(source):
        return None  # source_problem says what is wrong
    credentials, at, _ = source.partition("://")[2].rpartition("@")
    if not at or not credentials.partition(":")[0]:
        return "needs a user in the source, rtsp://user@host/path"
    return "and the source both have a password; keep one of them" if ":" in credentials else None
