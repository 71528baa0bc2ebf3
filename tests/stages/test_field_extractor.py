from __future__ import annotations

import json
import random
import time
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from edge_agent.backends.ort import OrtBackend
from edge_agent.records import Field, Reading, field_to_json, json_bytes
from edge_agent.settings.fields import FieldsConfig
from edge_agent.stages.field_extractor import FieldExtractor
from edge_agent.stages.text_encoder import TextEncoder
from tests.conftest import ROOT
from tests.stages.labels import column, line

MODEL = ROOT / "engines" / "minilm-l6-v2"
NOW = datetime(2026, 11, 30, tzinfo=timezone.utc).timestamp()
RULES_ONLY = FieldExtractor(FieldsConfig(), None, lambda: NOW)


def extract(*texts: str, extractor: FieldExtractor = RULES_ONLY) -> list[Field]:
    return list(extractor.extract(column(*texts)))


def pairs(*texts: str) -> list[tuple[str, str]]:
    return [(field.name, field.value) for field in extract(*texts)]


@pytest.fixture(scope="module")
def with_encoder() -> FieldExtractor:
    if not (MODEL / "model.onnx").exists():
        pytest.skip("the encoder is not fetched: edge-agent models fetch")
    encoder = TextEncoder(OrtBackend().load(MODEL / "model.onnx"), Path(MODEL / "tokenizer.json"))
    return FieldExtractor(FieldsConfig(), encoder, lambda: NOW)


def test_label_becomes_fields(with_encoder: FieldExtractor) -> None:
    found = extract(
        "Organic Oat Biscuits",
        "LOT L2345B",
        "EXP 12/08/2027",
        "S/N SN-204411",
        "NET WT 500 g",
        "GTIN 4006381333931",
        "www.example.com",
        extractor=with_encoder,
    )
    assert [(f.name, f.value, f.lines) for f in found] == [
        ("product_name", "Organic Oat Biscuits", (0,)),
        ("lot", "L2345B", (1,)),
        ("expiry_date", "2027-08-12", (2,)),
        ("serial_number", "SN-204411", (3,)),
        ("weight_volume", "500 g", (4,)),
        ("barcode_digits", "4006381333931", (5,)),
        ("contact", "example.com", (6,)),
    ]
    assert found[2].flags == ("ambiguous",)


@pytest.mark.parametrize(("text", "value", "flags"), [
    ("14.06.2029", "2029-06-14", ("no_key",)),
    ("EXP 08/2027", "2027-08-31", ("month_precision",)),
    ("EXP January l1, 2028", "2028-01-11", ("repaired",)),
    ("EXP 31/02/2027", "", ("invalid",)),
    ("EXP 12/08/26", "2026-08-12", ("ambiguous",)),
    ("EXP 1208/261471", "", ("unreadable",)),
])  # fmt: skip
def test_dates_of_the_field_are_never_silently_wrong(text: str, value: str, flags: tuple[str, ...]) -> None:
    (found,) = extract(text)
    assert (found.value, found.flags) == (value, flags)
    assert found.name == ("date" if "no_key" in flags else "expiry_date")


@pytest.mark.parametrize("text", ["January l1, 2028", "31/02/2027", "1208/261471", "O0O0 I1l1 S5 B8 Z2"])
def test_what_nothing_names_and_nothing_proves_is_no_field(text: str) -> None:
    assert extract(text) == []


def test_gs1_month_date_is_an_expiry_of_its_own() -> None:
    barcode, expiry = extract("(17)270800")
    assert (barcode.name, barcode.value) == ("barcode_digits", "17=270800")
    assert (expiry.name, expiry.value, expiry.flags) == ("expiry_date", "2027-08-31", ("month_precision", "from_gs1"))


