"""Live: how a running agent takes up each of the settings that need no restart (LIVE in edge_agent.config)."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from edge_agent.cameras.capture import CaptureThread
from edge_agent.config import Config
from edge_agent.pipeline import Pipeline
from edge_agent.results import Results
from edge_agent.telemetry.sampler import Sampler


def take_up(
    config: Config,
    pipeline: Pipeline,
    results: Results,
    cameras: Iterable[CaptureThread],
    sampler: Sampler | None,
) -> None:
    """Puts every LIVE key of `config` to use, from the next frame on; for between two frames. Other keys: nothing."""
    pipeline.tune(config)
    results.tune(config)
    for camera in cameras:
        if camera.name in config.cameras:
            camera.limit(config.cameras[camera.name].max_fps)
    if sampler is not None:
        sampler.every(config.telemetry.interval_s)
    logging.getLogger().setLevel(config.log.level.upper())
