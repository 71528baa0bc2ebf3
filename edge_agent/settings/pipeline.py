"""Pipeline: how a frame becomes a reading."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from edge_agent.settings.scalars import Name, Seconds, Share
from edge_agent.settings.section import Section, minimum_above_maximum, refuse

Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}$")]


class PipelineConfig(Section):
    """How a frame becomes a reading."""

    detector: Name = "ppocrv6-small-det"
    """The model that finds text: a folder in models_dir."""
    recogniser: Name = "ppocrv6-small-rec"
    """The model that reads text: a folder in models_dir."""
    encoder: Name | None = "minilm-l6-v2"
    """The model that compares meanings, for product names and phrases; null: none."""
    tagger: Name | None = None
    """A token classification model of your own that marks fields in texts: a folder in models_dir; null: none."""
    languages: tuple[Language, ...] = ("en", "de", "fr", "es", "it")
    """Languages on the labels, as two-letter codes (ISO 639-1)."""
    characters: Literal["auto", "latin", "full"] = "auto"
    """What the recogniser may read: latin letters, digits and signs; full: all it knows; auto: what languages need."""
    detector_min_side_px: Annotated[int, Field(ge=32, le=4096)] = 736
    """Frames are enlarged until their shorter side has this many px before text is looked for."""
    detector_max_side_px: Annotated[int, Field(ge=32, le=8192)] = 2000
    """Frames are made smaller until their longer side has this many px before text is looked for; of frames a third
    larger still, parts with small text are looked at again at full size."""
    detector_max_windows: Annotated[int, Field(ge=1, le=64)] = 6
    """Most parts of 960 x 960 px of one frame that are looked at again; a reading says `unsearched` where more hint at
    small text."""
    pixel_threshold: Share = 0.3
    """Probability, 0 to 1, from which on a pixel counts as text."""
    box_threshold: Share = 0.5
    """Mean probability, 0 to 1, that a box of text needs; lower finds fainter text and more that is none."""
    unclip_ratio: Annotated[float, Field(ge=0.5, le=5.0)] = 1.6
    """How far a found box is widened: area x this / perimeter, on each side."""
    max_boxes: Annotated[int, Field(ge=1, le=5000)] = 500
    """Most boxes read in one frame; the largest are kept."""
    min_confidence: Share = 0.5
    """Lines read with less confidence, 0 to 1, are left out."""
    doubt_margin: Annotated[float, Field(ge=0, le=50)] = 3.0
    """A character less than e to the power of this times likelier than the next is listed as doubtful, and its field is
    not certain where nothing settles it; 0: none is."""
    no_text_interval_s: Seconds = 10.0
    """Time between two readings without text of one camera, s; the first after a text comes at once."""

    @model_validator(mode="after")
    def _keys_agree(self) -> PipelineConfig:
        refuse(minimum_above_maximum(self, "detector_min_side_px", "detector_max_side_px"))
        return self