def test_gs1_text_gives_number_lot_and_date() -> None:
    assert pairs("(01)09506000134352(17)260131(10)ABC123") == [
        ("barcode_digits", "01=09506000134352;17=260131;10=ABC123"),
        ("expiry_date", "2026-01-31"),
        ("lot", "ABC123"),
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("LOT (10)ABC123", ("lot", "ABC123", ("from_gs1",))),
        ("Batch/Lot: (10) L2345B", ("lot", "L2345B", ("from_gs1",))),
        ("SN(21)AB12", ("serial_number", "AB12", ("from_gs1",))),
        ("EXP (17)270831", ("expiry_date", "2027-08-31", ("from_gs1",))),
        ("BEST BEFORE (15) 270800", ("expiry_date", "2027-08-31", ("month_precision", "from_gs1"))),
        ("PROD (11)260131", ("manufacture_date", "2026-01-31", ("from_gs1",))),
        ("QTY (37)24", ("weight_volume", "24 pcs", ("from_gs1",))),
        ("NET WT (3103)001250", ("weight_volume", "1.25 kg", ("from_gs1",))),
        ("EXP (17)260231", ("expiry_date", "", ("invalid", "from_gs1"))),
        ("EXP (17)31082027", ("expiry_date", "2027-08-31", ())),
        ("EXP (11)260131", ("expiry_date", "", ("unreadable",))),
    ],
)
def test_identifier_between_a_phrase_and_its_value_is_none_of_it(text: str, wanted: tuple[str, str, object]) -> None:
    (found,) = extract(text)
    assert (found.name, found.value, found.flags) == wanted


def test_identifier_of_another_field_gives_none_and_a_due_date_is_no_day_of_manufacture() -> None:
    assert pairs("LOT (21)ABC123") == []
    assert pairs("(12)270831") == [("barcode_digits", "12=270831")]
    assert pairs("(10) tablets") == pairs("(21) days") == []


def test_day_whose_check_digit_holds_is_no_product_s_number_for_certain() -> None:
    for text in ("20261016", "2026 1016", "16022027"):
        (found,) = extract(text)
        assert (found.name, found.flags) == ("barcode_digits", ("no_key",))
    assert [f.certain for f in extract("EAN 20261016", "96385074", "12345670")] == [True, True, True]


@pytest.mark.parametrize(
    ("text", "value"), [("Mail info @ example.com", "info@example.com"), ("info(at)x.de", "info@x.de")]
)
def test_mail_address_in_pieces_is_no_web_address(text: str, value: str) -> None:
    (found,) = extract(text)
    assert (found.name, found.value, found.flags) == ("contact", value, ("repaired",))


@pytest.mark.parametrize(
    ("glued", "spaced"),
    [
        ("BESTBEFORE12AUG2026", "BEST BEFORE 12 AUG 2026"),
        ("NETWT500g", "NET WT 500 g"),
        ("870922216898", "8709 2221 6898"),
        ("LOTL2345B", "LOT L2345B"),
        ("A123EXP08/27", "A123 EXP 08/27"),
    ],
)
def test_lost_spaces_change_nothing(glued: str, spaced: str) -> None:
    assert pairs(glued) == pairs(spaced) != []


def test_code_is_not_altered_and_the_text_is_kept_as_seen() -> None:
    (lot,) = extract("LOT A0B1O8")
    assert (lot.value, lot.text, lot.flags) == ("A0B1O8", "A0B1O8", ())
    (expiry,) = extract("ＥＸＰ ３１／１２／２０２７")
    assert (expiry.value, expiry.text) == ("2027-12-31", "３１／１２／２０２７")


def test_several_fields_of_one_line_are_told_apart() -> None:
    assert pairs("LOT A123 EXP 08/2027 500 g e") == [
        ("lot", "A123"),
        ("expiry_date", "2027-08-31"),
        ("weight_volume", "500 g"),
    ]
    assert pairs("MHD 05.2027 L226514") == [("expiry_date", "2027-05-31"), ("lot", "L226514")]
    assert pairs("MFG/EXP: 01/2025 - 01/2027") == [("manufacture_date", "2025-01"), ("expiry_date", "2027-01-31")]


