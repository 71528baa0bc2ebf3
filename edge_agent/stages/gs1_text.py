"""Gs1Text: GS1 elements in print, each behind its application identifier in brackets: `(01)09506000134352(10)AB12`.

What brackets hold is an identifier only where its content shows it: `(10) tablets` and `Tel (11) 2345-6789` have none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from edge_agent.stages.dates import DIGIT_OF
from edge_agent.stages.gs1 import Form, elements_of, form_of
from edge_agent.stages.quantities import only_quantity

_DIGIT = "[0-9OoDQIlZASGTB]"
_HEAD = re.compile(  # with a digit that was read as one: not (ID) or (IT); the bracket behind may be lost: (17271130
    rf"[({{\[]\s?(?=[A-Za-z\s]{{0,6}}[0-9])({_DIGIT}(?:\s?{_DIGIT}){{1,3}})"
    r"(?:\s?[)}\]]|(?<=[({\[]1[1-7])(?=[0-9]{6}(?![0-9)}\]])))"
)
_TOKEN = re.compile(r"[^\s()]+")
_NUMBERED = frozenset({"00", "01", "02"})  # a check digit proves them
_CODED = frozenset({"10", "21"})
_COUNTED = frozenset({"30", "37"})
MIN_NUMBER_DIGITS = 10  # of a number that fails its check digit and is still meant as one


@dataclass(frozen=True)
class Gs1Printed:
    """`content` behind identifier `ai`, as it is meant; `flags` say what is wrong with it."""

    ai: str
    content: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gs1Text:
    """GS1 elements in their order, at `text[start:end]`."""

    elements: tuple[Gs1Printed, ...]
    start: int
    end: int

    @property
    def value(self) -> str:
        """`01=09506000134352;17=270831`."""
        return ";".join(f"{one.ai}={one.content}" for one in self.elements)

    @property
    def flags(self) -> tuple[str, ...]:
        """What is wrong with any of them."""
        return tuple(dict.fromkeys(flag for one in self.elements for flag in one.flags))


def find_gs1(text: str, *, keyed: bool = False) -> Gs1Text | None:
    """The GS1 text in a clean text, None where there is none. `keyed`: it stands behind a phrase such as LOT.

    Brackets and digits that OCR bent are mended and flagged `repaired`, a content that cannot be is `check_failed`, one
    behind which more stands `incomplete`.
    """
    heads = [head for head in _HEAD.finditer(text) if form_of(_identifier(head)) is not None]
    if not heads:
        return None
    elements: list[Gs1Printed] = []
    end = heads[0].start()
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        element, length = _element(head, text[head.end() : following.start() if following else len(text)])
        if not element.content:
            break
        elements.append(element)
        end = head.end() + length
    glued = keyed or not text[heads[0].end() : heads[0].end() + 1].isspace()
    if not _is_gs1(elements, glued=glued, words_before=any(map(str.isalnum, text[: heads[0].start()]))):
        return None
    return Gs1Text(tuple(elements), heads[0].start(), end)


def _is_gs1(elements: list[Gs1Printed], *, glued: bool, words_before: bool) -> bool:
    """Whether the contents show that the brackets hold identifiers."""
    if not elements:
        return False
    if len(elements) > 1:
        return any(map(_has_a_number, elements)) or all(any(map(str.isdigit, one.content)) for one in elements)
    (one,) = elements
    sound, digits = "check_failed" not in one.flags, sum(map(str.isdigit, one.content))
    if one.ai in _NUMBERED:
        return sound or (_has_a_number(one) and not words_before)
    if words_before:
        return False
    if one.ai in _CODED:
        return glued and digits > 0
    form = form_of(one.ai)
    if form is None or not form.exact:
        return one.ai in _COUNTED and glued and digits > 0
    return len(one.content) == form.length and (sound or glued)


def _has_a_number(one: Gs1Printed) -> bool:
    return one.ai in _NUMBERED and sum(map(str.isdigit, one.content)) >= MIN_NUMBER_DIGITS


def _identifier(head: re.Match[str]) -> str:
    return head[1].replace(" ", "").translate(DIGIT_OF)


def _element(head: re.Match[str], seen: str) -> tuple[Gs1Printed, int]:
    """The element behind a head, and how much of what was seen is its content."""
    ai = _identifier(head)
    form = form_of(ai)
    assert form is not None
    length = _length(form, seen)
    bare = re.sub(r"[ -]" if form.digits else r"\s", "", seen[:length])
    content = bare.translate(DIGIT_OF) if form.digits else bare
    flags = []
    if content != bare or ai != head[1] or head[0][0] != "(" or not head[0].endswith(")"):
        flags.append("repaired")
    split = elements_of(ai + content)
    if split is None or [(one.ai, one.content, one.sound) for one in split] != [(ai, content, True)]:
        flags.append("check_failed")  # such as a month 13, a digit too many, or an identifier that was read wrong
    rest = seen[length:]
    amount = only_quantity(rest)
    if any(map(str.isdigit, rest)) and (amount is None or amount.flags):
        flags.append("incomplete")  # which may be a lost piece of it
    return Gs1Printed(ai, content, tuple(flags)), length


def _length(form: Form, seen: str) -> int:
    """How much of a text behind an identifier is its content: as many digits as it has, else up to the first space;
    what touches it belongs to it, so that a digit too many is noticed."""
    at = len(seen) - len(seen.lstrip())
    wanted = form.length if form.exact else 0
    while at < len(seen) and wanted and (seen[at].isalnum() or seen[at] in " -"):
        wanted -= seen[at].isalnum()
        at += 1
    token = _TOKEN.match(seen, at)
    end = at if token is None else token.end()
    return len(seen[:end].rstrip(" ,;:-"))
