"""Roi: a part of a camera's picture that is read on its own."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from edge_agent.settings.expected import Rules
from edge_agent.settings.scalars import Share
from edge_agent.settings.section import Section, refuse


class RoiConfig(Section):
    """A part of a camera's picture, read on its own; x, y, width and height are shares of the picture, 0 to 1."""

    x: Share = 0.0
    """Left edge, as a share of the picture's width."""
    y: Share = 0.0
    """Top edge, as a share of the picture's height."""
    width: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Width, as a share of the picture's."""
    height: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Height, as a share of the picture's."""
    angle_deg: Annotated[float, Field(ge=-180, le=360)] | Literal["auto"] = "auto"
    """Which way text runs, degrees clockwise from left to right: 90 down, 180 upside down; auto: found out."""
    dot_matrix: bool = False
    """Whether print of dots is expected here: the dots are joined before they are read."""
    contrast: Literal["auto", "off"] = "auto"
    """auto: faint print is strengthened before it is read; off: the picture is read as it is."""
    expected: Rules = ()
    """What an item must say here, beside what the camera's own `expected` asks for."""

    @model_validator(mode="after")
    def _inside_the_picture(self) -> RoiConfig:
        problems = []
        for start, length in (("x", "width"), ("y", "height")):
            end = getattr(self, start) + getattr(self, length)
            if end > 1 + 1e-6:
                problems.append(
                    (length, f"{start} + {length} is {end:g}; it must end inside the picture, at most at 1")
                )
        refuse(problems)
        return self