@pytest.mark.parametrize(
    "text", ["EXP 13.09.2026 31.08.2027", "EXP 13.09.2026 14:32 L1 31.08.2027", "EXP 13.09.2026 - 31.08.2027"]
)
def test_two_dates_behind_one_key_are_never_one_for_certain(text: str) -> None:
    found = extract(text)[0]
    assert (found.name, found.value, found.certain) == ("expiry_date", "2026-09-13", False)
    assert found.alternatives == ("2027-08-31",)


def test_date_set_apart_by_a_word_or_the_same_again_leaves_the_first_one_certain() -> None:
    for text in ("EXP 31.08.2027 packed 13.09.2026", "EXP 31.08.2027 08/31/2027"):
        assert [(f.value, f.certain) for f in extract(text) if f.name == "expiry_date"] == [("2027-08-31", True)]


@pytest.mark.parametrize("text", ["EXP KW 12/27", "Best before week 10/2027", "EXP 12/27 KW"])
def test_week_behind_a_key_is_told_as_unreadable(text: str) -> None:
    (found,) = extract(text)
    assert (found.name, found.value, found.flags) == ("expiry_date", "", ("unreadable",))


def test_one_date_for_two_keys_is_nobodys() -> None:
    (found,) = extract("MFG/EXP: 01/2027")
    assert (found.name, "no_key" in found.flags) == ("date", True)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Gross 12.5 kg Net 11.8 kg", ["11.8 kg"]),
        ("N.W.: 11.8KG G.W.: 12.5KG", ["11.8 kg"]),
        ("毛重:500克 净含量:450克", ["450 g"]),
        ("GROSS WT 12.5 KG", []),
        ("NET WT 500 g GROSS WT 600 g", ["500 g"]),
        ("NET WEIGHT 500 g TARE WEIGHT 60 g", ["500 g"]),
        ("POIDS NET 500 g POIDS BRUT 600 g", ["500 g"]),
        ("Qty 24 pcs", ["24 pcs"]),
        ("NET WT 1. 25 kg", [""]),
    ],
)
def test_what_is_packed_is_the_net_amount(text: str, values: list[str]) -> None:
    found = extract(text)
    assert [(f.name, f.value) for f in found] == [("weight_volume", value) for value in values]
    assert [f.certain for f in found] == [bool(value) for value in values]


def test_a_gross_weight_behind_a_code_is_no_field() -> None:
    assert [(f.name, f.value) for f in extract("LOT A17 GROSS WT 600 g")] == [("lot", "A17")]


@pytest.mark.parametrize("turn_deg", [0.0, 3.0])
@pytest.mark.parametrize("scale", [1, 4])
def test_key_takes_the_value_on_its_right(scale: int, turn_deg: float) -> None:
    boxes = [
        ("Batch:", 60, 104, 90, 30),
        ("A123", 260, 96, 80, 30),
        ("Expiry:", 480, 102, 95, 30),
        ("08/2026", 680, 92, 120, 30),
    ]
    found = RULES_ONLY.extract([line(t, *(scale * v for v in box), turn_deg=turn_deg) for t, *box in boxes])
    assert [(f.name, f.value, f.lines) for f in found] == [
        ("lot", "A123", (0, 1)),
        ("expiry_date", "2026-08-31", (2, 3)),
    ]


def test_key_takes_the_value_below_and_the_value_is_told_once() -> None:
    found = RULES_ONLY.extract(
        [line("LOT", 0, 0, 80), line("EXP", 300, 0, 80), line("A123", 0, 36, 90), line("14.06.2029", 300, 36, 140)]
    )
    assert [(f.name, f.value, f.lines) for f in found] == [
        ("lot", "A123", (0, 2)),
        ("expiry_date", "2029-06-14", (1, 3)),
    ]


def test_value_of_another_key_is_not_taken() -> None:
    found = RULES_ONLY.extract([line("EXP", 0, 0, 80), line("MFG 14.06.2025", 0, 36, 200)])
    assert [(f.name, f.value) for f in found] == [("manufacture_date", "2025-06-14")]


def test_expiry_before_manufacture_is_told_on_both() -> None:
    found = extract("MFG 14.06.2027", "EXP 14.06.2026")
    assert [f.flags for f in found] == [("contradicts",), ("contradicts",)]
    assert all(f.confidence <= 0.5 for f in found)


