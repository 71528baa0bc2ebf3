"""FieldExtractor: from text lines to fields.

Lines are cut at key phrases (`LOT A123 EXP 08/2026` -> two segments); rules read each segment's value and check
it; a key without a value looks to its right and below; lines that no rule settles go to the encoder in one batch,
which names them by the nearest prototypes, and to the plant's own tagger where there is one. Rules alone give values;
the models give only names. Values are then held against their field's mask, against the codes that were decoded, and
product names against the catalogue.

Fields: expiry_date, manufacture_date, lot, serial_number, weight_volume, barcode_digits, contact, product_name,
ingredients, warning, address, and `date` for a date that nothing names. Flags that mean doubt:

    ambiguous        can be read in two ways; `Field.alternatives` has the other
    incomplete       beside the date stands something that may be a lost piece of it
    year_precision   a year alone
    order_conflict   a date that fits only the order that was not configured
    repaired         a digit or unit was read as another character and mended
    invalid          a date that does not exist, such as 31/02; no value
    unreadable       a key with digits behind it that make no value; no value
    implausible      a date far from today; clock_untrusted: this could not be judged
    check_failed     a check digit, a length or an address ending is wrong
    no_key           nothing on the label says what this date is
    key_inferred     the name comes from the encoder, or from a letter or a piece of a key phrase
    contradicts      expiry before manufacture
    contradicts_code print and code differ; misread: the print is the code's content, characters taken for others
    pattern_mismatch does not fit the field's mask, nor can the print be read so that it does
    not_in_catalogue no product of the catalogue is called so
    degraded         the encoder is out of order: lines that need it were not named
    no_digits        a serial or lot of letters alone
    unit_assumed     a count without a unit, taken as pieces
    truncated        the line was too long, its middle was not read
    doubtful         a character of the value could be another, and nothing settles which it is
    cut, ...         flags of the lines themselves

and that inform: month_precision (the printed date has no day: an expiry then holds to the last day of its month,
`2027-08-31`; a manufacture date keeps its printed precision, `2027-08`), from_gs1 (from a bracketed GS1 text),
from_catalogue.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from itertools import chain

from edge_agent.clock import NOT_BEFORE_UNIX_S
from edge_agent.errors import EngineError, in_one_line
from edge_agent.patterns import Pattern
from edge_agent.records import Code, Field, TextBox, TextLine
from edge_agent.settings.fields import FieldsConfig
from edge_agent.stages.catalogue import Catalogue
from edge_agent.stages.code_fields import fields_of_codes
from edge_agent.stages.cross_checks import with_codes, with_contradictions
from edge_agent.stages.doubts import USUAL_MARGIN, tell_doubts
from edge_agent.stages.field_table import FieldTable, field_table
from edge_agent.stages.field_values import (
    LEAST_DIGITS,
    UNNAMED_DATE,
    Kind,
    ReadRules,
    Value,
    gist,
    read_value,
    readings,
    text_value,
)
from edge_agent.stages.found_values import Found, Label, bare_lots, read_label
from edge_agent.stages.kept_prototypes import KeptPrototypes
from edge_agent.stages.label_date import DateRules
from edge_agent.stages.lexicon import LEXICON, OTHER
from edge_agent.stages.line_shape import is_at_house, may_be_address, names_town
from edge_agent.stages.masks import fit_to_masks
from edge_agent.stages.nearest import Candidates, Nearest, NearestPrototypes
from edge_agent.stages.products import with_products
from edge_agent.stages.rule_evidence import rule_evidence
from edge_agent.stages.spelling import Spelling
from edge_agent.stages.text_encoder import TextEncoder
from edge_agent.stages.token_classifier import Entity, TokenClassifier

log = logging.getLogger(__name__)

Clock = Callable[[], "float | None"]
MasksOfRegion = Callable[["str | None"], Mapping[str, Pattern]]

MIN_SHARE = 0.3  # of the fields' likenesses; below it a line stays unnamed
OTHER_BESIDE_A_DATE, EXPIRED, PRODUCT_AT_A_HOUSE = -1.0, -2.0, -2.0  # nats that speak against these names
MAX_LINE_CHARS = 300  # of a line that the encoder may name by a value: a longer one is prose
MAX_CODE_LINES = 64  # of the text of one 2D code
OUT_OF_ORDER = "the encoder is out of order, lines that need it are named without it"
MIN_OPEN_LETTERS = 3  # a line with fewer letters says nothing to the encoder
_DATE_SIGN = re.compile(r"(?<=\w)\s?[./-]\s?(?=\w)")


def no_masks(region: str | None) -> Mapping[str, Pattern]:
    """No region has masks beyond those configured."""
    return {}


class FieldExtractor:
    """Reads fields from lines and codes; keeps no state between frames but the memory of texts already embedded.

    `clock` gives unix seconds, or None while the clock is not trusted (before time synchronisation). `kept` holds what
    is learned from the example phrases from one start to the next. `tagger` is the plant's own model, if it has one.
    """

    def __init__(
        self,
        config: FieldsConfig,
        encoder: TextEncoder | None = None,
        clock: Clock = time.time,
        *,
        catalogue: Catalogue | None = None,
        tagger: TokenClassifier | None = None,
        kept: KeptPrototypes | None = None,
    ) -> None:
        self._config = config
        self._clock = clock
        self._encoder = encoder
        self._kept = kept
        self._tagger = tagger
        self.catalogue = catalogue or Catalogue(())
        self.table = field_table(config)
        self._spelling = self._words()
        self._nearest = self._prototypes()
        self.fault: str | None = None  # what is wrong with the encoder, in words; None while it works
        self.dropped = 0  # fields beyond max_fields, since the start

    @property
    def min_similarity(self) -> float:
        """Below this likeness the encoder's name for a line is not believed."""
        return self._config.min_similarity

    def tune(self, config: FieldsConfig) -> None:
        """From the next frame on, as `config` says. EngineError where new example phrases cannot be embedded."""
        before, self._config = self._config, config
        if config.custom != before.custom:
            examples = self.table.prototypes
            self.table = field_table(config)
            if self.table.prototypes != examples:
                self._nearest = self._prototypes()

    def extract(
        self,
        lines: Sequence[TextLine],
        codes: Sequence[Code] = (),
        masks: MasksOfRegion = no_masks,
        doubt_margin: float = USUAL_MARGIN,
    ) -> tuple[Field, ...]:
        """The fields of one frame: those of its codes, then those of its lines, in the lines' order.

        `masks` gives those of a region by field; they go before the configured ones. `doubt_margin` is the bound that
        the lines' doubtful characters are below. Any text is taken.
        EngineError of the tagger passes through; without its encoder the extractor goes on by rules, and says so in
        `fault`.
        """
        rules = self._rules()
        label = read_label(lines, rules, self.table.keys, self._config.max_line_chars)
        self._ask_tagger(label, rules)
        self._ask_encoder(label, rules)
        masks_of = {region: {**self.table.masks, **masks(region)} for region in {line.region for line in lines}}
        fit_to_masks(label, masks_of, rules)
        label.found += bare_lots(label)
        tell_doubts(label, masks_of, rules, doubt_margin)
        printed = [_field(f, label) for f in sorted(label.told(), key=lambda f: (f.lines[0], f.at))]
        printed = with_products(printed, label, self.catalogue)
        fields = with_contradictions(with_codes(printed, self._of_codes(codes, rules)))
        self.dropped += max(0, len(fields) - self._config.max_fields)
        return tuple(fields[: self._config.max_fields])

    def _rules(self) -> ReadRules:
        config = self._config
        dates = DateRules(config.date_order, self._today(), config.date_window_years, config.trust_date_order)
        return ReadRules(dates, self._config.region, self.table.kinds)

    def _today(self) -> date | None:
        now = self._clock()
        return None if now is None or now < NOT_BEFORE_UNIX_S else datetime.fromtimestamp(now, timezone.utc).date()

    def _prototypes(self) -> NearestPrototypes | None:
        if self._encoder is None:
            return None
        rules = ReadRules(kinds=self.table.kinds)
        return NearestPrototypes(
            self._encoder,
            self.table.prototypes,
            lambda text: self._gist(text, readings(text, rules), rules),
            lambda text, names: rule_evidence(text, names, rules, self.table.keys),
            self._kept,
            repr(self._config.custom),
        )

    def _words(self) -> Spelling:
        """What the encoder's vocabulary and our own lists have of words."""
        own = chain(*self.table.prototypes.values(), *LEXICON.values())
        return Spelling(self._encoder.words() if self._encoder else {}, own)

    def _gist(self, text: str, values: Mapping[str, Value], rules: ReadRules) -> str:
        return self._spelling.mended(gist(text, values, rules))

    def _of_codes(self, codes: Sequence[Code], rules: ReadRules) -> list[Field]:
        """What codes prove by their form, and what stands behind key phrases in the text of the others."""
        proven = fields_of_codes(codes, rules.dates)
        told = {index for field in proven for index in field.codes}
        keyed = [
            replace(field, lines=(), codes=(index,), source="barcode")
            for index, code in enumerate(codes)
            if index not in told
            for field in self._keyed_fields(code, rules)
        ]
        return [*proven, *keyed]

    def _keyed_fields(self, code: Code, rules: ReadRules) -> list[Field]:
        lines = [TextLine(text, 1.0, TextBox(code.quad, 1.0)) for text in code.text.splitlines()[:MAX_CODE_LINES]]
        label = read_label(lines, rules, self.table.keys, self._config.max_line_chars)
        found = [f for f in label.told() if f.value.name != UNNAMED_DATE and _is_keyed(f, label)]
        return [_field(f, label) for f in found]

    def _ask_tagger(self, label: Label, rules: ReadRules) -> None:
        """Puts in what the plant's own model finds, where no rule has read anything with a name."""
        if self._tagger is None:
            return
        texts = [label.whole_text(index)[:MAX_LINE_CHARS] for index in range(len(label.lines))]
        for index, entities in enumerate(self._tagger.entities(texts)):
            for entity in entities:
                found = _tagged(entity, texts[index], index, label, rules)
                if found is not None:
                    label.take(found)

    def _ask_encoder(self, label: Label, rules: ReadRules) -> None:
        nearest = self._nearest
        if nearest is None:
            return
        open_lines = [
            i for i in range(len(label.lines)) if _is_open(label, i) and nearest.understands(label.whole_text(i))
        ]
        texts = [label.whole_text(i) for i in open_lines]
        values_of = [readings(text, rules) if len(text) <= MAX_LINE_CHARS else {} for text in texts]
        gists = [self._gist(text, values, rules) for text, values in zip(texts, values_of, strict=True)]
        candidates = [
            _candidates(text, values, self.table, rules.dates.today)
            for text, values in zip(texts, values_of, strict=True)
        ]
        answers, degraded = self._answers(nearest, texts, gists, candidates)
        for index, text, values, answer in zip(open_lines, texts, values_of, answers, strict=True):
            if answer.name == OTHER or answer.similarity < self._config.min_similarity or answer.share < MIN_SHARE:
                continue
            label.take(_named(answer, text, values, index, label, rules.kinds, degraded=degraded))

    def _answers(
        self,
        nearest: NearestPrototypes,
        texts: Sequence[str],
        gists: Sequence[str],
        candidates: Sequence[Candidates],
    ) -> tuple[list[Nearest], bool]:
        """The encoder's names; by the lines' shapes alone, and True, while it is out of order."""
        try:
            answers = nearest.nearest(texts, candidates, gists)
        except EngineError as exc:
            self._failed(exc)
            return nearest.without_encoder(texts, candidates, gists), True
        if self.fault is not None:
            self._try_again(nearest)
        return answers, False

    def _try_again(self, nearest: NearestPrototypes) -> None:
        """Whether the encoder works again: that it remembers all of these lines proves nothing, nor does a frame that
        needs it for none."""
        try:
            nearest.try_encoder()
        except EngineError as exc:
            self._failed(exc)
        else:
            log.info("the encoder is in order again")
            self.fault = None

    def _failed(self, error: EngineError) -> None:
        if self.fault is None:  # it stays with the first error's words: health is told whenever they change
            self.fault = f"{OUT_OF_ORDER}: {in_one_line(error)}"
            log.warning("%s", self.fault)


