"""Problems: what is wrong with a setting, said as `config.yaml:12: mqtt.port: 70000 is greater than 65535`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from edge_agent.secrets import is_secret_key, masked

MAX_PROBLEMS = 40  # listed in one error

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: `line` counts from 1 (0 = none known), `path` leads to the key, `text` says why.

    `origin` names the text that the line is in; empty where the reader of all problems knows it.
    """

    line: int
    path: KeyPath
    text: str
    origin: str = ""


def listed(origin: str, problems: Iterable[Problem]) -> str:
    """The problems as text, one a line and in order of lines: `origin:line: key: why`."""
    lines = []
    for problem in sorted(problems, key=lambda p: (p.line, [str(part) for part in p.path])):
        where = problem.origin or origin
        where += f":{problem.line}" if problem.line else ""
        lines.append(": ".join(part for part in (where, said(problem)) if part))
    if len(lines) > MAX_PROBLEMS:
        lines[MAX_PROBLEMS:] = [f"{origin}: and {len(lines) - MAX_PROBLEMS} more"]
    return "\n".join(lines)


def said(problem: Problem) -> str:
    """A problem as one line without its place: `mqtt.port: 70000 is greater than 65535`."""
    return ": ".join(part for part in (dotted(problem.path), problem.text) if part)


def dotted(path: KeyPath) -> str:
    """A key's path as people write it, `mqtt.port` or `pipeline.languages[2]`; safe to print."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{shown_key(part)}"
    return text.removeprefix(".")


def shown(path: KeyPath, value: Any) -> str:
    """A value for a message, at most 70 characters; never one that may be secret, nor a URL's password."""
    names = [part for part in path if isinstance(part, str)]
    if names and is_secret_key(names[-1]):
        return "its value"
    if isinstance(value, (dict, list, tuple)):
        return kind_of(value)
    text = json.dumps(value) if isinstance(value, bool) or value is None else repr(value)
    if isinstance(value, str):
        text = repr(masked(value))
    return text if len(text) <= 60 else f"{text[:40]}... ({len(text)} characters)"


def shown_key(key: str) -> str:
    """A key for a message, at most 90 characters: no control characters, no password of a URL."""
    key = masked(re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", "?", key))
    return key if len(key) <= 70 else f"{key[:60]}... ({len(key)} characters)"


def kind_of(value: Any) -> str:
    """What a plain value is, in words."""
    names = {dict: "a mapping", list: "a list", tuple: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
