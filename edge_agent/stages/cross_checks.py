"""Cross-checks: what the fields of one label say about one another; above all, what a code says about the print.

A code proves itself by its checksum, a line of text by nothing. So both are told, and the print is measured against
the code: what agrees is settled (an ambiguous date is no longer so, but for one that contradicts the configured
order), what is plainly the code's content with characters taken for others is flagged `misread`, and where print and
code differ both say so (`contradicts_code`): a label whose print and code disagree is a fault that a line must see, not
smooth over.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from rapidfuzz.distance import Levenshtein

from edge_agent.records import DOUBTFUL, GLARE, ONE_OF_A_KIND, Field
from edge_agent.stages.code_fields import FROM_GS1, gtin_of
from edge_agent.stages.dates import same_date
from edge_agent.stages.label_date import MONTH
from edge_agent.stages.label_text import skeleton

CONTRADICTS_CODE = "contradicts_code"
MISREAD = "misread"
CONTRADICTS = "contradicts"
DOUBT_COST = 0.5  # of confidence
MISREAD_SHARE = 0.35  # of a number's digits: bar codes that differ in more are two codes
_DATES = ("expiry_date", "manufacture_date")
ORDER_CONFLICT = "order_conflict"
# a text whose own reading is in doubt does not speak against a code
_DOUBTED = frozenset(
    {"repaired", "incomplete", "unreadable", "invalid", "check_failed", "implausible", "cut", GLARE, MISREAD}
)


def with_codes(printed: Sequence[Field], coded: Sequence[Field]) -> list[Field]:
    """The fields of a label, those of its codes first. What no code says, a GS1 text in brackets does, read without
    doubt, against the other lines."""
    by_code = {field.name for field in coded}
    proofs = [f for f in printed if FROM_GS1 in f.flags and f.certain and f.name not in by_code]
    checked = [field if field in proofs else _measured(field, [*coded, *proofs]) for field in printed]
    against = {field.name for field in checked if CONTRADICTS_CODE in field.flags and not _DOUBTED & set(field.flags)}
    told = [_flagged(f, CONTRADICTS_CODE) if f.name in against and f in proofs else f for f in checked]
    return [*(_flagged(f, CONTRADICTS_CODE) if f.name in against else f for f in coded), *told]


def with_contradictions(fields: Sequence[Field]) -> list[Field]:
    """With exactly one expiry and one manufacture date, an expiry before the manufacture is told on them."""
    values = [{f.value for f in fields if f.name == name and f.value} for name in _DATES]
    if any(len(found) != 1 for found in values) or min(values[0]) >= min(values[1]):
        return list(fields)
    return [_flagged(f, CONTRADICTS) if f.name in _DATES and f.value else f for f in fields]


def _measured(printed: Field, proofs: Sequence[Field]) -> Field:
    """The printed field, settled or doubted by the codes' fields of its name."""
    rivals = [proof for proof in proofs if proof.name == printed.name]
    if (agreeing := next((proof for proof in rivals if _agrees(printed, proof)), None)) is not None:
        return _settled(printed, agreeing)
    if any(_misread(printed, proof) for proof in rivals):
        return _flagged(printed, MISREAD)
    if rivals and printed.value and printed.name in ONE_OF_A_KIND:
        return _flagged(printed, CONTRADICTS_CODE)
    return printed


def _agrees(printed: Field, proof: Field) -> bool:
    """Whether the print says what the code says, in one of its readings and in the precision it has."""
    if proof.name in _DATES:
        by_month = MONTH in printed.flags or MONTH in proof.flags
        values = (printed.value, *printed.alternatives)
        return any(value and same_date(value, proof.value, by_month=by_month) for value in values)
    if proof.name == "barcode_digits":
        number, both = gtin_of(printed.value), _in_both(printed.value, proof.value)
        if both:
            return all(one == two for one, two in both)
        return printed.value == proof.value or (number is not None and number == gtin_of(proof.value))
    return printed.value == proof.value


def _in_both(one: str, two: str) -> list[tuple[str, str]]:
    """What two GS1 element strings (`01=...;17=...`) say behind each identifier that both have."""
    ours, theirs = (dict(each.split("=", 1) for each in value.split(";") if "=" in each) for value in (one, two))
    return [(ours[ai], theirs[ai]) for ai in ours if ai in theirs]


def _settled(printed: Field, proof: Field) -> Field:
    """A date that could be read in two ways is the one that the code says, with `order_conflict` where the same numbers
    say it in another order than the configured one; characters that could be others are those that the code has, too.
    """
    settled = {DOUBTFUL} if _says_all_of(printed, proof) else set()
    if not printed.alternatives:
        return _without(printed, settled)
    first_read = printed.value and same_date(printed.value, proof.value, by_month=MONTH in printed.flags)
    found = replace(_without(printed, settled | {"ambiguous"}), value=proof.value, alternatives=())
    is_against_order = not first_read and _numbers(printed.value) == _numbers(proof.value)
    return _flagged(found, ORDER_CONFLICT) if is_against_order else found


def _numbers(day: str) -> list[str]:
    """Of a date its numbers of two digits, in no order: 27, 08 and 31."""
    return sorted(day[2:].split("-"))


def _says_all_of(printed: Field, proof: Field) -> bool:
    """Whether a code that agrees holds every character of the value: not the month alone of a day, nor the number alone
    of several GS1 elements."""
    if printed.name in _DATES:
        return MONTH in printed.flags or MONTH not in proof.flags
    return "=" not in printed.value or printed.value == proof.value


def _without(field: Field, flags: AbstractSet[str]) -> Field:
    return replace(field, flags=tuple(flag for flag in field.flags if flag not in flags))


def _misread(printed: Field, proof: Field) -> bool:
    """Whether the print is the code's content with characters taken for others.

    A GS1 text in brackets proves its number, by the check digit, but no lot: it may be the one that is misread.
    """
    if proof.name == "barcode_digits":
        return _misread_number(printed, proof)
    alike = skeleton(printed.value).chars == skeleton(proof.value).chars
    return proof.name not in _DATES and proof.source == "barcode" and alike


def _misread_number(printed: Field, proof: Field) -> bool:
    both = _in_both(printed.value, proof.value)
    number, own = gtin_of(proof.value), gtin_of(printed.value)
    if not both:
        if number is not None and own is not None and printed.certain and number[1:13] == own[1:13]:
            return False  # the number of the case that holds this product, or of the product in it
        wanted = number[-len(printed.value) :] if number is not None and printed.value.isdigit() else proof.value
        both = [(printed.value, wanted)]
    return all(Levenshtein.distance(one, two) <= MISREAD_SHARE * len(two) for one, two in both)


def _flagged(field: Field, flag: str) -> Field:
    if flag in field.flags:
        return field
    return replace(field, flags=(*field.flags, flag), confidence=field.confidence * DOUBT_COST)
