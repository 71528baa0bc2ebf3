"""Lattice: greedy text, margins against what a character could be, and pieces put together."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.errors import ModelError
from edge_agent.records import Lattice, Quad, TextBox, TextLine
from edge_agent.stages.lattice import (
    CERTAIN,
    NOTHING,
    Alphabet,
    Spelling,
    doubtful,
    joined,
    rivals_of,
    spaced,
    stripped,
)

CHARSET = ["", *"0O1Il7é", " "]
CODES = [0, 8, 1, 2, 3, 4, 5, 6]  # blank, space, 0, O, 1, I, l, 7: all but é
ALPHABET = Alphabet(CHARSET, CODES)


def logits(steps: list[dict[str, float]]) -> npt.NDArray[np.float64]:
    """Probabilities (T, classes) of steps that name those of some characters; the rest is spread evenly."""
    rows = np.zeros((len(steps), len(CHARSET)))
    for row, named in zip(rows, steps, strict=True):
        row[:] = (1 - sum(named.values())) / (len(CHARSET) - len(named))
        for character, p in named.items():
            row[CHARSET.index(character)] = p
    return rows


def outputs(
    steps: list[dict[str, float]],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """What the network gives for these probabilities: index, probability, code_margin."""
    p = logits(steps)
    best = p.max(axis=1)
    return (
        p.argmax(axis=1).astype(np.int32),
        best.astype(np.float32),
        (np.log(p[:, CODES]) - np.log(best)[:, None]).astype(np.float32),
    )


def test_repeats_are_merged_and_doubles_parted_by_a_blank_kept() -> None:
    index = np.array([0, 3, 3, 0, 3, 6, 0, 8, 8, 6], np.int32)
    probability = np.full(10, 0.8, np.float32)
    spelling = ALPHABET.spell(index, probability)
    assert (spelling.text, spelling.confidence) == ("117 7", pytest.approx(0.8))
    assert spelling.characters == () and spelling.lattice is None
    assert ALPHABET.spell(np.zeros(5, np.int32), np.ones(5, np.float32)) is NOTHING


def test_margin_is_against_the_likeliest_other_character() -> None:
    spelling = ALPHABET.spell(*outputs([{"O": 0.6, "7": 0.06, "0": 0.3}, {"": 0.9}, {"7": 0.8, "1": 0.1}]))
    assert spelling.text == "O7"
    o, seven = spelling.characters
    assert (o.text, o.rival) == ("O", "0")
    assert o.margin == pytest.approx(math.log(2), abs=1e-4)
    assert (seven.rival, seven.margin) == ("1", pytest.approx(math.log(8), abs=1e-4))
    assert o.probability == pytest.approx(0.6)


def test_same_letter_in_another_case_and_the_blank_are_no_rivals() -> None:
    steps = [{"I": 0.5, "": 0.4, "1": 0.05}, {"": 0.9}, {"l": 0.5, "I": 0.4}]
    capital, small = ALPHABET.spell(*outputs(steps)).characters
    assert (capital.text, capital.rival) == ("I", "1")
    assert (small.text, small.rival) == ("l", "I")  # i and l, not two cases of one
    both = Alphabet(["", *"cC0"], [0, 1, 2, 3])
    index, probability, margins = np.array([1], np.int32), np.array([0.6], np.float32), np.log([[0.01, 0.6, 0.3, 0.09]])
    (c,) = both.spell(index, probability, (margins - np.log(0.6)).astype(np.float32)).characters
    assert (c.rival, c.margin) == ("0", pytest.approx(math.log(0.6 / 0.09), abs=1e-4))


def test_rivals_of_a_character_are_all_that_are_near_it() -> None:
    spelling = ALPHABET.spell(*outputs([{"1": 0.5, "l": 0.2, "I": 0.2, "7": 0.04}, {"": 0.9}, {"0": 0.9}]))
    box = TextBox(Quad(np.array([[0, 0], [9, 0], [9, 9], [0, 9]], np.float32)), 1.0)
    line = TextLine(spelling.text, 0.9, box, (), spelling.characters, (0,), lattice=spelling.lattice)
    assert sorted(rivals_of(line, 0, 2.0)) == ["I", "l"]
    assert sorted(rivals_of(line, 0, 3.0)) == ["7", "I", "l"]
    assert rivals_of(line, 1, 1.0) == line.characters[1].rival
    assert rivals_of(replace(line, characters=(), lattice=None), 0, 3.0) == ""


def test_margin_is_taken_where_the_character_is_surest() -> None:
    spelling = ALPHABET.spell(*outputs([{"O": 0.5, "0": 0.4}, {"O": 0.9, "0": 0.03}, {"O": 0.6, "0": 0.3}]))
    (o,) = spelling.characters
    assert (o.probability, o.margin) == (pytest.approx(0.9), pytest.approx(math.log(30), abs=1e-3))
    assert spelling.confidence == pytest.approx(0.5)  # as before: of each character's first step


def test_character_outside_the_code_characters_has_a_rival_among_them() -> None:
    (letter,) = ALPHABET.spell(*outputs([{"é": 0.7, "l": 0.2}])).characters
    assert (letter.text, letter.rival) == ("é", "l")


def test_lattice_knows_the_steps_of_each_character() -> None:
    spelling = ALPHABET.spell(*outputs([{"": 0.9}, {"1": 0.9}, {"1": 0.8}, {"": 0.9}, {"1": 0.9}, {"é": 0.9}]))
    lattice = spelling.lattice
    assert lattice is not None and spelling.text == "11é"
    assert lattice.steps.tolist() == [[1, 3], [4, 5], [5, 6]]
    assert lattice.best == ("", "1", "1", "", "1", "é")
    assert lattice.alphabet == ("", " ", "0", "O", "1", "I", "l", "7")
    np.testing.assert_allclose(np.exp(lattice.log_p[1, 4]), 0.9, rtol=1e-5)
    np.testing.assert_allclose(np.exp(lattice.best_log_p), 0.9, atol=0.11)


def test_doubtful_are_those_below_the_bound() -> None:
    characters = ALPHABET.spell(*outputs([{"O": 0.5, "0": 0.4}, {"": 0.9}, {"1": 0.99}])).characters
    assert doubtful(characters, 2.0) == (0,)
    assert doubtful(characters, 0.0) == ()


def test_spaces_at_the_ends_go_with_their_characters_and_steps() -> None:
    spelling = stripped(ALPHABET.spell(*outputs([{" ": 0.9}, {"1": 0.9}, {" ": 0.9}, {"7": 0.9}, {" ": 0.9}])))
    assert spelling.text == "1 7" == "".join(character.text for character in spelling.characters)
    assert spelling.lattice is not None and spelling.lattice.steps.tolist() == [[1, 2], [2, 3], [3, 4]]


def test_space_that_is_put_in_has_no_steps_and_no_doubt() -> None:
    spelling = spaced(ALPHABET.spell(*outputs([{"1": 0.9}, {"": 0.9}, {"7": 0.9}])), [1])
    assert spelling.text == "1 7"
    assert [character.text for character in spelling.characters] == ["1", " ", "7"]
    assert spelling.characters[1].margin == CERTAIN
    assert spelling.lattice is not None and spelling.lattice.steps.tolist() == [[0, 1], [2, 2], [2, 3]]
    assert spaced(Spelling("17", 0.5), [1]).text == "1 7"


def test_pieces_of_a_line_become_one_and_equal_ends_stay_two() -> None:
    one, other = ALPHABET.spell(*outputs([{"1": 0.9}])), ALPHABET.spell(*outputs([{"1": 0.7}, {"7": 0.7}]))
    whole = joined([(one, False), (other, False)])
    assert (whole.text, whole.confidence) == ("117", pytest.approx((0.9 + 2 * 0.7) / 3))
    assert [character.text for character in whole.characters] == list("117")
    lattice = whole.lattice
    assert isinstance(lattice, Lattice)
    assert lattice.best == ("1", "", "1", "7") and lattice.steps.tolist() == [[0, 1], [2, 3], [3, 4]]
    assert joined([(one, False), (other, True)]).text == "1 17"
    assert joined([(NOTHING, False), (other, False)]).text == "17"
    assert joined([(NOTHING, False), (NOTHING, True)]).text.strip() == ""


def test_margins_of_another_charset_are_refused() -> None:
    index, probability, code_margin = outputs([{"1": 0.9}])
    with pytest.raises(ModelError, match="run edge-agent models fetch"):
        ALPHABET.spell(index, probability, code_margin[:, 1:])


def test_charset_without_a_blank_is_refused() -> None:
    with pytest.raises(ModelError, match="blank"):
        Alphabet(["a", "b"])
    with pytest.raises(ModelError, match="blank"):
        Alphabet(["", "b"], [1, 0])
