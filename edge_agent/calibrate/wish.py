"""Wish: what a calibration is asked for, by the command line, from afar or by the service; plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from edge_agent.errors import ConfigError

Source = Literal["folder", "camera", "recorded", "archive", "collection"]
MethodChoice = Literal["recipe", "auto", "minmax", "percentile", "entropy"]


@dataclass(frozen=True)
class Wish:
    """`models`: none means those that the settings use. `source`: where frames come from; `collection`: the last one,
    `archive`: a file that another device exported.

    `name`: the folder, or the camera. `method`: how ranges are chosen; `recipe`: as the model's recipe says.
    `dry_run`: everything is done and reported, nothing is promoted. `settings`: those that are in force, as
    `config.plain` gives them; None: the defaults. They reach the child by its standard input and touch no disk.
    """

    models: tuple[str, ...] = ()
    source: Source = "collection"
    name: str | None = None
    count: int = 60
    method: MethodChoice = "recipe"
    dry_run: bool = False
    settings: Mapping[str, Any] | None = None
    models_dir: Path | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for the child's standard input."""
        return {
            "models": list(self.models),
            "source": self.source,
            "name": self.name,
            "count": self.count,
            "method": self.method,
            "dry_run": self.dry_run,
            "settings": None if self.settings is None else dict(self.settings),
            "models_dir": None if self.models_dir is None else str(self.models_dir),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Wish:
        """The inverse of `to_json`; ConfigError for anything else."""
        try:
            wish = Wish(
                models=tuple(str(model) for model in value["models"]),
                source=value["source"],
                name=value["name"],
                count=int(value["count"]),
                method=value["method"],
                dry_run=bool(value["dry_run"]),
                settings=None if value["settings"] is None else dict(value["settings"]),
                models_dir=None if value["models_dir"] is None else Path(value["models_dir"]),
            )
        except (KeyError, TypeError, ValueError) as exc:
            raise ConfigError(f"not a calibration's wish: {type(exc).__name__}: {exc}") from exc
        if wish.source not in get_args(Source) or wish.method not in get_args(MethodChoice):
            raise ConfigError(f"not a calibration's wish: source {wish.source!r}, method {wish.method!r}")
        return wish
