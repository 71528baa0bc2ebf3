"""Keys: the tree of settings that a pydantic model declares, walked beside plain values."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from edge_agent.settings.problems import KeyPath

_UNITS = frozenset({"s", "px", "bytes", "fps"})


@dataclass(frozen=True)
class Leaf:
    """A key that holds a value, not other keys; `kinds` are the types that it takes, `str` for fixed choices."""

    path: KeyPath
    kinds: frozenset[type]


def kinds_of(annotation: Any) -> frozenset[type]:
    """The types that an annotation admits, without constraints: `Annotated[int, ...] | None` -> {int, NoneType}."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return kinds_of(arguments[0])
    if origin in (Union, types.UnionType):
        return frozenset().union(*(kinds_of(argument) for argument in arguments))
    if origin is Literal:
        return frozenset(type(choice) for choice in arguments)
    return frozenset({origin or annotation})


def section_of(annotation: Any) -> type[BaseModel] | None:
    """The model of a key that holds a fixed set of keys, else None."""
    found = [kind for kind in kinds_of(annotation) if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return found[0] if found else None


def entry_of(annotation: Any) -> type[BaseModel] | None:
    """The model of each entry of a key that holds named blocks (`dict[Name, CameraConfig]`), else None."""
    return section_of(get_args(annotation)[1]) if get_origin(annotation) is dict else None


def model_at(model: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    """The model that declares the keys below `path`; None where there is none."""
    if not path:
        return model
    field = model.model_fields.get(str(path[0]))
    if field is None:
        return None
    section, entry = section_of(field.annotation), entry_of(field.annotation)
    if section is not None:
        return model_at(section, path[1:])
    return model_at(entry, path[2:]) if entry is not None and len(path) > 1 else None


def leaves(model: type[BaseModel], values: Mapping[str, Any], path: KeyPath = ()) -> Iterator[Leaf]:
    """Every key that `model` declares; of named blocks those that `values` has."""
    for name, field in model.model_fields.items():
        here, value = (*path, name), values.get(name)
        below = value if isinstance(value, Mapping) else {}
        section, entry = section_of(field.annotation), entry_of(field.annotation)
        if section is not None:
            yield from leaves(section, below, here)
        elif entry is not None:
            for block, content in below.items():
                yield from leaves(entry, content if isinstance(content, Mapping) else {}, (*here, block))
        else:
            yield Leaf(here, kinds_of(field.annotation))


def value_at(values: Mapping[str, Any], path: KeyPath, absent: Any = None) -> Any:
    """The value at `path`, `absent` where there is none."""
    found: Any = values
    for part in path:
        found = found.get(part, absent) if isinstance(found, Mapping) else absent
    return found


def without(values: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
    """`values` without what stands at `path`, if anything does."""
    result = dict(values)
    below = result.get(str(path[0]))
    if len(path) == 1:
        result.pop(str(path[0]), None)
    elif isinstance(below, Mapping):
        result[str(path[0])] = without(below, path[1:])
    return result


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the keys of `over` over it, mapping by mapping."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(value, Mapping):
            result[key] = merged(below if isinstance(below, Mapping) else {}, value)
        else:
            result[key] = value
    return result


def merge_patched(target: Any, patch: Any) -> Any:
    """`target` changed by a JSON merge patch (RFC 7396, section 2): null removes a key, lists are replaced whole."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patched(result.get(key), value)
    return result


def tree_of(path: KeyPath, value: Any) -> Any:
    """Nested mappings that hold `value` at `path` and nothing else."""
    return {path[0]: tree_of(path[1:], value)} if path else value


def flat(values: Mapping[str, Any], path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value that is no mapping, with the path that leads to it."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, (*path, key))
        else:
            yield (*path, key), value


def covers(pattern: str, path: KeyPath) -> bool:
    """Whether a dotted pattern names the key at `path` or one above it; `*` stands for one part, such as a camera's
    name: `fields` covers fields.date_order, `cameras.*.max_fps` covers cameras.line1.max_fps."""
    parts = pattern.split(".")
    fits = (part in ("*", str(here)) for part, here in zip(parts, path, strict=False))
    return len(parts) <= len(path) and all(fits)


def filled(model: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with {} for a block that has a heading and nothing below it."""
    result = dict(values)
    for name, info in model.model_fields.items():
        section, entry = section_of(info.annotation), entry_of(info.annotation)
        if name not in result or (section is None and entry is None):
            continue
        below = {} if result[name] is None else result[name]
        if entry is not None and isinstance(below, Mapping):
            below = {block: {} if content is None else content for block, content in below.items()}
        result[name] = filled(section, below) if section is not None and isinstance(below, Mapping) else below
    return result


def near_keys(word: str, names: Iterable[str], at_most: int = 3) -> list[str]:
    """Names like `word`, or with a part like it (`fsp` -> `max_fps`), the nearest first."""
    by_part: dict[str, list[str]] = {}
    for name in names:
        parts = [part for part in name.split("_") if len(part) > 2 or part in _UNITS]
        for part in dict.fromkeys([name, *parts]):
            by_part.setdefault(part, []).append(name)
    near = difflib.get_close_matches(word.lower(), by_part, n=at_most, cutoff=0.6)
    return list(dict.fromkeys(name for part in near for name in by_part[part]))[:at_most]
