"""Catalogue: the products that come by."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from edge_agent.settings.scalars import LocalPath, Phrase
from edge_agent.settings.section import Section


class CatalogueConfig(Section):
    """The products that come by: a product name that is read is held against them."""

    names: Annotated[tuple[Phrase, ...], Field(max_length=10_000)] = ()
    """Their names, as the labels print them."""
    file: LocalPath | None = None
    """A text file in UTF-8 with more of them, one a line: a name, or an id, a tab and a name; null: none."""