def _tagged(entity: Entity, text: str, index: int, label: Label, rules: ReadRules) -> Found | None:
    """What a tagger's entity is: its value read by the rules where its kind is a field of ours; None where a rule has
    read those characters and knows what they are."""
    if any(
        f.lines[-1] == index
        and f.value.name != UNNAMED_DATE
        and f.value.start < entity.end
        and f.value.end > entity.start
        for f in label.found
    ):
        return None
    name = re.sub(r"[^a-z0-9]+", "_", entity.kind.lower()).strip("_")
    seen = text[entity.start : entity.end]
    value = Value(name, seen, entity.start, entity.end)
    if name in rules.kinds:
        read = read_value(name, seen, rules)
        if read is None or not read.value:
            value = replace(value, flags=("unreadable",))
        else:
            value = replace(read, start=read.start + entity.start, end=read.end + entity.start)
    raw = label.segments[index][0].text.seen(value.start, value.end)
    return Found(value, raw, (index,), entity.score * value.certainty, value.start, "model")


def _named(
    answer: Nearest,
    text: str,
    values: Mapping[str, Value],
    index: int,
    label: Label,
    kinds: Mapping[str, Kind],
    *,
    degraded: bool,
) -> Found:
    """The line under the encoder's name: with the value that the rules read for it, else the text itself; of a field
    that has no text but a value, none, and that it could not be read."""
    flags = ("degraded",) if degraded else ()
    if kinds[answer.name] == "text":
        value = text_value(answer.name, text)
    else:
        unread = Value(answer.name, "", 0, len(text.rstrip()), ("unreadable",))
        value = values.get(answer.name, unread)
        flags = ("key_inferred", *flags)
    value = replace(value, flags=(*value.flags, *flags))
    seen = label.segments[index][0].text.seen(value.start, value.end)
    return Found(value, seen, (index,), answer.share * value.certainty, value.start, "model")