def test_flags_and_confidence_of_the_line_reach_its_field() -> None:
    (found,) = RULES_ONLY.extract([line("LOT A123", confidence=0.8, flags=("cut",))])
    assert found.flags == ("cut",)
    assert found.confidence == pytest.approx(0.8)


def test_bent_key_costs_confidence() -> None:
    (straight,), (bent,) = extract("EXP 14.06.2027"), extract("FXP 14.06.2027")
    assert (bent.name, bent.value) == (straight.name, straight.value)
    assert bent.confidence < straight.confidence


def test_date_order_comes_from_the_config() -> None:
    extractor = FieldExtractor(FieldsConfig(date_order="MDY"), None, lambda: NOW)
    assert extract("EXP 12/08/2027", extractor=extractor)[0].value == "2027-12-08"


@pytest.mark.parametrize("clock", [lambda: None, lambda: 0.0])
def test_clock_that_is_not_trusted_judges_no_date(clock: object) -> None:
    extractor = FieldExtractor(FieldsConfig(), None, clock)  # type: ignore[arg-type]
    (found,) = extract("EXP 14.06.2093", extractor=extractor)
    assert (found.value, found.flags) == ("2093-06-14", ("clock_untrusted",))


@pytest.mark.parametrize(
    "text", ["Made in Germany", "Model: TD-500", "P/N: 464-142", "INPUT: 24V DC 1.5A", "", " \n\t"]
)
def test_lines_of_no_field_give_none(text: str, with_encoder: FieldExtractor) -> None:
    assert extract(text, extractor=with_encoder) == []


def test_encoder_names_a_date_that_no_key_phrase_names(with_encoder: FieldExtractor) -> None:
    (found,) = extract("Do consume this no later than 25.05.2027", extractor=with_encoder)
    assert (found.name, found.value) == ("expiry_date", "2027-05-25")
    assert "key_inferred" in found.flags


def test_encoder_names_a_code_and_a_good_check_digit_is_no_serial(with_encoder: FieldExtractor) -> None:
    (found,) = extract("Individual number of the appliance 4471-22", extractor=with_encoder)
    assert (found.name, found.value, found.flags) == ("serial_number", "4471-22", ("key_inferred",))
    assert all(f.name != "serial_number" for f in extract("Code to scan 4006381333931", extractor=with_encoder))


def test_code_alone_before_a_date_is_the_lot_where_the_label_tells_none() -> None:
    lot, expiry = extract("A7731B EXP 08/2027")
    assert (lot.name, lot.value, lot.flags, expiry.name) == ("lot", "A7731B", ("no_key",), "expiry_date")
    assert pairs("LOT 4711", "A7731B EXP 08/2027") == [("lot", "4711"), ("expiry_date", "2027-08-31")]
    assert pairs("250 EXP 08/2027") == [("expiry_date", "2027-08-31")]


def test_value_that_half_a_key_names_is_never_certain() -> None:
    for text in ("E 12/2027", "L: 2345B", "MH: 27.02.2028"):
        (found,) = extract(text)
        assert found.value and not found.certain and "key_inferred" in found.flags


def test_expiry_of_years_ago_that_a_seven_read_as_one_makes_is_ambiguous() -> None:
    (found,) = extract("EXP 30.11.2021")
    assert (found.value, found.flags, found.alternatives) == ("2021-11-30", ("ambiguous",), ("2027-11-30",))
    assert [f.flags for f in extract("EXP 30.11.2022", "MFG 30.11.2021")] == [(), ()]
    expiry = extract("(10)LX4490(17)211130")[-1]
    assert (expiry.value, expiry.certain, expiry.alternatives) == ("2021-11-30", False, ("2027-11-30",))


def test_day_that_may_have_lost_its_first_digit_to_a_bent_phrase_is_incomplete() -> None:
    (found,) = extract("Conditionné lel9.11.2026")
    assert "incomplete" in found.flags
    (found,) = extract("Conditionné le 9.11.2026")
    assert "incomplete" not in found.flags


