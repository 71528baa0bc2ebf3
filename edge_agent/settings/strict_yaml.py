"""Strict YAML: plain values, or a refusal that names file, line, key and cure.

YAML 1.1 turns some words and numbers into something else than they look like (`NO`, `0012`, `22:00`, `2026-01-01`),
drops the first of two equal keys, and lets a few bytes of aliases grow into gigabytes. All of that is refused here;
what remains is text, whole numbers, finite numbers, true, false, null, lists and mappings with text keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from edge_agent.errors import ConfigError
from edge_agent.settings.plain_scalar import Trap, plain_scalar
from edge_agent.settings.problems import KeyPath, Problem, kind_of, listed, shown, shown_key
from edge_agent.settings.strict_text import CONTROL, MAX_BYTES, MAX_DEPTH, Refused, check_characters, decoded

MAX_ALIASES = 32
MAX_NODES = 20_000  # values after aliases are followed
_TEXT_AS_KEYS = frozenset({"<<", "y"})  # y beside x: no reader of YAML 1.1 in use takes that key for a boolean


@dataclass(frozen=True)
class Document:
    """What a YAML text says: `values`, the line of each key, and the `problems`, whose keys are left out of `values`.

    A list keeps its length: None stands for an item with a problem.
    """

    origin: str
    values: dict[str, Any]
    lines: Mapping[KeyPath, int]
    problems: tuple[Problem, ...]


def parse(
    raw: bytes,
    origin: str,
    max_bytes: int = MAX_BYTES,
    max_aliases: int = MAX_ALIASES,
    max_depth: int = MAX_DEPTH,
) -> dict[str, Any]:
    """The mapping that the YAML text `raw` holds; {} for an empty one.

    `origin` names the text in messages. Raises ConfigError with one line for each problem, `origin:line: key: why`.
    """
    document = parse_document(raw, origin, max_bytes, max_aliases, max_depth)
    if document.problems:
        raise ConfigError(listed(origin, document.problems))
    return document.values


def parse_document(
    raw: bytes,
    origin: str,
    max_bytes: int = MAX_BYTES,
    max_aliases: int = MAX_ALIASES,
    max_depth: int = MAX_DEPTH,
) -> Document:
    """Like `parse`, but keeps the keys' lines and reports what is wrong with single values instead of raising.

    Raises ConfigError only where no document can be made: encoding, syntax, caps, no mapping at the top.
    """
    try:
        text = decoded(raw, max_bytes)
        check_characters(text)
        node = _composed(text, max_aliases, max_depth)
        builder = _Builder(max_depth)
        values = {} if node is None else builder.mapping(node, ())
    except Refused as exc:
        raise ConfigError(listed(origin, [exc.problem])) from None
    return Document(origin, values, builder.lines, tuple(builder.problems))


def dump(values: Mapping[str, Any]) -> str:
    """`values` as YAML that `parse` reads back the same: what would be read as something else is in quotes."""
    return yaml.dump(dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)


class _Loader(yaml.SafeLoader):
    """Composes nodes and stops at the caps; nothing is ever constructed by it."""

    def __init__(self, text: str, max_aliases: int, max_depth: int) -> None:
        super().__init__(text)
        self._aliases_left, self._max_aliases = max_aliases, max_aliases
        self._max_depth = max_depth
        self._depth = 0
        self._open_anchors: set[str] = set()

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            self._count_alias(event, line)
            return super().compose_node(parent, index)
        if event.tag is not None:
            raise Refused(line, "tags (!...) are not allowed; text that begins with ! must be in quotes")
        if self._depth >= self._max_depth:
            raise Refused(line, f"is nested deeper than {self._max_depth} levels")
        self._depth += 1
        anchor = event.anchor
        if anchor is not None:
            self._open_anchors.add(anchor)
        node = super().compose_node(parent, index)
        self._open_anchors.discard(anchor)
        self._depth -= 1
        if anchor is not None and isinstance(node, yaml.ScalarNode) and node.value == "" and node.style is None:
            raise Refused(line, "an anchor (&) without a value; text that begins with & must be in quotes")
        return node

    def _count_alias(self, event: yaml.AliasEvent, line: int) -> None:
        if event.anchor in self._open_anchors:
            raise Refused(line, "an alias (*) stands inside what it refers to; write the values out")
        self._aliases_left -= 1
        if self._aliases_left < 0:
            raise Refused(line, f"more than {self._max_aliases} aliases (*); write the values out")


# what PyYAML says -> what it means to the one who edits; its words may repeat a value, ours do not
_SYNTAX = (
    (r"'\\t'", "a tab where YAML wants spaces; replace tabs by spaces"),
    (r"character '(?P<it>.)' that cannot start", "text that begins with {it} must be in quotes"),
    (r"found undefined alias", "an alias (*) without its anchor (&); text that begins with * must be in quotes"),
    (
        r"found duplicate anchor|second occurrence",
        "an anchor (&) is defined twice; text that begins with & must be in quotes",
    ),
    (r"alphabetic or numeric character", "a bare * or &; text that begins with it must be in quotes"),
    (r"mapping values are not allowed", "a colon where none can be; check the indentation, or put the text in quotes"),
    (r"could not find expected ':'", "a key without a colon; write `key: value`"),
    (r"expected <block end>", "the indentation, or the key or list mark, does not fit the lines above"),
    (r"expected ',' or '[\]}]'", "a list [...] or mapping {{...}} is not closed; check commas and brackets"),
    (r"expected the node content", "something is missing before this; check commas and brackets"),
    (r"unexpected end of stream", "quotes that are opened and not closed"),
    (r"unexpected document separator", "quotes that are opened and not closed"),
    (r"escape (character|sequence)|hexdecimal", "an unknown escape \\ in double quotes; use single quotes, or \\\\"),
    (r"expected '<document start>'", "something stands behind the end; expected one document of `key: value` lines"),
    (r"tag", "tags (!...) are not allowed; text that begins with ! must be in quotes"),
    (r"directive|YAML document", "a directive (%...) that is not understood; remove the line"),
    (r"sequence entries are not allowed", "a list mark (-) where none can be; check the indentation"),
    (r"mapping keys are not allowed", "a ? where none can be; text that begins with ? must be in quotes"),
    (r"block scalar|indentation indicator|chomping", "a | or > that is not understood; put the text in quotes"),
)


def _composed(text: str, max_aliases: int, max_depth: int) -> yaml.MappingNode | None:
    """The node at the top; None for an empty text."""
    loader = _Loader(text, max_aliases, max_depth)
    try:
        node = loader.get_node() if loader.check_node() else None
        if loader.check_event(yaml.DocumentStartEvent):
            line = loader.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
            raise Refused(line, "a second document (---) begins; expected one only")
    except yaml.MarkedYAMLError as exc:
        raise _syntax_refused(exc) from None
    except (ValueError, OverflowError):  # chr() of an escape such as \U00110000, int() of a directive's digits
        line = loader.line + 1
        raise Refused(line, "an escape or number that YAML cannot take; use single quotes, or \\\\") from None
    finally:
        loader.dispose()
    if isinstance(node, yaml.MappingNode):
        return node
    if node is None or (isinstance(node, yaml.ScalarNode) and node.value == "" and node.style is None):
        return None
    kind = "a list" if isinstance(node, yaml.SequenceNode) else "a single value"
    raise Refused(node.start_mark.line + 1, f"the top is {kind}; expected `key: value` lines")


def _syntax_refused(exc: yaml.MarkedYAMLError) -> Refused:
    mark = exc.problem_mark or exc.context_mark
    line = mark.line + 1 if mark is not None else 0
    said = f"{exc.problem or ''} {exc.context or ''}"
    for pattern, meaning in _SYNTAX:
        match = re.search(pattern, said)
        if match:
            return Refused(line, "is not YAML: " + meaning.format(**match.groupdict()))
    return Refused(line, "is not YAML; check quotes, colons and indentation")


@dataclass
class _Builder:
    """Turns nodes into values, following aliases; notes every key's line and what is wrong with single values."""

    max_depth: int
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    nodes_left: int = MAX_NODES

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        """The node's value. Raises Trap for a scalar that is refused."""
        self._count(node, path)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._item(item, (*path, index)) for index, item in enumerate(node.value)]
        if CONTROL.search(node.value):
            raise Trap("holds a control character; remove it")
        plain = isinstance(node, yaml.ScalarNode) and node.style is None
        return plain_scalar(node.value, node.tag) if plain else node.value

    def mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        """The mapping's own keys over those that it merges (<<)."""
        own: dict[str, yaml.Node] = {}
        first_line: dict[str, int] = {}
        merges: list[yaml.Node] = []
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = self._key(key_node, path)
            if key is None:
                continue
            if key in first_line:
                text = f"is here a second time; first on line {first_line[key]}: keep one of them"
                self.problems.append(Problem(line, (*path, key), text))
            elif key == "<<" and key_node.style is None:
                first_line[key] = line
                merges.append(value_node)
            else:
                first_line[key] = line
                own[key] = value_node
        values = self._merged(merges, path)
        for key, value_node in own.items():
            here = (*path, key)
            self.lines[here] = first_line[key]
            try:
                values[key] = self.value(value_node, here)
            except Trap as trap:
                values.pop(key, None)
                self._note(value_node, here, trap)
        return values

    def _merged(self, merges: list[yaml.Node], path: KeyPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        sources = [s for m in merges for s in (m.value if isinstance(m, yaml.SequenceNode) else [m])]
        for source in reversed(sources):  # the first one named wins
            self._count(source, path)
            if isinstance(source, yaml.MappingNode):
                values.update(self.mapping(source, path))
            else:
                text = "<< takes a mapping, or a list of mappings, by alias (*)"
                self.problems.append(Problem(source.start_mark.line + 1, path, text))
        return values

    def _item(self, node: yaml.Node, path: KeyPath) -> Any:
        self.lines[path] = node.start_mark.line + 1
        try:
            return self.value(node, path)
        except Trap as trap:
            self._note(node, path, trap)
            return None

    def _key(self, node: yaml.Node, path: KeyPath) -> str | None:
        line = node.start_mark.line + 1
        if not isinstance(node, yaml.ScalarNode):
            self.problems.append(Problem(line, path, "a list or mapping cannot be a key; expected text"))
            return None
        text: str = node.value
        if CONTROL.search(text):
            self.problems.append(Problem(line, path, "a key holds a control character; remove it"))
            return None
        if node.style is not None or text in _TEXT_AS_KEYS:
            return text
        try:
            value = plain_scalar(text, node.tag)
        except Trap as trap:
            self.problems.append(Problem(line, (*path, text), f"the key {shown_key(text)} {trap}"))
            return None
        if isinstance(value, str):
            return value
        what = (
            f"the key {shown_key(text)} is {kind_of(value)}, not text; put it in quotes" if text else "a key is missing"
        )
        self.problems.append(Problem(line, (*path, text), what))
        return None

    def _note(self, node: yaml.Node, path: KeyPath, trap: Trap) -> None:
        self.problems.append(Problem(node.start_mark.line + 1, path, f"{shown(path, node.value)} {trap}"))

    def _count(self, node: yaml.Node, path: KeyPath) -> None:
        line = node.start_mark.line + 1
        if len(path) > self.max_depth:
            raise Refused(line, f"is nested deeper than {self.max_depth} levels")
        self.nodes_left -= 1
        if self.nodes_left < 0:
            raise Refused(line, f"holds more than {MAX_NODES} values once aliases (*) are followed; write fewer")


class _Dumper(yaml.SafeDumper):
    """Puts in quotes what `parse` would not read back as the same text; writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    tag = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    try:
        style = None if plain_scalar(text, tag) == text else '"'
    except Trap:
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text_node)
