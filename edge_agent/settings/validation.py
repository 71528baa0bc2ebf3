"""Validation: plain values become a model, or a list of problems that names file, line, key and cure."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from edge_agent.errors import ConfigError
from edge_agent.settings.keys import leaves, model_at, near_keys
from edge_agent.settings.problems import KeyPath, Problem, dotted, kind_of, listed, shown

NAME_PATTERN = r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$"
KEYS_DISAGREE = "keys_disagree"  # a pydantic error whose context `problems` lists (key, why) of one section

_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True)
class Origin:
    """Where values came from: `name` of the text, the line of each key, the environment variable that set a key."""

    name: str
    lines: Mapping[KeyPath, int] = field(default_factory=dict)
    variables: Mapping[KeyPath, str] = field(default_factory=dict)

    def problem(self, path: KeyPath, text: str) -> Problem:
        """A problem with the key at `path`, placed where it or the nearest key above it was set."""
        if path in self.variables:
            return Problem(0, path, text, self.variables[path])
        for above in (path[:length] for length in range(len(path), 0, -1)):
            if above in self.lines:
                return Problem(self.lines[above], path, text)
            if above in self.variables:
                return Problem(0, path, text, self.variables[above])
        return Problem(0, path, text)


def validated(
    model: type[_Model], values: Mapping[str, Any], origin: Origin, known_problems: Iterable[Problem] = ()
) -> _Model:
    """`values` (plain: text, numbers, booleans, None, lists, mappings) as a frozen `model`.

    Raises ConfigError with every problem; `known_problems` are listed with those found here, consequences left out.
    """
    problems = list(known_problems)
    known = [problem.path for problem in problems]
    try:
        # Strict JSON mode: it alone takes a list for a tuple and text for a Path, and still no "5" for 5 or yes for 1.
        result = model.model_validate_json(json.dumps(values))
    except ValidationError as exc:
        for error in exc.errors(include_url=False):
            if not _is_consequence(error, known):
                problems += _problems(model, error, origin)
    if problems:
        raise ConfigError(listed(origin.name, problems))
    return result


def _path(error: ErrorDetails) -> KeyPath:
    path = error["loc"]
    return path[:-1] if path and path[-1] == "[key]" else path


def _is_consequence(error: ErrorDetails, known: Iterable[KeyPath]) -> bool:
    """Whether an error may come of a key that is left out because of a known problem.

    That problem stands below a section whose keys disagree, or at, above or below the key of any other error.
    """
    path = _path(error)
    if error["type"] == KEYS_DISAGREE:
        return any(k[: len(path)] == path for k in known)
    return any(k and (path[: len(k)] == k or k[: len(path)] == path) for k in known)


def _problems(model: type[BaseModel], error: ErrorDetails, origin: Origin) -> list[Problem]:
    path = _path(error)
    if error["type"] == KEYS_DISAGREE:
        return [origin.problem((*path, key), why) for key, why in error["ctx"]["problems"]]
    return [origin.problem(path, _text(model, error, path))]


_BOUNDS = {
    "greater_than": ("is not greater than", "gt"),
    "greater_than_equal": ("is less than", "ge"),
    "less_than": ("is not less than", "lt"),
    "less_than_equal": ("is greater than", "le"),
}
_EXPECTED = {
    "bool_type": "true or false",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "path_type": "a path",
    "string_type": "text",
    "tuple_type": "a list, [one, two]",
}


def _text(model: type[BaseModel], error: ErrorDetails, path: KeyPath) -> str:
    """What is wrong, in words, without the value of a key that may hold a secret."""
    kind, value, context = error["type"], error.get("input"), error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(model, path)
    if kind == "missing":
        return f"is missing{_description(model, path)}"
    if kind == "value_error":
        return str(context["error"])
    if kind in ("dict_type", "model_type"):
        return f"has keys below it, not {shown(path, value)}"
    if kind in _EXPECTED and value is None:
        return f"is empty; expected {_EXPECTED[kind]}; without the line the default applies"
    if kind in ("string_type", "path_type"):
        advice = "; expected text" if isinstance(value, (list, dict)) else ", not text; put it in quotes"
        return f"{shown(path, value)} is {kind_of(value)}{advice}"
    if kind in _EXPECTED:
        return f"{shown(path, value)} is not {_EXPECTED[kind]}"
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"{shown(path, value)} {words} {context[bound]}"
    if kind == "literal_error":
        return _no_choice(path, value, str(context["expected"]))
    if kind == "string_too_short":
        return "is empty; expected text"
    if kind == "string_too_long":
        return f"is longer than {context['max_length']} characters"
    if kind == "string_pattern_mismatch" and context["pattern"] == NAME_PATTERN:
        expected = "1 to 64 letters, digits, dots, dashes, underscores; no dot first"
        return f"{shown(path, value)} is no name; expected {expected}"
    return f"{shown(path, value)}: {error['msg']}"


def _no_choice(path: KeyPath, value: Any, expected: str) -> str:
    near = difflib.get_close_matches(str(value), re.findall(r"'([^']*)'", expected), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{shown(path, value)} is not {expected}{hint}"


def _description(model: type[BaseModel], path: KeyPath) -> str:
    section = model_at(model, path[:-1])
    field_info = section.model_fields.get(str(path[-1])) if section else None
    return f"; {field_info.description.rstrip('.')}" if field_info and field_info.description else ""


def _elsewhere(model: type[BaseModel], word: str) -> list[str]:
    """Keys below a section that are called `word`; for one that would hold a secret, the key of its file."""
    found = [leaf for leaf in leaves(model, {}) if leaf.path[-1] == word and len(leaf.path) > 1]
    return [dotted(leaf.path) + ("_file" if SecretStr in leaf.kinds else "") for leaf in found]


def _unknown_key(model: type[BaseModel], path: KeyPath) -> str:
    section = model_at(model, path[:-1])
    if section is None:
        return "unknown key"
    secret = [leaf.path[-1] for leaf in leaves(section, {}) if SecretStr in leaf.kinds]
    names = [name for name in section.model_fields if name not in secret]
    word = str(path[-1])
    hints = near_keys(word, names)
    if f"{word}_file" in names:
        hints = [f"{word}_file"]
    elif word not in hints:  # the right key in the wrong place is the better guess
        hints = _elsewhere(model, word) or hints
    if hints:
        return f"unknown key; did you mean {' or '.join(hints)}?"
    return f"unknown key; known here: {', '.join(sorted(names))}"
