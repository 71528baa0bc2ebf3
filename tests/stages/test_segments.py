from __future__ import annotations

from edge_agent.stages.segments import PIECE_CHARS, segments_of

MAX = 131_072


def shown(raw: str) -> list[tuple[tuple[str, ...], str]]:
    return [(segment.names, segment.value_text.strip()) for segment in segments_of(raw, MAX)[0]]


def test_line_is_cut_at_its_keys() -> None:
    assert shown("500 g LOT A123 EXP 08/2026") == [((), "500 g"), (("lot",), "A123"), (("expiry_date",), "08/2026")]


def test_keys_without_value_between_share_the_next() -> None:
    assert shown("LOT/EXP: A1 08/2026") == [(("lot", "expiry_date"), ": A1 08/2026")]


def test_key_word_at_the_head_of_a_code_belongs_to_the_code() -> None:
    assert shown("S/N SN-204411") == [(("serial_number",), "SN-204411")]


def test_words_inside_an_address_of_the_web_cut_nothing() -> None:
    for head in ("https://", "http5:1/", "htfs//", "wvw."):
        assert shown(f"{head}support.example.com/lot/exp") == [((), f"{head}support.example.com/lot/exp")]
    assert shown("Gewicht: 11LOT A123")[-1] == (("lot",), "A123")


def test_empty_line_has_no_key() -> None:
    assert shown("") == [((), "")]


def test_long_line_is_read_to_its_end() -> None:
    raw = "word " * (PIECE_CHARS * 3) + "EXP 08/2027"
    assert shown(raw)[-1] == (("expiry_date",), "08/2027")


def test_too_long_line_keeps_head_and_tail_and_says_so() -> None:
    segments, truncated = segments_of("LOT A1 " + "x" * 5000 + " EXP 08/2027", 1000)
    assert truncated
    assert [segment.names for segment in segments] == [("lot",), ("expiry_date",)]
