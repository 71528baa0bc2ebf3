"""Patterns: what a text must look like, as an automaton that is walked one character at a time.

`Pattern.parse("L9999A")` reads a mask: 9 is a digit, A a capital letter, a a small letter, * a letter or digit, ? any
one character (letters and digits those of ASCII); a backslash takes the next character as it is, every other character
is itself. Between slashes stands a regular expression over the whole text, of a subset: `/L[0-9]{4}[A-Z]?/` with
classes, . \\d \\w \\s, groups, | ? * + {m} {m,} {m,n}. There is no backtracking: a step costs the same whatever came
before, and the positions of a pattern are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from edge_agent.errors import ConfigError

MAX_TEXT = 256  # characters of a pattern as it is written
MAX_POSITIONS = 512  # characters that a pattern takes at most, alternatives and repetitions written out
MAX_REPEAT = 64
MAX_DEPTH = 32  # of groups in groups
MAX_CACHED = 4096  # sets of positions, and characters, whose following ones are remembered
MAX_ALPHABET = 1024

State = int  # the positions that may have been reached, a bit each; START alone before the first character
START: State = 1


@dataclass(frozen=True)
class Characters:
    """A set of characters as ranges of code points, both ends in it; `negated`: those outside."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def __contains__(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) is not self.negated


DIGIT = Characters((("0", "9"),))
CAPITAL = Characters((("A", "Z"),))
SMALL = Characters((("a", "z"),))
LETTER_OR_DIGIT = Characters((("0", "9"), ("A", "Z"), ("a", "z")))
ANY = Characters((), negated=True)
MASK = {"9": DIGIT, "A": CAPITAL, "a": SMALL, "*": LETTER_OR_DIGIT, "?": ANY}
WORD = Characters((*LETTER_OR_DIGIT.ranges, ("_", "_")))
SPACE = Characters(((" ", " "), ("\t", "\r")))
REPEATING = ("*", "+", "?", "{")
ESCAPED_CLASSES = {"d": DIGIT, "w": WORD, "s": SPACE}


@dataclass(frozen=True)
class Repeat:
    """A part that comes `low` to `high` times, None: without end."""

    part: Part
    low: int
    high: int | None


@dataclass(frozen=True)
class Sequence:
    """Parts one after the other; none: the empty text."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Choice:
    """One of several parts."""

    parts: tuple[Part, ...]


Part = Characters | Repeat | Sequence | Choice


@dataclass(frozen=True)
class Pattern:
    """A pattern's automaton (Glushkov 1961: a state is the set of positions that may have been reached).

    Position 0 stands before the text. Of each position: what it takes, and as bits the positions that may follow.
    Equal where their texts are. Any thread may walk it.
    """

    text: str
    takes: tuple[Characters, ...] = field(compare=False, repr=False)
    follows: tuple[int, ...] = field(compare=False, repr=False)
    accepting: State = field(compare=False, repr=False)
    _reached: dict[State, State] = field(default_factory=dict, compare=False, repr=False)
    _taking: dict[str, State] = field(default_factory=dict, compare=False, repr=False)

    @staticmethod
    def parse(text: str) -> Pattern:
        """The pattern that a mask, or a regular expression between slashes, writes down.

        Raises ConfigError that says at which character it goes wrong.
        """
        if not text or len(text) > MAX_TEXT:
            raise ConfigError(f"a pattern has 1 to {MAX_TEXT} characters; this one has {len(text)}")
        is_regex = len(text) > 1 and text[0] == text[-1] == "/"
        if text[0] == "/" and not is_regex and any(sign in text for sign in "[({|"):
            raise ConfigError(
                f"pattern {text}: begins like a regular expression, with a slash, but does not end with one; "
                r"add it, or write \/ for the slash of a mask"
            )
        part = _Regex(text).whole() if is_regex else _mask(text)
        if size(part) > MAX_POSITIONS:
            raise ConfigError(f"pattern {text}: written out it is over {MAX_POSITIONS} characters; repeat less")
        automaton = _Automaton()
        joint = automaton.add(part)
        automaton.follows[0] = joint.first
        accepting = joint.last | (START if joint.may_be_empty else 0)
        return Pattern(text, tuple(automaton.takes), tuple(automaton.follows), accepting)

    @property
    def start(self) -> State:
        """The state before the first character."""
        return START

    def step(self, state: State, character: str) -> State | None:
        """The state after one more character; None where no text of the pattern goes on so."""
        following = self._following(state) & self._positions_taking(character)
        return following or None

    def accepts(self, state: State) -> bool:
        """Whether the text may end here."""
        return bool(state & self.accepting)

    def matches(self, text: str) -> bool:
        """Whether the whole text is one of the pattern's."""
        state: State | None = self.start
        for character in text:
            if state is None:
                return False
            state = self.step(state, character)
        return state is not None and self.accepts(state)

    @property
    def alphabet(self) -> frozenset[str] | None:
        """Every character that can be in a text of the pattern; None where that is (nearly) any."""
        ranges = {pair for taken in self.takes for pair in taken.ranges}
        count = sum(ord(high) - ord(low) + 1 for low, high in ranges)
        if any(taken.negated for taken in self.takes[1:]) or count > MAX_ALPHABET:
            return None
        return frozenset(chr(point) for low, high in ranges for point in range(ord(low), ord(high) + 1))

    def __str__(self) -> str:
        return self.text

    def _following(self, state: State) -> State:
        found = self._reached.get(state)
        if found is None:
            found = 0
            for position in _bits(state):
                found |= self.follows[position]
            if len(self._reached) >= MAX_CACHED:
                self._reached.clear()
            self._reached[state] = found
        return found

    def _positions_taking(self, character: str) -> State:
        found = self._taking.get(character)
        if found is None:
            found = sum(1 << position for position, taken in enumerate(self.takes) if position and character in taken)
            if len(self._taking) >= MAX_CACHED:
                self._taking.clear()
            self._taking[character] = found
        return found


