"""BoundCache: a value is used again only under the same facts, and it is said which differ."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from edge_agent.calibrate.bound_cache import BoundCache
from edge_agent.errors import CalibrationRefused

FACTS = {"model": "abc", "feeds": {"sha256": "def"}, "methods": ("minmax", "entropy")}


def test_value_comes_back_under_equal_facts(tmp_path: Path) -> None:
    BoundCache(tmp_path / "a.json", FACTS).put({"x": [1, 2.5]})
    again = BoundCache(tmp_path / "a.json", dict(reversed(FACTS.items())))
    assert again.get() == {"x": [1, 2.5]}
    assert again.key == BoundCache(tmp_path / "b.json", FACTS).key


@pytest.mark.parametrize("name", FACTS)
def test_value_of_other_facts_does_not_serve_and_it_is_said_which(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    BoundCache(tmp_path / "a.json", FACTS).put(1)
    other = BoundCache(tmp_path / "a.json", {**FACTS, name: "another"})
    with caplog.at_level(logging.INFO):
        assert other.get() is None
    assert f"a.json is computed afresh: {name} differ" in caplog.text
    assert other.key != BoundCache(tmp_path / "a.json", FACTS).key


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"facts": {}}',
        b'{"value": 1}',
        b"\xff\xfe",
        b"{" * 100_000,
        b'{"facts":1,"value":1}',
    ],
)
def test_damaged_file_counts_as_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    assert BoundCache(tmp_path / "a.json", FACTS).get() is None


def test_file_cut_short_counts_as_none(tmp_path: Path) -> None:
    cache = BoundCache(tmp_path / "a.json", FACTS)
    cache.put(list(range(100)))
    whole = cache.path.read_bytes()
    for size in range(0, len(whole), 7):
        cache.path.write_bytes(whole[:size])
        assert cache.get() is None


def test_what_cannot_be_written_is_refused_and_the_old_value_stays(tmp_path: Path) -> None:
    cache = BoundCache(tmp_path / "a.json", FACTS)
    cache.put(1)
    blocked = BoundCache(tmp_path / "a.json" / "b.json", FACTS)
    with pytest.raises(CalibrationRefused, match="cannot be written: File exists"):
        blocked.put(2)
    assert json.loads(cache.path.read_text())["value"] == 1
