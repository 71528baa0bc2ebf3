"""Log: what the program writes about itself."""

from __future__ import annotations

from typing import Literal

from edge_agent.settings.section import Section


class LogConfig(Section):
    """What the program writes about itself, to stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important lines written."""
    format: Literal["text", "logfmt", "json"] = "text"
    """text for people and the journal; logfmt: key=value pairs; json: one object a line."""
