"""`edge-agent bench --power-modes`: the pipeline in each of the board's power modes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from edge_agent.errors import ConfigError, SensorError

Figures = dict[str, Any]
COLUMNS = (("fps", "{:.2f}"), ("power_w", "{:.2f}"), ("j_per_frame", "{:.3f}"), ("temp_c", "{:.1f}"))
HEADINGS = ("frames/s", "W", "J/frame", "hottest C")


def measure(tool: str, root: Path, bench: Callable[[], Figures]) -> Figures:
    """The figures of `bench` in every mode of the catalogue, the present one first; it is in force again at the end.

    ConfigError, before anything is changed, where the tool or the catalogue is missing or the mode cannot be told.
    """
    from edge_agent.nvpmodel import Nvpmodel, mode_kept
    from edge_agent.telemetry.power_mode import CATALOGUE, catalogue

    nvpmodel = Nvpmodel(tool)
    modes = catalogue(root)
    if not modes:
        raise ConfigError(
            f"--power-modes needs the board's list of modes, {root / CATALOGUE}, which is missing or names none; "
            "in a container mount it, and see telemetry.system_root"
        )
    try:
        with mode_kept(nvpmodel) as present:
            order = sorted(modes, key=lambda mode_id: (mode_id != present.id, mode_id))
            rows = [in_mode(nvpmodel.switch, mode_id, modes[mode_id], root, bench) for mode_id in order]
    except SensorError as exc:
        raise ConfigError(f"the power mode cannot be told: {exc}") from exc
    absent = sorted({reason for row in rows for reason in row.pop("absent", ())})
    return {"present": str(present), "modes": rows, "absent": absent}


def in_mode(
    switch: Callable[[int], None], mode_id: int, name: str, root: Path, bench: Callable[[], Figures]
) -> Figures:
    """One row: what was measured in this mode, or why it could not be set."""
    from edge_agent.telemetry.thermal import temperatures

    try:
        switch(mode_id)
    except SensorError as exc:
        return {"id": mode_id, "name": name, "error": str(exc)}
    figures = bench()
    board = figures["power"].get("board", {})
    temps = temperatures(root)
    return {
        "id": mode_id,
        "name": name,
        "fps": figures["fps"],
        "power_w": board.get("power_w"),
        "j_per_frame": board.get("j_per_frame"),
        "temp_c": max(temps.values(), default=None),
        "absent": figures["power"]["absent"],
    }


def table(figures: Mapping[str, Any]) -> str:
    """A line a mode, * at the one that was and is in force."""
    lines = [f"{'mode':<24}" + "".join(f"{heading:>11}" for heading in HEADINGS)]
    lines += [line(row, figures["present"]) for row in figures["modes"]]
    lines += [f"absent: {reason}" for reason in figures["absent"]]
    return "\n".join([*lines, f"{figures['present']} is in force again"])


def line(row: Mapping[str, Any], present: str) -> str:
    """One mode."""
    name = f"{row['name']} ({row['id']}){' *' if row['name'] == present else ''}"
    if "error" in row:
        return f"{name:<24}  {row['error']}"
    return f"{name:<24}" + "".join(f"{shown(row[key], form):>11}" for key, form in COLUMNS)


def shown(value: float | None, form: str) -> str:
    """A number, or - where there is none."""
    return "-" if value is None else form.format(value)


def any_measured(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether at least one mode could be set."""
    return any("error" not in row for row in rows)
