"""CatalogueInUse: a long catalogue is made ready beside the reading, and nothing is half taken up."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_agent.errors import ConfigError
from edge_agent.settings.catalogue import CatalogueConfig
from edge_agent.stages.catalogue_in_use import AT_ONCE, CatalogueInUse

SHORT = CatalogueConfig(names=("Rye Crisps",))


def a_long_one(path: Path, count: int = AT_ONCE + 1) -> CatalogueConfig:
    path.write_text("\n".join(f"{n}\tWidget TD-{n}" for n in range(count)), encoding="utf-8")
    return CatalogueConfig(names=("Oat Bar",), file=path)


def names(catalogue: CatalogueInUse, text: str) -> str | None:
    match = catalogue.now.match(text)
    return None if match is None else match.product.id


def test_short_catalogue_is_in_use_at_once() -> None:
    catalogue = CatalogueInUse()
    catalogue.take(SHORT)
    assert (names(catalogue, "RYE CRISPS"), catalogue.fault) == ("Rye Crisps", None)


def test_long_catalogue_is_made_ready_while_the_one_before_serves(tmp_path: Path) -> None:
    catalogue = CatalogueInUse()
    catalogue.take(a_long_one(tmp_path / "products.txt"))
    assert catalogue.fault == (
        "the 2002 products of the catalogue are being made ready, until then lines are held against none"
    )
    assert names(catalogue, "Widget TD-7") is None
    catalogue.attend(wait=True)
    assert (names(catalogue, "Widget TD-7"), catalogue.fault) == ("7", None)
    catalogue.take(a_long_one(tmp_path / "more.txt", AT_ONCE + 5))
    assert catalogue.fault == (
        "the 2006 products of the catalogue are being made ready, until then the 2002 of before serve"
    )
    assert names(catalogue, "Widget TD-7") == "7", "the one before serves"
    assert names(catalogue, "Widget TD-2004") is None
    catalogue.attend(wait=True)
    assert names(catalogue, "Widget TD-2004") == "2004"


def test_newest_of_several_catalogues_is_the_one_that_counts(tmp_path: Path) -> None:
    catalogue = CatalogueInUse()
    catalogue.take(a_long_one(tmp_path / "products.txt"))
    catalogue.take(SHORT)
    catalogue.attend(wait=True)
    assert (names(catalogue, "Rye Crisps"), names(catalogue, "Widget TD-7"), catalogue.fault) == (
        "Rye Crisps",
        None,
        None,
    )


def test_start_with_a_file_that_cannot_be_read_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    catalogue = CatalogueInUse()
    catalogue.take(SHORT)
    with pytest.raises(ConfigError, match="cannot be read"):
        catalogue.begin(CatalogueConfig(file=tmp_path / "products.txt"))
    assert (names(catalogue, "Rye Crisps"), catalogue.fault) == ("Rye Crisps", None)


def test_what_is_in_use_goes_on_where_a_file_cannot_be_read_until_it_can(tmp_path: Path) -> None:
    catalogue = CatalogueInUse()
    catalogue.take(SHORT)
    missing = CatalogueConfig(file=tmp_path / "products.txt")
    for _ in range(2):
        catalogue.take(missing)
        assert "products.txt cannot be read" in (catalogue.fault or "")
        assert names(catalogue, "Rye Crisps") == "Rye Crisps"
    a_long_one(tmp_path / "products.txt", 3)
    catalogue.take(missing)
    assert (names(catalogue, "Rye Crisps"), names(catalogue, "Widget TD-2"), catalogue.fault) == (None, "2", None)


@pytest.mark.parametrize("count", [3, AT_ONCE + 1])
def test_catalogue_that_returns_is_had_from_memory_where_its_file_was_damaged_meanwhile(
    tmp_path: Path, count: int
) -> None:
    catalogue, path = CatalogueInUse(), tmp_path / "products.txt"
    long = a_long_one(path, count)
    catalogue.begin(long)
    catalogue.take(SHORT)
    path.write_bytes(b"\xff\xfe\x00 no text")
    catalogue.take(long)
    catalogue.attend(wait=True)
    assert (names(catalogue, "Widget TD-2"), names(catalogue, "Rye Crisps")) == ("2", None)
    assert "expected text in UTF-8; mend it and restart" in (catalogue.fault or "")
    catalogue.take(SHORT)
    assert (names(catalogue, "Rye Crisps"), catalogue.fault) == ("Rye Crisps", None)
