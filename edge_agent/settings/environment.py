"""Environment: EDGE_AGENT_<SECTION>__<KEY> sets a key over the file.

EDGE_AGENT_MQTT__HOST=broker.plant  EDGE_AGENT_CAMERAS__LINE1__SOURCE=rtsp://...  EDGE_AGENT_DEVICE_ID=press7
An empty variable is as good as none; one that names no key is an error.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from edge_agent.settings.keys import Leaf, entry_of, leaves, section_of
from edge_agent.settings.problems import KeyPath, Problem, dotted, shown

PREFIX = "EDGE_AGENT_"

_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,18}|[0-9]{0,18}\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,3})?")


@dataclass(frozen=True)
class Overrides:
    """Values from the environment, as a tree; the variable that set each key; what is wrong with the rest."""

    values: dict[str, Any] = field(default_factory=dict)
    variables: dict[KeyPath, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def overrides(model: type[BaseModel], values: Mapping[str, Any], environ: Mapping[str, str]) -> Overrides:
    """What `environ` sets of the keys that `model` declares; `values` tells which named blocks (cameras) there are.

    A relative path is taken from the working folder.
    """
    found = Overrides()
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        text = environ[variable]
        if text == "":
            continue
        named = _named(model, variable.removeprefix(PREFIX), values)
        if len(named) != 1:
            why = f"could be {' or '.join(dotted(leaf.path) for leaf in named)}; set it in the file"
            found.problems.append(Problem(0, (), why if named else _unknown(model, variable, values), variable))
            continue
        try:
            _set(found, named[0].path, _value(named[0], text), variable)
        except ValueError as exc:
            found.problems.append(Problem(0, named[0].path, str(exc), variable))
    return found


def variable_of(path: KeyPath) -> str:
    """The variable that sets the key at `path`: ("mqtt", "host") -> EDGE_AGENT_MQTT__HOST."""
    return PREFIX + "__".join(_upper(str(part)) for part in path)


def _upper(name: str) -> str:
    """A name as a shell can have it: line-1.a -> LINE_1_A."""
    return re.sub(r"[^A-Z0-9_]", "_", name.upper())


def _named(model: type[BaseModel], name: str, values: Mapping[str, Any]) -> list[Leaf]:
    """The keys that NAME (without prefix) may mean; a named block that `values` lacks is a new one, in lower case."""
    known = [leaf for leaf in leaves(model, values) if variable_of(leaf.path) == PREFIX + name]
    if known:
        return known
    for block_name, entry in _named_blocks(model):
        rest = name.removeprefix(_upper(block_name) + "__")
        ends = {"__" + "__".join(_upper(str(part)) for part in leaf.path): leaf for leaf in leaves(entry, {})}
        # the longest: ..._D__TRIGGER__KIND is a key of D, not the key `kind` of a block D__TRIGGER
        end = max((end for end in ends if rest != name and rest.endswith(end)), key=len, default="")
        if end and rest != end:
            leaf = ends[end]
            return [Leaf((block_name, rest.removesuffix(end).lower(), *leaf.path), leaf.kinds)]
    return []


def _named_blocks(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    for name, info in model.model_fields.items():
        entry = entry_of(info.annotation)
        if entry is not None:
            yield name, entry


def _unknown(model: type[BaseModel], variable: str, values: Mapping[str, Any]) -> str:
    known = [variable_of(leaf.path) for leaf in leaves(model, values)]
    for block_name, entry in _named_blocks(model):
        known += [variable_of(leaf.path) for leaf in leaves(entry, {}, (block_name, "NAME"))]
    near = difflib.get_close_matches(variable, known, n=1, cutoff=0.7)
    if near:
        return f"sets no key; did you mean {near[0]}?"
    sections = [name for name, info in model.model_fields.items() if section_of(info.annotation)]
    example = f"{PREFIX}{_upper(sections[0])}__KEY" if sections else f"{PREFIX}KEY"
    return f"sets no key; expected a name such as {example}; unset it if another program needs no such name"


def _value(leaf: Leaf, text: str) -> Any:
    """The text of a variable as the key's type. Raises ValueError, which never repeats a secret."""
    if any(ord(character) < 32 or 0xD800 <= ord(character) <= 0xDFFF for character in text):
        raise ValueError("holds a control character or is not UTF-8")
    if bool in leaf.kinds:
        if text.lower() not in _BOOLEANS:
            raise ValueError(f"{shown(leaf.path, text)} is neither true (yes, on, 1) nor false (no, off, 0)")
        return _BOOLEANS[text.lower()]
    if leaf.kinds & {int, float}:
        if not _NUMBER.fullmatch(text):
            raise ValueError(f"{shown(leaf.path, text)} is not a number")
        return json.loads(_json_number(text))
    if dict in leaf.kinds:
        raise ValueError("cannot be set by a variable; set it in the file")
    if leaf.kinds & {tuple, list}:
        return [part.strip() for part in text.split(",") if part.strip()]
    return str(Path(text).absolute()) if Path in leaf.kinds else text


def _json_number(text: str) -> str:
    sign, digits = ("-", text[1:]) if text[0] == "-" else ("", text.removeprefix("+"))
    digits = digits.lstrip("0") or "0"
    return sign + (digits if digits[0].isdigit() else "0" + digits)


def _set(found: Overrides, path: KeyPath, value: Any, variable: str) -> None:
    below = found.values
    for part in path[:-1]:
        below = below.setdefault(str(part), {})
    below[str(path[-1])] = value
    for length in range(1, len(path)):
        found.variables.setdefault(path[:length], variable)
    found.variables[path] = variable