def test_amount_behind_contains_is_an_amount() -> None:
    assert pairs("Enthält 330 ml", "Contains: milk, eggs") == [
        ("weight_volume", "330 ml"),
        ("ingredients", "milk, eggs"),
    ]


def test_number_whose_check_digit_holds_is_a_gtin_behind_any_phrase() -> None:
    assert pairs("Item code 4012345000009", "Item code 4012345000008") == [("barcode_digits", "4012345000009")]


def test_what_cannot_be_an_amount_or_a_date_is_not_called_so(with_encoder: FieldExtractor) -> None:
    for text, names in {
        "Vol1korn Hatcrflockcn": {"product_name"},
        "araeefamol 500 mg Table ts": {"product_name"},
        "Fohriqué per :Leiterie du Val , 14000 Caen": {"address"},
        "Pol. Ind. La Red. Naue8,4I500 SeviIa": {"address"},
        "Cascificio Alfo, Via Nazionale 2I, 43100Parmo": {"address"},
        "C on5ervasRía, Polígono Industrial 5, 36600 Vilagar cía": {"address"},
    }.items():
        assert {f.name for f in extract(text, extractor=with_encoder)} <= names


def test_encoder_calls_no_date_to_come_a_manufacture(with_encoder: FieldExtractor) -> None:
    texts = ("Spätestens zu genießen am 23.04.2027", "Fresh to the table 14.11.2027", "Stays in shape 19.12.2026")
    for text in texts:
        assert [f.name for f in extract(text, extractor=with_encoder)] != ["manufacture_date"]


def test_digits_that_make_no_date_behind_words_are_nothing() -> None:
    assert extract("Production run 7781-B") == []
    assert [f.flags for f in extract("MFD 18JN2025")] == [("unreadable",)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Nordic Green Tea", "product_name"),
        ("Alpine Pressure Sensor", "product_name"),
        ("wheat flour, sugar, palm oil, salt, yeast", "ingredients"),
        ("Keep this away from small children", "warning"),
        ("Sample Works Ltd, 7 Station Road, Leeds LS2 3AB", "address"),
    ],
)
def test_encoder_names_lines_of_words(text: str, name: str, with_encoder: FieldExtractor) -> None:
    assert [(f.name, f.value) for f in extract(text, extractor=with_encoder)] == [(name, text)]


def test_lines_that_rules_settle_never_reach_the_encoder(with_encoder: FieldExtractor) -> None:
    encoder = with_encoder._nearest._encoder  # type: ignore[union-attr]
    before = encoder.misses + encoder.hits
    extract("LOT L2345B", "EXP 14.06.2027", "Made in Italy", "4006381333931", extractor=with_encoder)
    assert encoder.misses + encoder.hits == before
    extract("Royal Velvet Pudding", extractor=with_encoder)
    extract("Royal Velvet Pudding", extractor=with_encoder)
    assert encoder.misses + encoder.hits == before + 2


def test_20000_words_are_read_to_the_end_in_time() -> None:
    began = time.monotonic()
    found = extract("LOT " * 20_000 + "EXP 2027-08-31")
    assert [(f.name, f.value) for f in found] == [("expiry_date", "2027-08-31")]
    assert time.monotonic() - began < 20  # quadratic work would take hours


def test_line_beyond_the_limit_is_flagged() -> None:
    extractor = FieldExtractor(FieldsConfig(max_line_chars=1000), None, lambda: NOW)
    (found,) = extract("word " * 1000 + "EXP 2027-08-31", extractor=extractor)
    assert (found.value, found.flags) == ("2027-08-31", ("truncated",))


def test_fields_beyond_the_limit_are_dropped_and_counted() -> None:
    extractor = FieldExtractor(FieldsConfig(max_fields=3), None, lambda: NOW)
    assert len(extract(*["LOT A1"] * 5, extractor=extractor)) == 3
    assert extractor.dropped == 2


