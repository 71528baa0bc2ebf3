"""Evidence: what is kept of items that were not passed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from edge_agent.settings.scalars import LocalPath
from edge_agent.settings.section import Section


class EvidenceConfig(Section):
    """What is kept of items that were not passed: a picture and what was read, by the item's id."""

    keep: tuple[Literal["PASS", "FAIL", "NO_READ"], ...] = ("FAIL", "NO_READ")
    """The verdicts whose items are kept; none: nothing is."""
    directory: LocalPath | None = None
    """The folder; null: `evidence` beside the outbox's file, nowhere with outbox.kind memory."""
    max_bytes: Annotated[int, Field(ge=1_048_576)] = 268_435_456
    """Most bytes kept; the oldest go first."""
    keep_s: Annotated[float, Field(gt=0, le=315_360_000)] = 2_592_000.0
    """How long they are kept, s."""
    jpeg_quality: Annotated[int, Field(ge=30, le=100)] = 90
    """Quality of the pictures."""
