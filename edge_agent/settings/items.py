"""Items: how readings of one physical item become one result."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from edge_agent.settings.section import Section

ItemMode = Literal["none", "still", "conveyor"]


class ItemsConfig(Section):
    """How readings of one physical item become one result."""

    mode: ItemMode = "none"
    """none: each frame is a result of its own; still: an item rests before the camera; conveyor: items pass by."""
    per: Literal["camera", "region"] = "camera"
    """camera: the regions of a camera show one item; region: each of them shows an item of its own."""
    direction: Literal["auto", "left", "right", "up", "down"] = "auto"
    """conveyor: where items move to in the picture; auto: found out."""
    max_gap_share: Annotated[float, Field(gt=0, le=0.5)] = 0.08
    """conveyor: of the picture's width (or height, the way items move), what may lie empty between two prints or codes
    of one item; more separates two items."""
    min_reads: Annotated[int, Field(ge=1, le=100)] = 2
    """Readings that must show an item before it can get the verdict PASS."""
    decide_within_ms: Annotated[int, Field(ge=50, le=600_000)] = 2000
    """Longest time from the first sight of an item, or its trigger, to its result, ms."""
    gone_after_ms: Annotated[int, Field(ge=50, le=600_000)] = 600
    """An item that was not seen for so long is gone, ms; shorter gaps are flicker."""
    max_open: Annotated[int, Field(ge=1, le=256)] = 16
    """Most items of a camera that are in the picture at once; the oldest is decided for one more."""
    publish_readings: bool = False
    """Whether the readings are published too, each with verdict null."""
    trust_clock: bool = False
    """Whether dates are compared with a clock that nothing has synchronised, such as a battery's in a plant apart."""