def _bits(state: State) -> Iterator[int]:
    while state:
        lowest = state & -state
        yield lowest.bit_length() - 1
        state ^= lowest


def size(part: Part) -> int:
    """How many positions a part takes, repetitions written out; an empty one counts, for it is written out too."""
    if isinstance(part, Characters):
        return 1
    if isinstance(part, Repeat):
        return size(part.part) * max(part.low if part.high is None else part.high, 1)
    return max(1, sum(size(each) for each in part.parts))


@dataclass(frozen=True)
class _Joint:
    """How a part is joined to what is around it: the positions that it may begin and end with."""

    first: int
    last: int
    may_be_empty: bool


class _Automaton:
    """Positions as they are added; position 0 takes nothing."""

    def __init__(self) -> None:
        self.takes: list[Characters] = [Characters(())]
        self.follows: list[int] = [0]

    def add(self, part: Part) -> _Joint:
        if isinstance(part, Characters):
            self.takes.append(part)
            self.follows.append(0)
            position = 1 << (len(self.takes) - 1)
            return _Joint(position, position, False)
        if isinstance(part, Choice):
            joints = [self.add(each) for each in part.parts]
            first, last = 0, 0
            for joint in joints:
                first, last = first | joint.first, last | joint.last
            return _Joint(first, last, any(joint.may_be_empty for joint in joints))
        if isinstance(part, Sequence):
            return self._in_sequence([self.add(each) for each in part.parts])
        return self._repeated(part)

    def _repeated(self, repeat: Repeat) -> _Joint:
        count = max(repeat.low, 1) if repeat.high is None else repeat.high
        joints = [self.add(repeat.part) for _ in range(count)]
        if repeat.high is None:
            self._link(joints[-1], joints[-1])
        needed = [
            _Joint(joint.first, joint.last, joint.may_be_empty or n >= repeat.low) for n, joint in enumerate(joints)
        ]
        return self._in_sequence(needed)

    def _in_sequence(self, joints: list[_Joint]) -> _Joint:
        whole = _Joint(0, 0, True)
        for joint in joints:
            self._link(whole, joint)
            first = whole.first | (joint.first if whole.may_be_empty else 0)
            last = joint.last | (whole.last if joint.may_be_empty else 0)
            whole = _Joint(first, last, whole.may_be_empty and joint.may_be_empty)
        return whole

    def _link(self, before: _Joint, after: _Joint) -> None:
        for position in _bits(before.last):
            self.follows[position] |= after.first


def _mask(text: str) -> Sequence:
    parts: list[Part] = []
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
            if at == len(text):
                raise ConfigError(f"pattern {text}: character {at}: nothing follows the backslash")
            parts.append(_literal(text[at]))
        else:
            parts.append(MASK.get(text[at]) or _literal(text[at]))
        at += 1
    return Sequence(tuple(parts))


def _literal(character: str) -> Characters:
    return Characters(((character, character),))


