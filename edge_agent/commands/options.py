"""Options that several verbs have."""

from __future__ import annotations

import argparse
from pathlib import Path

AGENTS = "the agent's settings"
READ_WITH = "settings to read with"


def add_settings_options(parser: argparse.ArgumentParser, which: str) -> None:
    """`--config`, by `which` settings, and `--models-dir`; both None where they are not given."""
    parser.add_argument("--config", type=Path, metavar="FILE", help=f"{which} (default: built in)")
    parser.add_argument("--models-dir", type=Path, metavar="DIR", help="where the models are (default: as configured)")
