"""Votes: several readings of one line, or of one field, become one, character by character.

The readings are aligned to the one that is most like all of them, then each place is decided by weight (recogniser
output voting: Fiscus 1997, ROVER); what a reading weighs is how likely it holds its characters to be.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

from edge_agent.records import Field, TextLine, Vote

DOUBT_WEIGHT = 0.3  # of a field that is not certain
DISPUTED_SHARE = 0.6  # a character with less of the weight is not believed
DISPUTED = "disputed"

Weights = defaultdict[str, float]  # of each text, what speaks for it


@dataclass(frozen=True)
class Ballot:
    """One reading's say: `weights` stand for the characters of `text`; `weight` is for what it does not have."""

    text: str
    weights: tuple[float, ...]
    weight: float


def ballot_of(line: TextLine) -> Ballot:
    """What a line says, weighed by its characters' probabilities, or by its confidence where it has none."""
    if line.characters:
        return Ballot(line.text, tuple(each.probability for each in line.characters), line.confidence)
    return Ballot(line.text, (line.confidence,) * len(line.text), line.confidence)


def vote(ballots: Sequence[Ballot]) -> tuple[str, tuple[Vote, ...]]:
    """The text that they come to, and how they stand to each of its characters; at least one ballot."""
    ballots = _merged(ballots)
    pivot = _most_like_all(ballots)
    places = [Weights(float) for _ in pivot]
    gaps: dict[int, Weights] = defaultdict(lambda: Weights(float))  # before which place something more was read
    for ballot in ballots:
        _count(ballot, pivot, places, gaps)
    whole = sum(ballot.weight for ballot in ballots) or 1.0
    text, votes = "", []
    for at in range(len(pivot) + 1):
        more, weight = max(gaps[at].items(), key=lambda item: item[1], default=("", 0.0)) if at in gaps else ("", 0.0)
        if weight > whole / 2:
            text += more
            votes += [Vote(character, min(1.0, weight / whole), "") for character in more]
        if at < len(pivot):
            character, decided = _decided(places[at])
            text += character
            votes += [decided] if character else []
    return text, tuple(votes)


def vote_line(lines: Sequence[TextLine]) -> tuple[TextLine, tuple[Vote, ...]]:
    """The surest of the lines, with the text that all come to; doubtful are the characters that most lines of this
    text doubt, and those that are disputed."""
    text, votes = vote([ballot_of(line) for line in lines])
    best = max(lines, key=lambda line: (line.text == text, line.confidence))
    same = [line for line in lines if line.text == text]
    doubted = Counter(at for line in same for at in line.doubtful)
    doubtful = {at for at, count in doubted.items() if stays_in_doubt(count, len(same))}
    doubtful |= {at for at, each in enumerate(votes) if each.share < DISPUTED_SHARE}
    best = replace(best, doubtful=tuple(sorted(doubtful)))
    return (best if same else replace(best, text=text, characters=(), lattice=None)), votes


def vote_field(fields: Sequence[Field]) -> tuple[Field, float]:
    """The surest of the fields that have the value most like all of them, and the share of the weight that has it.

    It is certain where most of its readings have it for certain, and no character of it is disputed, which is flagged.
    """
    weighed = [(each, each.confidence * (1.0 if each.certain else DOUBT_WEIGHT)) for each in fields]
    ballots = [Ballot(each.value, (weight,) * len(each.value), weight) for each, weight in weighed]
    value = _most_like_all(ballots)
    holders = [each for each in fields if each.value == value]
    in_doubt = stays_in_doubt(sum(not each.certain for each in holders), len(holders))
    best = max(holders, key=lambda each: (each.certain is not in_doubt, each.confidence))
    whole = sum(weight for _, weight in weighed)
    share = sum(weight for each, weight in weighed if each.value == value) / whole if whole else 1.0
    text, votes = vote(ballots)
    if text != value or any(each.share < DISPUTED_SHARE for each in votes):
        flags = dict.fromkeys([*best.flags, DISPUTED])
        return replace(best, flags=tuple(flags)), share
    return best, share


def stays_in_doubt(doubting: int, readings: int) -> bool:
    """Whether what so many of the readings doubt does: unless most see it clearly. The more often a scene that stands
    still is read, the surer some reading sees it clearly by chance; the usual reading gets no clearer."""
    return 2 * doubting >= readings > 0


def _merged(ballots: Sequence[Ballot]) -> list[Ballot]:
    """Those that say the same as one: what is read mostly is."""
    by_text: dict[str, list[Ballot]] = {}
    for ballot in ballots:
        by_text.setdefault(ballot.text, []).append(ballot)
    return [
        Ballot(text, tuple(map(sum, zip(*(one.weights for one in same), strict=True))), sum(one.weight for one in same))
        for text, same in by_text.items()
    ]


def _most_like_all(ballots: Sequence[Ballot]) -> str:
    """The text among those given that is nearest to all of them by weight (the set median)."""
    weights = Weights(float)
    for ballot in ballots:
        weights[ballot.text] += ballot.weight
    if len(weights) == 1:
        return ballots[0].text
    return max(weights, key=lambda text: sum(weight * fuzz.ratio(text, other) for other, weight in weights.items()))


def _count(ballot: Ballot, pivot: str, places: list[Weights], gaps: dict[int, Weights]) -> None:
    """Adds one ballot to the places of the pivot that it stands for."""
    for step in Levenshtein.opcodes(pivot, ballot.text):
        if step.tag == "insert":
            weight = sum(ballot.weights[step.dest_start : step.dest_end]) / (step.dest_end - step.dest_start)
            gaps[step.src_start][ballot.text[step.dest_start : step.dest_end]] += weight
        elif step.tag == "delete":
            for at in range(step.src_start, step.src_end):
                places[at][""] += ballot.weight
        else:
            for at, there in zip(
                range(step.src_start, step.src_end), range(step.dest_start, step.dest_end), strict=True
            ):
                places[at][ballot.text[there]] += ballot.weights[there]


def _decided(place: Weights) -> tuple[str, Vote]:
    (character, weight), *others = sorted(place.items(), key=lambda entry: -entry[1])
    whole = sum(place.values()) or 1.0
    return character, Vote(character, weight / whole, others[0][0] if others else "")
