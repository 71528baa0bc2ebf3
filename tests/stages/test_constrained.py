"""Constrained decoding: against all texts of a pattern, one by one, and on lines that a real network reads."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from edge_agent.patterns import Pattern
from edge_agent.records import Correction, Lattice
from edge_agent.stages.constrained import corrections, decode, log_probability, span_steps

ALPHABET = ("", " ", "0", "O", "1", "I", "S", "5")


def lattice(seed: int, n_steps: int, sharpness: float = 2.0) -> Lattice:
    """Random steps, and the characters of the greedy text."""
    random = np.random.default_rng(seed)
    scores = random.normal(0, sharpness, (n_steps, len(ALPHABET)))
    log_p = (scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))).astype(np.float32)
    return of(log_p)


def of(log_p: np.ndarray) -> Lattice:
    best = log_p.argmax(axis=1)
    starts = [n for n in range(len(best)) if best[n] and (n == 0 or best[n] != best[n - 1])]
    ends = [next((m for m in range(n, len(best)) if best[m] != best[n]), len(best)) for n in starts]
    steps = np.array([starts, ends], np.int32).T.reshape(-1, 2)
    return Lattice(ALPHABET, log_p, tuple(ALPHABET[n] for n in best), log_p.max(axis=1), steps)


def probability_by_hand(made: Lattice, text: str) -> float:
    """Every path through the steps that says the text, one by one."""
    total = 0.0
    for path in itertools.product(range(len(ALPHABET)), repeat=len(made.best)):
        said = "".join(ALPHABET[n] for k, n in enumerate(path) if k == 0 or n != path[k - 1])
        if said == text:
            total += math.exp(sum(float(made.log_p[step, n]) for step, n in enumerate(path)))
    return total


@pytest.mark.parametrize("text", ["", "0", "00", "O0", "1S1"])
def test_probability_of_a_text_is_the_sum_over_its_alignments(text: str) -> None:
    made = lattice(3, 5, 1.0)
    assert math.exp(log_probability(made, 0, 5, text)) == pytest.approx(probability_by_hand(made, text), rel=1e-4)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("mask", ["99", "A9", "/[05]{1,3}/", "/(O|I)[0-9]?/", "/[01]*S?/"])
def test_text_is_the_likeliest_of_all_that_fit(seed: int, mask: str) -> None:
    made = lattice(seed, 6)
    if not len(made.steps):
        pytest.skip("nothing is read there")
    pattern = Pattern.parse(mask)
    texts = ["".join(t) for n in range(4) for t in itertools.product(ALPHABET[1:], repeat=n)]
    best = max((t for t in texts if pattern.matches(t)), key=lambda t: log_probability(made, 0, 6, t))
    found = decode(made, 0, len(made.steps), pattern)
    assert found is not None
    assert pattern.matches(found.text)
    assert found.log_probability >= log_probability(made, 0, 6, best) - 1e-4
    if len(found.text) < 4:
        assert found.text == best
        assert found.log_probability == pytest.approx(log_probability(made, 0, 6, best), abs=1e-4)


def sure(text: str, rivals: dict[int, tuple[str, float]]) -> Lattice:
    """A line read with certainty but for some characters, whose rival has the given probability."""
    log_p = np.full((2 * len(text) + 1, len(ALPHABET)), -14.0, np.float32)
    log_p[::2, 0] = 0.0
    for n, character in enumerate(text):
        rival, p = rivals.get(n, ("", 0.0))
        log_p[2 * n + 1, ALPHABET.index(character)] = math.log(1 - p) if rival else 0.0
        if rival:
            log_p[2 * n + 1, ALPHABET.index(rival)] = math.log(p)
    return of(log_p)


def test_letter_becomes_the_digit_that_the_pattern_wants_and_is_told_of() -> None:
    found = decode(sure("1O5S", {1: ("0", 0.2), 3: ("5", 0.01)}), 0, 4, Pattern.parse("9999"))
    assert found is not None
    assert (found.text, found.greedy_text) == ("1055", "1O5S")
    assert found.corrections == (Correction(1, "O", "0"), Correction(3, "S", "5"))
    assert found.log_probability == pytest.approx(math.log(0.2 * 0.01), abs=0.01)
    assert found.greedy_log_probability == pytest.approx(math.log(0.8 * 0.99), abs=0.01)


def test_text_that_fits_already_stays_as_it_is() -> None:
    found = decode(sure("O0", {0: ("0", 0.4)}), 0, 2, Pattern.parse("A9"))
    assert found is not None and (found.text, found.corrections) == ("O0", ())
    assert found.log_probability == found.greedy_log_probability


def test_span_is_decoded_on_its_own_steps() -> None:
    made = sure("IS O5", {3: ("0", 0.3)})
    found = decode(made, 3, 5, Pattern.parse("99"))
    assert found is not None and (found.text, found.greedy_text) == ("05", "O5")
    assert found.corrections == (Correction(0, "O", "0"),)  # counted from the span's beginning
    assert span_steps(made, 3, 5) == (6, 11) and span_steps(made, 0, 2) == (0, 5)


def test_nothing_is_made_up_where_no_text_of_the_pattern_can_be() -> None:
    assert decode(sure("15", {}), 0, 2, Pattern.parse("99999999")) is None
    assert decode(sure("15", {}), 0, 2, Pattern.parse("xx")) is None


def test_doubles_need_a_blank_between_them() -> None:
    log_p = np.full((3, len(ALPHABET)), -30.0, np.float32)
    log_p[:, ALPHABET.index("5")] = 0.0
    assert decode(of(log_p), 0, 1, Pattern.parse("55")) is None
    found = decode(of(log_p), 0, 1, Pattern.parse("/5+/"))
    assert found is not None and found.text == "5"


def test_likeliest_character_outside_the_alphabet_can_be_taken() -> None:
    made = sure("15", {})
    other = Lattice(made.alphabet, made.log_p, ("", "é", "", "5", ""), made.best_log_p, made.steps)
    found = decode(other, 0, 2, Pattern.parse("é5"))
    assert found is not None and found.text == "é5"


@pytest.mark.parametrize("span", [(0, 0), (-1, 1), (1, 3), (2, 1)])
def test_span_outside_the_line_is_refused(span: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="of a line of 2"):
        decode(sure("15", {}), *span, Pattern.parse("99"))


@pytest.mark.parametrize(
    ("seen", "taken", "expected"),
    [
        ("", "", ()),
        ("12", "12", ()),
        ("1O", "10", (Correction(1, "O", "0"),)),
        ("1.2", "12", (Correction(1, ".", ""),)),
        ("12", "1/2", (Correction(1, "", "/"),)),
        ("ab", "", (Correction(0, "a", ""), Correction(1, "b", ""))),
    ],
)
def test_corrections_are_the_fewest(seen: str, taken: str, expected: tuple[Correction, ...]) -> None:
    assert corrections(seen, taken) == expected
