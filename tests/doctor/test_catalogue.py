"""The doctor's look at the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edge_agent.config import Config
from edge_agent.doctor import catalogue
from edge_agent.doctor.base import Patient
from edge_agent.doctor.models import models_in_use


def rows(tmp_path: Path, **settings: Any) -> list[tuple[str, str]]:
    config = Config.model_validate({"catalogue": settings})
    return [(row.verdict, row.text) for row in catalogue.check(Patient(tmp_path / "config.yaml", config))]


def test_where_there_is_none_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert rows(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "verdict", "says"),
    [
        (b"1\tOat Bar\n2\tRye Bar\n", "ok", "3 products"),
        (b"1\tOat Bar\n2\tOat Bar\n", "warn", "3 products; no label tells apart those of one name: Oat Bar"),
        (b"1\tOat Bar\n1\tOat Bar\n", "ok", "2 products"),
        (b"\xff\xfe", "fail", "expected text in UTF-8"),
        (None, "fail", "No such file"),
    ],
)
def test_its_file_is_read_as_the_agent_would(tmp_path: Path, content: bytes | None, verdict: str, says: str) -> None:
    path = tmp_path / "products.txt"
    if content is not None:
        path.write_bytes(content)
    ((told, text),) = rows(tmp_path, names=("Nougat",), file=path)
    assert (told, says in text) == (verdict, True)


def test_file_without_a_product_is_told(tmp_path: Path) -> None:
    path = tmp_path / "products.txt"
    path.write_text("# none yet\n")
    assert [verdict for verdict, _ in rows(tmp_path, file=path)] == ["warn"]


def test_tagger_is_a_model_in_use() -> None:
    assert models_in_use(Config.model_validate({"pipeline": {"tagger": "ours"}}))[-1] == "ours"
