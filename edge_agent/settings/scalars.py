"""Scalars: the single values that keys of several sections hold, each with its bounds."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from edge_agent.settings.sources import is_address
from edge_agent.settings.validation import NAME_PATTERN


def number_as_text(value: Any) -> Any:
    """`source: 0` and `protocol: 5` are whole numbers in YAML and text here."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _host(text: str) -> str:
    if is_address(text):
        raise ValueError("a host is a name or an IP address alone, without mqtt:// or the like")
    if re.fullmatch(r"[\w-][\w.-]*", text):
        return text
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise ValueError("a host is a name or an IP address; the port has its own key") from None
    return text


def _full_path(path: Path) -> Path:
    text = str(path)
    if text.startswith("~"):
        raise ValueError("a path cannot begin with ~; write it in full")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", text):  # Path has made one slash of two
        raise ValueError("is an address; expected a path to a file or folder")
    if text == "." or len(text) > 4096 or any(ord(character) < 32 for character in text):
        raise ValueError("is no path to a file or folder")
    return path


# One topic level: no MQTT wildcard, separator or control character can be in it. No leading dot: . and .. are folders.
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
Port = Annotated[int, Field(ge=1, le=65535)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
SidePx = Annotated[int, Field(ge=16, le=16_384)]
Phrase = Annotated[str, StringConstraints(min_length=2, max_length=256)]
Host = Annotated[str, Field(min_length=1, max_length=253), AfterValidator(_host)]
LocalPath = Annotated[Path, AfterValidator(_full_path)]
