"""Charsets: every class keeps its character, whatever the character."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_agent.errors import ModelError
from edge_agent.models import charset


def test_metadata_is_split_at_line_feeds_alone() -> None:
    odd = ["a", "\u2028", "\x85", "\x0b", "\x1c", "\u3000", "中"]
    text = "".join(f"{character}\n" for character in odd)
    assert charset.from_metadata(text, space_appended=True) == ("", *odd, " ")
    assert charset.from_metadata(text, space_appended=False) == ("", *odd)


def test_windows_line_ends_and_a_missing_last_one_change_nothing() -> None:
    assert charset.from_metadata("a\r\nb\r\nc", space_appended=False) == ("", "a", "b", "c")


def test_file_gives_back_every_character(tmp_path: Path) -> None:
    characters = ("", *(chr(code) for code in range(1, 0x3100) if not 0xD800 <= code < 0xE000), "🛁", " ")
    path = tmp_path / "charset.json"
    path.write_bytes(charset.write(characters))
    assert charset.read(path) == characters


@pytest.mark.parametrize("content", [b"", b"[1, 2]", b'["a"]', b'{"a": 1}', b'["", "a"', b"\xff\xfe"])
def test_other_files_are_refused_with_the_cure(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "charset.json"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="models fetch"):
        charset.read(path)


def test_latin_keeps_what_labels_carry_and_the_order() -> None:
    wanted = "0Az~ éßÅœŁžșẞ€°±µ²™№≤–’…½"
    foreign = "中あЖλ한ſĸ①ａ（"
    everything = ("", *foreign, *wanted)
    kept = charset.latin(everything)
    assert kept == sorted(kept)
    assert kept[0] == 0
    assert "".join(everything[i] for i in kept) == wanted


def test_latin_leaves_entries_of_several_characters_out() -> None:
    assert charset.latin(("", "ab", "a", "")) == [0, 2]


def test_codes_are_the_classes_of_code_characters_in_their_own_order() -> None:
    characters = ("", "b", "é", "0", "B", "|", " ")
    assert [characters[n] for n in charset.codes(characters)] == ["", " ", "0", "B", "b", "|"]
    assert charset.codes(charset.CODE_CHARACTERS) == list(range(len(charset.CODE_CHARACTERS)))
