"""Desired: a configuration wished for from afar, as its text says it, or the reasons why it is not taken."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from edge_agent.errors import ConfigError
from edge_agent.settings.problems import kind_of, shown_key
from edge_agent.settings.strict_json import parse_json

ORIGIN = "config/desired"
MAX_VERSION = 2**53 - 1  # what every JSON reader holds exactly
MAX_TOKEN_CHARS = 128
MEMBERS = ("config", "patch", "token", "v", "version")
Kind = Literal["config", "patch"]
KINDS: tuple[Kind, ...] = ("config", "patch")


@dataclass(frozen=True)
class Refusal:
    """Why something is not taken: `key` dotted, empty where it is about the whole."""

    key: str
    why: str

    def __str__(self) -> str:
        return f"{self.key}: {self.why}" if self.key else self.why


class DesiredRefused(ConfigError):
    """A wish that is not taken, every reason named; `version` and `token` as far as they could be read."""

    def __init__(self, refusals: Iterable[Refusal], version: int | None = None, token: str | None = None) -> None:
        self.refusals = tuple(refusals)
        self.version = version
        self.token = token
        super().__init__("\n".join(map(str, self.refusals)))


@dataclass(frozen=True)
class Desired:
    """A wish: `content` is the whole configuration (`config`) or a merge patch over the device's file (`patch`)."""

    version: int
    token: str | None
    kind: Kind
    content: Mapping[str, Any]
    text: bytes

    @property
    def digest(self) -> str:
        """sha256 of what is wished for, whatever its version, token, order of keys and white space."""
        canonical = json.dumps([self.kind, self.content], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def text_name(text: bytes) -> str:
    """sha256 of a text as it came, by which it is known on disk."""
    return hashlib.sha256(text).hexdigest()


def parse_desired(payload: bytes, max_bytes: int) -> Desired:
    """The wish that a payload holds: strict JSON, at most `max_bytes`, which is looked at before anything is parsed.

    {"version": 42, "token": "optional", "patch": {...}}, or "config" in the place of "patch".
    Raises DesiredRefused with every reason.
    """
    if len(payload) > max_bytes:
        raise DesiredRefused([Refusal("", f"{len(payload)} bytes are more than remote.max_bytes, {max_bytes}")])
    try:
        values = parse_json(payload, ORIGIN, max_bytes)
    except ConfigError as exc:
        raise DesiredRefused([Refusal("", str(exc))]) from None
    version, token = values.get("version"), values.get("token")
    kinds = [name for name in KINDS if name in values]
    refusals = [*_about_version(version), *_about_token(token), *_about_members(values, kinds)]
    known_version = version if not list(_about_version(version)) else None
    known_token = token if not list(_about_token(token)) else None
    if refusals or known_version is None:
        raise DesiredRefused(refusals, known_version, known_token)
    return Desired(known_version, known_token, kinds[0], values[kinds[0]], payload)


def _about_version(version: object) -> Iterable[Refusal]:
    whole = isinstance(version, int) and not isinstance(version, bool)
    if not whole or not 1 <= int(str(version)) <= MAX_VERSION:
        came = "is missing" if version is None else f"is {_said(version)}"
        yield Refusal("version", f"{came}; expected a whole number, 1 to {MAX_VERSION}, greater at each change")


def _about_token(token: object) -> Iterable[Refusal]:
    if token is not None and (not isinstance(token, str) or len(token) > MAX_TOKEN_CHARS):
        yield Refusal("token", f"is {_said(token)}; expected text of at most {MAX_TOKEN_CHARS} characters, or null")


def _about_members(values: Mapping[str, Any], kinds: Sequence[Kind]) -> Iterable[Refusal]:
    if len(kinds) != 1:
        came = "both are there" if kinds else "neither is there"
        yield Refusal("", f"expected either config (everything) or patch (what is to differ from the file); {came}")
    for kind in kinds:
        if not isinstance(values[kind], dict):
            yield Refusal(kind, f"is {kind_of(values[kind])}; expected an object, {{...}}")
    for name in values:
        if name not in MEMBERS:
            yield Refusal(shown_key(name), f"is unknown here; known are {', '.join(MEMBERS)}")
    if values.get("v", 1) != 1 or isinstance(values.get("v", 1), bool):
        yield Refusal("v", f"is {_said(values['v'])}; this agent knows version 1 of the schema")


def _said(value: object) -> str:
    if isinstance(value, str):
        return f"text of {len(value)} characters"
    return str(value)[:40] if isinstance(value, (int, float)) and not isinstance(value, bool) else kind_of(value)