class _Regex:
    """A regular expression between slashes, read from left to right; `at` is the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1
        self.end = len(text) - 1
        self.depth = 0

    def whole(self) -> Part:
        if self._next() == "^":
            self.at += 1
        if self.end - self.at > 0 and self.text[self.end - 1] == "$" and not self._is_escaped(self.end - 1):
            self.end -= 1
        if self.at == self.end:
            raise ConfigError(f"pattern {self.text}: there is nothing between the slashes")
        part = self._choice()
        if self.at < self.end:
            raise self._wrong("closes no group", r"write \) for the character itself")
        return part

    def _is_escaped(self, at: int) -> bool:
        before = self.text[:at]
        return (len(before) - len(before.rstrip("\\"))) % 2 == 1

    def _choice(self) -> Part:
        parts = [self._sequence()]
        while self._next() == "|":
            self.at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Part:
        parts: list[Part] = []
        while self._next() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        return Sequence(tuple(parts))

    def _atom(self) -> Part:
        character = self._next()
        if character == "(":
            return self._group()
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escape()
        if character in REPEATING:
            raise self._wrong("has nothing before it to repeat", f"write \\{character} for the character itself")
        if character in "}]^$":
            raise self._wrong("has no meaning here", f"write \\{character} for the character itself")
        self.at += 1
        return ANY if character == "." else _literal(character)

    def _group(self) -> Part:
        opened = self.at
        self.at += 1
        if self.text.startswith("?:", self.at):
            self.at += 2
        elif self._next() == "?":
            raise self._wrong("begins a special group", "only ( ) and (?: ) are known")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self._wrong(f"is in more than {MAX_DEPTH} groups", "write it simpler")
        part = self._choice()
        self.depth -= 1
        if self._next() != ")":
            self.at = opened
            raise self._wrong("opens a group that is not closed", "add )")
        self.at += 1
        return part

    def _escape(self) -> Characters:
        self.at += 1
        character = self._next()
        if character in ESCAPED_CLASSES:
            self.at += 1
            return ESCAPED_CLASSES[character]
        if character == "" or character.isalnum():
            self.at -= 1
            raise self._wrong("escapes nothing that is known", r"\d, \w, \s, or a sign such as \. or \/")
        self.at += 1
        return _literal(character)

    def _class(self) -> Characters:
        opened = self.at
        self.at += 1
        negated = self._next() == "^"
        self.at += negated
        ranges: list[tuple[str, str]] = []
        while self._next() not in ("]", ""):
            ranges += self._class_entry()
        if self._next() == "" or not ranges:
            self.at = opened
            raise self._wrong("opens a class that is empty or not closed", "write such as [A-Z0-9]")
        self.at += 1
        return Characters(tuple(ranges), negated)

    def _class_entry(self) -> list[tuple[str, str]]:
        began = self.at
        low = self._class_character()
        if self._next() != "-" or self.text[self.at + 1 : self.at + 2] in ("]", ""):
            return list(low.ranges)
        self.at += 1
        high = self._class_character()
        first, last = low.ranges[0][0], high.ranges[0][0]
        if {low, high} & set(ESCAPED_CLASSES.values()) or first > last:
            self.at = began
            raise self._wrong("begins no range of characters", "write such as A-Z")
        return [(first, last)]

    def _class_character(self) -> Characters:
        if self._next() == "\\":
            return self._escape()
        self.at += 1
        return _literal(self.text[self.at - 1])

    def _repeated(self, part: Part) -> Part:
        character = self._next()
        if character not in REPEATING:
            return part
        began = self.at
        if character == "{":
            low, high = self._counts()
        else:
            self.at += 1
            low, high = int(character == "+"), 1 if character == "?" else None
        if self._next() in REPEATING:
            raise self._wrong("repeats a repetition", "put the part in ( )")
        if high is not None and (high < low or high == 0):
            self.at = began
            raise self._wrong("repeats no times", "the second number is at least 1 and not below the first")
        return Repeat(part, low, high)

    def _counts(self) -> tuple[int, int | None]:
        match = re.compile(r"\{(\d{1,3})(?:(,)(\d{1,3})?)?\}", re.ASCII).match(self.text, self.at, self.end)
        if match is None:
            raise self._wrong("begins no count", r"write such as {4} or {2,6}, or \{ for the character itself")
        low = int(match[1])
        high = low if match[2] is None else None if match[3] is None else int(match[3])
        if max(low, high or 0) > MAX_REPEAT:
            raise self._wrong(f"repeats more than {MAX_REPEAT} times", "repeat less")
        self.at = match.end()
        return low, high

    def _next(self) -> str:
        return self.text[self.at] if self.at < self.end else ""

    def _wrong(self, what: str, instead: str) -> ConfigError:
        near = self.text[self.at : self.at + 1]
        return ConfigError(f"pattern {self.text}: character {self.at + 1}, {near!r}, {what}; {instead}")
