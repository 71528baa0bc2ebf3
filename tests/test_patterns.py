"""Patterns: masks and regular expressions, held against `re`, which reads the same subset."""

from __future__ import annotations

import random
import re
import time

import pytest

from edge_agent.errors import ConfigError
from edge_agent.patterns import MAX_CACHED, MAX_POSITIONS, Pattern


@pytest.mark.parametrize(
    ("mask", "fits", "does_not"),
    [
        ("L9999A", ["L4711B", "L0000Z"], ["L471B", "L4711b", "l4711B", "L4711BB", "", "L4711", "L47I1B"]),
        ("99/99/9999", ["12/08/2026"], ["12-08-2026", "1/8/2026"]),
        ("aaa-**", ["lot-4X", "lot-xx"], ["Lot-4X", "lot-4-", "lot-é4"]),
        ("??", ["é?", "\n ", "99"], ["9", "999"]),
        (r"\A9\9", ["A19", "A99"], ["B19", "A11"]),
        (r"\\9", ["\\4"], ["4", "\\\\4"]),
        ("LOT 9", ["LOT 4"], ["LOT4"]),
        ("/99", ["/12"], ["12"]),
        ("9", ["0", "9"], ["٣", "²", ""]),  # digits are those of ASCII, as they are printed on labels
    ],
)
def test_mask_takes_what_its_signs_stand_for(mask: str, fits: list[str], does_not: list[str]) -> None:
    pattern = Pattern.parse(mask)
    for text in fits:
        assert pattern.matches(text), text
    for text in does_not:
        assert not pattern.matches(text), text


@pytest.mark.parametrize(
    ("regex", "fits", "does_not"),
    [
        (r"/L[0-9]{4}[A-Z]?/", ["L4711", "L4711B"], ["L471", "L4711BB", "xL4711"]),
        (r"/^\d{2}\.\d{2}\.\d{4}$/", ["12.08.2026"], ["12x08.2026", "^12.08.2026$"]),
        (r"/(?:EXP|BB) ?[^0-9]*\d+/", ["EXP 1", "BB12", "BB x99"], ["EX 1", "EXP"]),
        (r"/a{2,}/", ["aa", "a" * 300], ["a", ""]),
        (r"/[-.\/]/", ["-", ".", "/"], ["\\", "x"]),
        (r"/[\]\\^]/", ["]", "\\", "^"], ["["]),
        (r"/a\$/", ["a$"], ["a"]),
        (r"/a\\$/", ["a\\"], ["a\\$"]),
        (r"/(|a)b/", ["b", "ab"], ["aab", ""]),
        ("/./", ["é", "\n"], ["", "ab"]),
    ],
)
def test_regex_between_slashes_takes_the_whole_text(regex: str, fits: list[str], does_not: list[str]) -> None:
    pattern = Pattern.parse(regex)
    for text in fits:
        assert pattern.matches(text), text
    for text in does_not:
        assert not pattern.matches(text), text


def made_regex(random_: random.Random, depth: int = 3) -> str:
    """A regular expression of the subset, over a, b, 1 and the minus sign."""
    kinds = ["literal", "class", "any", "escape"] + ["group", "sequence", "choice", "repeat"] * (depth > 0)
    kind = random_.choice(kinds)
    below = depth - 1
    if kind == "literal":
        return random_.choice(["a", "b", "1", "-"])
    if kind == "class":
        entries = random_.sample(["a", "b", "1", "0-9", "a-b", r"\d", r"\-", r"\]"], random_.randint(1, 3))
        return f"[{random_.choice(['', '^'])}{''.join(entries)}]"
    if kind == "any":
        return "."
    if kind == "escape":
        return random_.choice([r"\d", r"\w", r"\-", r"\."])
    if kind == "group":
        return random_.choice(["(", "(?:"]) + made_regex(random_, below) + ")"
    if kind == "sequence":
        return "".join(made_regex(random_, below) for _ in range(random_.randint(1, 3)))
    if kind == "choice":
        return f"({made_regex(random_, below)}|{made_regex(random_, below)})"
    repeats = ["*", "+", "?", "{2}", "{0,2}", "{1,3}", "{2,}"]
    return f"({made_regex(random_, below)}){random_.choice(repeats)}"


def test_regexes_agree_with_re_on_random_texts() -> None:
    random_ = random.Random(7)
    taken = 0
    for _ in range(700):
        regex = made_regex(random_)
        pattern = Pattern.parse(f"/{regex}/")
        reference = re.compile(regex, re.ASCII | re.DOTALL)
        for _ in range(25):
            text = "".join(random_.choice("ab1-]") for _ in range(random_.randint(0, 6)))
            expected = reference.fullmatch(text) is not None
            assert pattern.matches(text) is expected, (regex, text)
            taken += expected
    assert taken > 1000


