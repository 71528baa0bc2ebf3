"""A calibrated site, made once: a real calibration of a small slice with real models."""

from __future__ import annotations

import os

import pytest

from tests.calibrate.calibration_site import Heard, Site


@pytest.fixture(scope="session")
def promoted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Heard]:
    """A site where the model was promoted, and what was said meanwhile. To look at; `copied` to change."""
    site = Site.made(tmp_path_factory.mktemp("calibrated"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "nice", lambda more: more)  # for good it would be
        return site, site.calibrate()