def _is_open(label: Label, index: int) -> bool:
    """No rule has settled the line, and it has words: a bare date beside words is still open to a name."""
    if index in label.claimed:
        return False
    segments = label.segments[index]
    if not segments or (segments[0].keys and set(segments[0].names) == {OTHER} and "," not in label.whole_text(index)):
        return False  # with a comma it may be an address: Unit 7, Meadow Park
    own = [f for f in label.found if index in f.lines]
    if any(f.value.name != UNNAMED_DATE for f in own):
        return False
    seen = sum(sum(map(str.isalpha, f.seen)) for f in own)
    return sum(map(str.isalpha, label.whole_text(index))) - seen >= MIN_OPEN_LETTERS


def _is_keyed(found: Found, label: Label) -> bool:
    """Whether a key phrase stands before the value."""
    segments = label.segments[found.lines[-1]]
    return any(segment.keys and segment.start <= found.value.start < segment.end for segment in segments)


def _candidates(text: str, values: Mapping[str, Value], table: FieldTable, today: date | None) -> Candidates:
    """What the encoder may call a text: beside a sound date only a date's kinds, an address only what can be one, an
    amount none in mg, which is a strength; beside a postal code no date or amount that was not read, and with the
    number of a house hardly a product."""
    dates = [name for name, kind in table.kinds.items() if kind == "date"]
    read = next((values[name] for name in dates if name in values), None)
    if read is not None and (not read.doubted or _is_whole_date(text[read.start : read.end])):
        return {**_dates_by_day(dates, read.value, today), OTHER: OTHER_BESIDE_A_DATE}
    digits = sum(map(str.isdigit, text))
    named = {name for name, kind in table.kinds.items() if kind == "text" or digits >= LEAST_DIGITS[kind]}
    if not may_be_address(text):
        named.discard("address")
    if names_town(text):
        named -= {name for name, kind in table.kinds.items() if kind in ("date", "quantity")}
    strengths = {name for name, value in values.items() if value.value.endswith(" mg")}
    weights = dict.fromkeys({*named, OTHER, *values} - strengths, 0.0)
    return {**weights, "product_name": PRODUCT_AT_A_HOUSE} if is_at_house(text) else weights


def _is_whole_date(seen: str) -> bool:
    """Whether a day, a month and a year stand there, whatever has become of their digits."""
    return len(_DATE_SIGN.findall(seen)) == 2


def _dates_by_day(names: Sequence[str], day: str, today: date | None) -> dict[str, float]:
    """What a date can be by the day that it names: nothing was made in the future, and little expires in the past."""
    weights = dict.fromkeys(names, 0.0)
    if today is not None and day > today.isoformat():
        weights.pop("manufacture_date", None)
    elif today is not None and "expiry_date" in weights:
        weights["expiry_date"] = EXPIRED
    return weights


def _field(found: Found, label: Label) -> Field:
    flags = [*found.value.flags]
    for index in found.lines:
        flags += label.lines[index].flags
        if index in label.truncated:
            flags.append("truncated")
    confidence = found.sureness * min(label.lines[index].confidence for index in found.lines)
    value = found.value
    return Field(
        value.name,
        value.value,
        found.seen,
        confidence,
        found.lines,
        tuple(dict.fromkeys(flags)),
        found.source,
        found.corrections,
        value.alternatives,
    )
