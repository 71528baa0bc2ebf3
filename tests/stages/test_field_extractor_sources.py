"""FieldExtractor with more than lines: codes, fields of the plant's own, catalogue, tagger, an encoder that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import onnx
import pytest

from edge_agent.backends.base import Feed, TensorSpec
from edge_agent.backends.ort import OrtBackend
from edge_agent.errors import EngineError
from edge_agent.records import Code, Field, Quad
from edge_agent.settings.fields import CustomFieldConfig, FieldsConfig
from edge_agent.stages.catalogue import Catalogue, Product
from edge_agent.stages.field_extractor import OUT_OF_ORDER, FieldExtractor
from edge_agent.stages.text_encoder import TextEncoder
from edge_agent.stages.token_classifier import TokenClassifier
from tests.conftest import ROOT
from tests.stages import test_token_classifier
from tests.stages.labels import column, line

NOW = datetime(2026, 11, 30, tzinfo=timezone.utc).timestamp()
QUAD = Quad(np.array([[0, 0], [9, 0], [9, 9], [0, 9]], np.float32))
MINILM = ROOT / "engines" / "minilm-l6-v2"
OWN = FieldsConfig(
    custom={
        "article": CustomFieldConfig(keys=("Art. no.", "Artikel-Nr.", "货号"), mask="99-999"),
        "calibrated_on": CustomFieldConfig(keys=("Calibrated",), value="date"),
        "capacity": CustomFieldConfig(keys=("Rated capacity",), value="quantity"),
        "operator": CustomFieldConfig(keys=("Packed with care by",), value="text"),
        "expiry_date": CustomFieldConfig(keys=("Frische bis",)),
    }
)


def extractor(config: FieldsConfig | None = None, clock: Callable[[], float | None] = lambda: NOW) -> FieldExtractor:
    return FieldExtractor(config or FieldsConfig(), None, clock)


def told(fields: Sequence[Field]) -> list[tuple[str, str, str]]:
    return [(field.name, field.value, field.source) for field in fields]


# codes


def test_a_code_s_digits_come_before_what_was_read_below_it() -> None:
    code = Code("EAN13", "4006381333931", QUAD, None, "]E0")
    coded, printed = extractor().extract([line("4006381333937")], [code])
    assert (coded.value, coded.source, coded.codes, coded.certain) == ("4006381333931", "barcode", (0,), True)
    assert (printed.source, printed.certain) == ("rule", False)
    assert "misread" in printed.flags


def test_the_printed_date_is_held_against_the_code() -> None:
    code = Code("DataMatrix", "01095060001343521727083110A", QUAD, None, "]d2")
    same = extractor().extract([line("EXP 08/2027")], [code])
    assert [f.certain for f in same if f.name == "expiry_date"] == [True, True]
    other = extractor().extract([line("EXP 09/2027")], [code])
    assert [f.flags[-1] for f in other if f.name == "expiry_date"] == ["contradicts_code", "contradicts_code"]


def test_phrases_in_the_text_of_a_code_name_its_fields() -> None:
    code = Code("QRCode", "S/N: 7K-00921\nLOT A77\nhello", QUAD, None, "]Q1")
    assert told(extractor().extract([], [code])) == [
        ("serial_number", "7K-00921", "barcode"),
        ("lot", "A77", "barcode"),
    ]
    assert extractor().extract([], [Code("Code128", "4711", QUAD, None, "]C0")]) == ()


# fields of the plant's own


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Art. no. 20-118", ("article", "20-118")),
        ("ARTNO20-118", ("article", "20-118")),
        ("货号:20-118", ("article", "20-118")),
        ("Calibrated 03/2026", ("calibrated_on", "2026-03")),
        ("Rated capacity 1,5 L", ("capacity", "1.5 l")),
        ("Packed with care by Team Nord", ("operator", "Team Nord")),
        ("Frische bis 03.04.2027", ("expiry_date", "2027-04-03")),
        ("EXP 03.05.2027", ("expiry_date", "2027-05-03")),
    ],
)
def test_fields_of_one_s_own_are_named_by_their_phrases(text: str, wanted: tuple[str, str]) -> None:
    (found,) = extractor(OWN).extract([line(text)])
    assert (found.name, found.value) == wanted


def test_several_fields_of_a_line_are_told_apart_with_one_of_one_s_own() -> None:
    found = extractor(OWN).extract([line("Art. no. 20-118 LOT A7 EXP 08/2027")])
    assert [f.name for f in found] == ["article", "lot", "expiry_date"]


def test_settings_are_taken_up_from_the_next_frame_on() -> None:
    one = extractor()
    assert [f.name for f in one.extract([line("Frische bis 03.04.2027")])] == ["date"]
    one.tune(OWN)
    assert [f.name for f in one.extract([line("Frische bis 03.04.2027")])] == ["expiry_date"]
    one.tune(FieldsConfig())
    assert [f.name for f in one.extract([line("Frische bis 03.04.2027")])] == ["date"]


def test_numbers_without_a_country_are_those_of_the_region() -> None:
    text = "Büro 040 55501234"
    assert extractor().extract([line(text)]) == ()
    (found,) = extractor(FieldsConfig(region="DE")).extract([line(text)])
    assert (found.name, found.value) == ("contact", "+494055501234")
    (short,) = extractor().extract([line("Tel. +34 915 550 12")])
    assert "check_failed" in short.flags


# the catalogue

CATALOGUE = Catalogue(
    [Product("P-1", "Oat Biscuits 500 g"), Product("P-2", "Oat Biscuits 250 g"), Product("P-3", "Rye Crisps")]
)


KNOWN = ("from_catalogue",)


def with_catalogue(*texts: str) -> list[tuple[str, str, tuple[str, ...]]]:
    one = FieldExtractor(FieldsConfig(), None, lambda: NOW, catalogue=CATALOGUE)
    return [(f.name, f.value, f.flags) for f in one.extract(column(*texts))]


def test_a_line_that_names_a_product_of_the_catalogue_is_one() -> None:
    assert with_catalogue("Rye Cnisps", "LOT A7") == [
        ("product_name", "Rye Crisps", KNOWN),
        ("product_id", "P-3", KNOWN),
        ("lot", "A7", ()),
    ]


def test_two_products_of_one_name_have_that_name_for_certain_and_neither_id() -> None:
    twins = Catalogue([Product("P-1", "Oat Biscuits 500 g"), Product("P-2", "Oat Biscuits 500 g")])
    fields = FieldExtractor(FieldsConfig(), None, lambda: NOW, catalogue=twins).extract(column("Oat Biscuits 500 g"))
    by_name = {f.name: f for f in fields}
    assert by_name["product_name"].certain
    product_id = by_name["product_id"]
    assert ({product_id.value, *product_id.alternatives}, product_id.certain) == ({"P-1", "P-2"}, False)


def test_twins_of_the_catalogue_are_ambiguous_and_numbers_decide() -> None:
    assert with_catalogue("Oat Biscuits")[0][2] == ("ambiguous", *KNOWN)
    assert with_catalogue("Oat Biscuits 250 g")[:2] == [
        ("product_name", "Oat Biscuits 250 g", KNOWN),
        ("product_id", "P-2", KNOWN),
    ]
    assert all(name != "product_name" for name, *_ in with_catalogue("Oat Biscuits 750 g"))


def test_a_name_over_two_lines_is_known_where_one_line_does_not_say_all() -> None:
    found = with_catalogue("Oat Biscuits", "250 g", "Rye", "Crisps")
    assert [(name, value) for name, value, _ in found] == [
        ("product_name", "Oat Biscuits 250 g"),
        ("product_id", "P-2"),
        ("weight_volume", "250 g"),
        ("product_name", "Rye Crisps"),
        ("product_id", "P-3"),
    ]
    one = FieldExtractor(FieldsConfig(), None, lambda: NOW, catalogue=CATALOGUE)
    (name, *_) = one.extract(column("Oat Biscuits", "250 g"))
    assert (name.text, name.lines, name.certain) == ("Oat Biscuits 250 g", (0, 1), True)
    assert with_catalogue("Oat Biscuits", "LOT A7")[0][2] == ("ambiguous", *KNOWN)
    assert [value for _, value, _ in with_catalogue("Finest", "Rye Crisps")] == ["Rye Crisps", "P-3"]


# the encoder


@pytest.fixture(scope="module")
def encoder() -> TextEncoder:
    return TextEncoder(OrtBackend().load(MINILM / "model.onnx"), MINILM / "tokenizer.json")


class Failing:
    """An engine that can be put out of order."""

    def __init__(self) -> None:
        self.works = True
        self.failed = 0
        self.inputs = tuple(TensorSpec(name, "int64", (None, None)) for name in ("input_ids", "attention_mask"))
        self.outputs = (TensorSpec("sentence_embedding", "float32", (None, 4)),)
        self.fingerprint = "failing"

    def infer(self, feed: Feed) -> dict[str, np.ndarray]:
        if not self.works:
            self.failed += 1
            raise EngineError(f"out of order (try {self.failed})")
        ids = feed["input_ids"] * feed["attention_mask"]
        return {"sentence_embedding": np.stack([np.sin(ids * k).sum(1) for k in (1, 2, 3, 4)], 1).astype(np.float32)}

    def close(self) -> None: ...


PROSE = column("LOT A7", "flour, sugar, palm oil, cocoa, salt, yeast", "EXP 08/2027")


def test_without_its_encoder_the_rules_go_on_and_names_by_shape_say_so() -> None:
    engine = Failing()
    one = FieldExtractor(FieldsConfig(), TextEncoder(engine, MINILM / "tokenizer.json"), lambda: NOW)
    engine.works = False
    found = one.extract(PROSE)
    assert [(f.name, f.certain) for f in found] == [("lot", True), ("ingredients", False), ("expiry_date", True)]
    assert found[1].flags == ("degraded",)
    assert one.fault == f"{OUT_OF_ORDER}: out of order (try 1)", "the first error's words stay"
    one.extract(PROSE)
    assert one.fault == f"{OUT_OF_ORDER}: out of order (try 1)"
    engine.works = True
    one.extract(PROSE)
    assert one.fault is None


def test_encoder_that_fails_is_tried_again_with_every_frame_whatever_is_remembered() -> None:
    engine = Failing()
    one = FieldExtractor(FieldsConfig(), TextEncoder(engine, MINILM / "tokenizer.json"), lambda: NOW)
    remembered = one.extract(PROSE)
    engine.works = False
    one.extract(column("sugar, salt, palm oil, flour"))
    assert one.extract(PROSE) == remembered, "what the encoder said of a line holds"
    assert one.fault is not None, "and is no proof that it works"
    one.extract(column("LOT A7"))
    assert one.fault is not None
    engine.works = True
    one.extract(column("LOT A7"))
    assert one.fault is None, "no line needs it, and it works"


def test_prototypes_of_one_s_own_name_lines_in_words_of_no_list(encoder: TextEncoder) -> None:
    prototypes = ("Press the green button to start", "Press the red button to stop", "Push the lever to begin")
    config = FieldsConfig(custom={"operating": CustomFieldConfig(prototypes=prototypes, value="text")})
    one = FieldExtractor(config, encoder, lambda: NOW)
    found = one.extract([line("Push the yellow button to begin")])
    assert told(found) == [("operating", "Push the yellow button to begin", "model")]


# the tagger


@pytest.fixture
def tagger(tmp_path: Path) -> Iterator[TokenClassifier]:
    path = tmp_path / "model.onnx"
    onnx.save(test_token_classifier.graph(), path)
    engine = OrtBackend(1).load(path)
    yield TokenClassifier(engine, test_token_classifier.tokenizer(tmp_path), test_token_classifier.BIO)
    engine.close()


def test_a_tagger_of_one_s_own_names_what_no_rule_reads(tagger: TokenClassifier) -> None:
    one = FieldExtractor(FieldsConfig(), None, lambda: NOW, tagger=tagger)
    found = one.extract([line("of po 77 of"), line("LOT 77", y=300)])
    assert told(found) == [("order_no", "po 77", "model"), ("lot", "77", "rule")]
    assert found[0].text == "po 77"


def test_a_tagger_s_kind_that_is_a_field_of_ours_has_its_value_read_by_the_rules(tagger: TokenClassifier) -> None:
    one = FieldExtractor(FieldsConfig(), None, lambda: NOW, tagger=tagger)
    (found,) = one.extract([line("of a b of")])
    assert (found.name, found.source, found.flags, found.certain) == ("lot", "model", ("unreadable",), False)


# dates under any clock


def unix(year: int, month: int, day: int) -> float:
    return datetime(year, month, day, tzinfo=timezone.utc).timestamp()


@pytest.mark.parametrize(
    ("now", "text", "value", "flags"),
    [
        (unix(2026, 11, 30), "EXP 14.06.2029", "2029-06-14", ()),
        (unix(2026, 11, 30), "EXP 08/2027", "2027-08-31", ("month_precision",)),
        (unix(2026, 11, 30), "EXP 31/02/2027", "", ("invalid",)),
        (unix(2026, 11, 30), "EXP 13/08/26", "2026-08-13", ()),
        (unix(2031, 1, 1), "EXP 14.06.2033", "2033-06-14", ()),
        (unix(2031, 1, 1), "14.06.2033", "2033-06-14", ("no_key",)),
        (unix(2061, 1, 1), "EXP 14.06.63", "2063-06-14", ()),
        (unix(2026, 11, 30), "EXP 14.06.2093", "2093-06-14", ("implausible",)),
        (None, "EXP 14.06.2093", "2093-06-14", ("clock_untrusted",)),
        (unix(1970, 1, 1), "EXP 14.06.2029", "2029-06-14", ("clock_untrusted",)),
    ],
)
def test_no_year_is_fixed_and_the_window_moves_with_the_clock(
    now: float | None, text: str, value: str, flags: tuple[str, ...]
) -> None:
    (found,) = extractor(clock=lambda: now).extract([line(text)])
    assert (found.value, found.flags) == (value, flags)


def test_day_00_of_a_code_is_the_whole_month() -> None:
    code = Code("Code128", "17270800", QUAD, None, "]C1")
    expiry = extractor().extract([], [code])[1]
    assert (expiry.value, expiry.flags, expiry.certain) == ("2027-08-31", ("month_precision", "from_gs1"), True)


@pytest.mark.parametrize(
    ("glued", "wanted"),
    [
        ("BESTBEFORE12AUG2026", ("expiry_date", "2026-08-12")),
        ("NETWT500g", ("weight_volume", "500 g")),
        ("870922216898", ("barcode_digits", "870922216898")),
        ("8709 2221 6898", ("barcode_digits", "870922216898")),
    ],
)
def test_lost_spaces_lose_nothing(glued: str, wanted: tuple[str, str]) -> None:
    (found,) = extractor().extract([line(glued)])
    assert (found.name, found.value) == wanted
    assert found.text in glued