def test_masks_agree_with_the_regex_they_stand_for() -> None:
    random_ = random.Random(11)
    stands_for = {"9": "[0-9]", "A": "[A-Z]", "a": "[a-z]", "*": "[0-9A-Za-z]", "?": ".", "L": "L", "-": "-"}
    for _ in range(300):
        mask = "".join(random_.choice(list(stands_for)) for _ in range(random_.randint(1, 4)))
        reference = re.compile("".join(stands_for[sign] for sign in mask), re.DOTALL)
        for _ in range(30):
            text = "".join(random_.choice("09AZazL-é") for _ in range(len(mask)))
            assert Pattern.parse(mask).matches(text) is (reference.fullmatch(text) is not None), (mask, text)


def test_steps_tell_at_once_that_no_text_goes_on_so() -> None:
    pattern = Pattern.parse("L99")
    after = pattern.step(pattern.start, "L")
    assert after is not None and not pattern.accepts(after)
    assert pattern.step(after, "O") is None
    assert pattern.step(pattern.start, "4") is None
    assert not pattern.accepts(pattern.start)


def test_alphabet_is_what_a_text_can_be_made_of() -> None:
    assert Pattern.parse("L99").alphabet == frozenset("L0123456789")
    assert Pattern.parse("/[A-C]x|,/").alphabet == frozenset("ABCx,")
    assert Pattern.parse("L?").alphabet is None
    assert Pattern.parse("/[^a]/").alphabet is None
    assert Pattern.parse("/[a-\uffff]/").alphabet is None


def test_pattern_is_its_text() -> None:
    assert Pattern.parse("L99") == Pattern.parse("L99") and hash(Pattern.parse("L99")) == hash(Pattern.parse("L99"))
    assert Pattern.parse("L99") != Pattern.parse("/L[0-9][0-9]/")
    assert str(Pattern.parse("L99")) == "L99"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has 0"),
        ("9" * 257, "has 257"),
        ("L99\\", "character 4: nothing follows the backslash"),
        ("//", "nothing between the slashes"),
        ("/^$/", "nothing between the slashes"),
        ("/L[0-9/", r"character 3, '\[', opens a class"),
        ("/L[0-9]{4}", "begins like a regular expression"),
        ("/[]/", r"character 2, '\[', opens a class that is empty"),
        ("/a(b/", r"character 3, '\(', opens a group that is not closed"),
        ("/ab)/", r"character 4, '\)', closes no group"),
        ("/*a/", r"character 2, '\*', has nothing before it"),
        ("/a**/", r"character 4, '\*', repeats a repetition"),
        ("/a+?/", r"character 4, '\?', repeats a repetition"),
        ("/a{3/", r"character 3, '\{', begins no count"),
        ("/a{65}/", "more than 64 times"),
        ("/a{3,2}/", "repeats no times"),
        ("/a{0}/", "repeats no times"),
        ("/[9-0]/", "character 3, '9', begins no range"),
        (r"/[\d-x]/", "begins no range"),
        (r"/\bL/", r"escapes nothing that is known"),
        (r"/(a)\1/", r"escapes nothing that is known"),
        ("/(?=a)/", r"begins a special group"),
        ("/a^b/", r"'\^', has no meaning here"),
        ("/(((a{64}){64}){64}){64}/", f"over {MAX_POSITIONS} characters"),
        ("/((((((){64}){64}){64}){64}){64}){64}/", f"over {MAX_POSITIONS} characters"),  # nothing, 64^6 times
        ("/" + "(" * 40 + "a" + ")" * 40 + "/", "more than 32 groups"),
    ],
)
def test_pattern_that_is_none_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Pattern.parse(text)


def test_what_makes_backtracking_explode_takes_no_longer_here() -> None:
    pattern = Pattern.parse("/(a|a|aa)*(a*)*b/")
    began = time.process_time()
    assert not pattern.matches("a" * 20_000)
    assert time.process_time() - began < 5  # some 0.01 s; with backtracking longer than the world will stand


def test_what_is_remembered_of_a_pattern_is_bounded() -> None:
    pattern = Pattern.parse("/.*(0|1).{12}/")
    random_ = random.Random(3)
    assert not pattern.matches("".join(random_.choice("01") for _ in range(20_000)) + "x" * 40)
    assert len(pattern._reached) <= MAX_CACHED
    for point in range(2 * MAX_CACHED):
        pattern.matches(chr(0x4E00 + point))
    assert len(pattern._taking) <= MAX_CACHED
