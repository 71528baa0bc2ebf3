"""Row: one finding, with its cure; Patient: what is looked at."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from edge_agent.config import Config
from edge_agent.files import STATE_FOLDER, find_state_dir
from edge_agent.secrets import Secrets

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Row:
    """What a check found. `cure` says what to do; none where nothing is to be done."""

    name: str
    verdict: Verdict
    text: str
    cure: str | None = None


@dataclass(frozen=True)
class Patient:
    """This machine below `root`, and its settings: `config` None where they are wrong, `problem` says how.

    `models_dir` None: there is none. `secrets` are removed from whatever is told.
    """

    config_file: Path
    config: Config | None
    problem: str | None = None
    models_dir: Path | None = None
    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    secrets: Secrets = field(default_factory=Secrets)

    @property
    def state_dir(self) -> Path:
        """Where the agent keeps what it must not lose: the service's, else `state` in the working folder."""
        return find_state_dir(Path(), self.environ)

    @property
    def state_folders(self) -> tuple[Path, ...]:
        """Where an agent, this one or the machine's, may have kept its state."""
        beside = self.config_file.absolute().parent / STATE_FOLDER
        return self.state_dir, beside, self.root / "var/lib/edge-agent"


Check = Callable[[Patient], Iterable[Row]]