def test_any_text_is_taken_and_its_fields_are_strict_json(with_encoder: FieldExtractor) -> None:
    rng = random.Random(7)
    pieces = "LOT EXP S/N 12/08/2027 (17) ① ½ ٣٤ www. @ ( 克 年 月 2027 | +49 x g , . / -".split()
    pieces += [" ", "\u202e", "\ud83d", "\x00"]
    for extractor, rounds in ((RULES_ONLY, 3000), (with_encoder, 60)):
        for _ in range(rounds):
            text = "".join(
                rng.choice(pieces) if rng.random() < 0.7 else chr(rng.randrange(0x110000))
                for _ in range(rng.randrange(14))
            )
            for found in extract(text, extractor=extractor):
                json_bytes(field_to_json(found)).decode("utf-8")
                assert 0.0 <= found.confidence <= 1.0


ODD = "LOT A1\x00\x1b[31m EXP 08/2027 \u202e\u2028\ud83d \U0001f642"


def test_odd_characters_leave_the_fields_beside_them_and_the_payload_plain(with_encoder: FieldExtractor) -> None:
    """Field case NLP-4."""
    lines = column(ODD, "", " \n\t", ODD.removeprefix("LOT A1"))
    fields = with_encoder.extract(lines)
    assert [(f.name, f.value) for f in fields][:2] == [("lot", "A1"), ("expiry_date", "2027-08-31")]
    payload = json_bytes(Reading("left", 0, 0.0, 640, 480, tuple(lines), fields).to_json())
    told = json.loads(payload.decode("utf-8"))
    assert told["lines"][0]["text"].replace("\ufffd", "\ud83d") == ODD
    assert not any(byte < 0x20 for byte in payload)


def test_same_lines_give_the_same_fields(with_encoder: FieldExtractor) -> None:
    lines = column("Crispy Oat Milk", "BEST BEFORE 06.04.2027", "Shake well", "LOT: G27C3773")
    assert with_encoder.extract(lines) == with_encoder.extract(lines)


MONTH_NAMES = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC January März août settembre dic. Okt julio mrt".split()


@pytest.mark.parametrize("name", MONTH_NAMES)
@pytest.mark.parametrize("key", ["EXP ", "EXP", "BEST BEFORE ", "BB "])
def test_no_month_name_is_taken_for_a_key(key: str, name: str) -> None:
    (found,) = extract(f"{key}05 {name} 2027")
    assert (found.name, found.value[:5], found.value[7:]) == ("expiry_date", "2027-", "-05")


# What OCR makes of a character, a digit for another digit excepted: that no rule can see.
BENT = {"0": "OQDo", "1": "lI|", "2": "Zz", "4": "A", "5": "S", "6": "Gb", "7": "T", "8": "B", "9": "g", "/": "l|1",
        "-": "~_", ".": ",:", "E": "F", "X": "K", "P": "F", "O": "0", "T": "F", "B": "8", " ": ("", "  ")}  # fmt: skip
KEYS = ("EXP ", "EXP", "EXP: ", "BEST BEFORE ", "USE BY ", "BBE ", "MHD ", "À CONSOMMER AVANT LE ")
FORMS = ("%d/%m/%Y", "%d.%m.%y", "%Y-%m-%d", "%d %b %Y", "%d%b%y", "%b %d, %Y", "%m/%Y", "%b %Y", "%d %B %Y")


def test_bent_label_lines_never_give_another_expiry_in_silence() -> None:
    rng = random.Random(11)
    right = 0
    for _ in range(2500):
        day, form = date(2024, 1, 1) + timedelta(rng.randrange(2500)), rng.choice(FORMS)
        text = rng.choice(KEYS) + day.strftime(form).upper()
        at = rng.randrange(len(text))
        bent = text[:at] + rng.choice(BENT.get(text[at], text[at])) + text[at + 1 :]
        bent = rng.choice(["", "LOT 4711 "]) + bent + rng.choice(["", " 14:32", " L2345B", " MFG 03.2025"])
        for found in extract(bent):
            if found.name == "expiry_date" and not set(found.flags) - {"month_precision"}:
                assert found.value[: 10 if "%d" in form else 7] == day.isoformat()[: 10 if "%d" in form else 7], bent
                right += 1
    assert right > 1000
