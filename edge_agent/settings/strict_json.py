"""Strict JSON: plain values, or a refusal that names the origin, where the problem is, and a cure."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from edge_agent.errors import ConfigError
from edge_agent.settings.problems import KeyPath, kind_of, listed, shown_key
from edge_agent.settings.strict_text import CONTROL, MAX_BYTES, MAX_DEPTH, MAX_DIGITS, Refused, decoded


def parse_json(raw: bytes, origin: str, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> dict[str, Any]:
    """The object that the JSON text `raw` (UTF-8) holds.

    Raises ConfigError for anything else: not-a-number, infinity, numbers beyond a double, an equal key twice, control
    characters, lone surrogates, depth, size.
    """
    try:
        text = decoded(raw, max_bytes)
        _check_depth(text, max_depth)
        values = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
        _check_texts(values)
    except json.JSONDecodeError as exc:
        raise ConfigError(f"{origin}:{exc.lineno}: is not JSON: {exc.msg}, column {exc.colno}") from None
    except Refused as exc:
        raise ConfigError(listed(origin, [exc.problem])) from None
    if not isinstance(values, dict):
        raise ConfigError(f"{origin}: the top is {kind_of(values)}; expected an object, {{...}}")
    return values


def _check_depth(text: str, max_depth: int) -> None:
    """The C scanner of json recurses: thousands of brackets would raise RecursionError."""
    depth = 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[{\]}]', text, re.DOTALL):
        if match.group() in ("[", "{"):
            depth += 1
            if depth > max_depth:
                line = text.count("\n", 0, match.start()) + 1
                raise Refused(line, f"is nested deeper than {max_depth} levels")
        elif match.group() in ("]", "}"):
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise Refused(0, f"key {shown_key(key)} is twice in one object; keep one of them")
        values[key] = value
    return values


def _constant(word: str) -> float:
    raise Refused(0, f"{word} is not JSON and not a finite number; write a number")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Refused(0, "a number is too large; write a smaller one")
    return number


def _int(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise Refused(0, f"a whole number has more than {MAX_DIGITS} digits; write it as text, in quotes")
    return int(text)


def _check_texts(value: Any, path: KeyPath = ()) -> None:
    """Raises for a control character or lone surrogate in any key or text."""
    if isinstance(value, dict):
        for key, item in value.items():
            if CONTROL.search(key):
                raise Refused(0, "a key holds a control character; remove it", path)
            _check_texts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_texts(item, (*path, index))
    elif isinstance(value, str) and CONTROL.search(value):
        raise Refused(0, "holds a control character; remove it", path)
