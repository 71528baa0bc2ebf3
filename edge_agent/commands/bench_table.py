"""The figures of `edge-agent bench` as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Figures = Mapping[str, Any]

LAYERS_SHOWN = 25
COLUMNS = ("mean_ms", "p50_ms", "p95_ms", "p99_ms")


def table(figures: Figures) -> str:
    """Plain values, latencies, then the engines one after the other."""
    lines = [*values(figures), *absent(figures), *latencies(figures), *layer_rows(figures.get("layers", ()))]
    for stage, engine in figures.get("by_engine", {}).items():
        lines += ["", f"== {stage}", *values(engine), *latencies(engine), *layer_rows(engine.get("layers", ()))]
    return "\n".join(lines)


def values(figures: Figures) -> Iterator[str]:
    """One line a value."""
    for key, value in figures.items():
        if isinstance(value, (str, int, float)):
            yield row(key, value)
    for key in ("engines", "shapes", "outputs"):
        for name, value in figures.get(key, {}).items():
            yield row(f"{key[:-1]} {name}", value if isinstance(value, str) else "x".join(map(str, value)))
    for name, value in (figures.get("gpu_memory") or {}).items():
        if name == "pool":
            for pool, counters in value.items():
                yield row(f"pool {pool}", ", ".join(f"{counter} {n}" for counter, n in counters.items()))
        elif value is not None:
            yield row(f"gpu {name}", value)
    for name, value in figures.get("power", {}).items():
        if name != "absent":
            yield row(f"power {name}", ", ".join(f"{key} {n}" for key, n in value.items()))


def absent(figures: Figures) -> Iterator[str]:
    """Why there is no power, or none of some device."""
    for reason in figures.get("power", {}).get("absent", ()):
        yield row("power absent", reason)


def latencies(figures: Figures) -> Iterator[str]:
    """Milliseconds, a row for each stage or part of a run."""
    if "fps" in figures:
        rows = dict(figures["latency"])
    else:
        gpu = {f"gpu {part}": latency for part, latency in (figures["gpu"] or {}).items()}
        rows = {"run": figures["latency"], "enqueue": figures["enqueue"], **gpu}
    yield ""
    yield f"{'ms':<14}{'mean':>10}{'p50':>10}{'p95':>10}{'p99':>10}{'runs':>8}"
    for name, latency in rows.items():
        yield f"{name:<14}" + "".join(f"{latency[column]:>10.3f}" for column in COLUMNS) + f"{latency['count']:>8}"


def layer_rows(layers: Iterable[Figures]) -> Iterator[str]:
    """The layers that take longest, and what the others take together."""
    ordered = sorted(layers, key=lambda layer: -float(layer["ms"]))
    if not ordered:
        return
    yield ""
    yield f"{'ms':>9}{'share':>7}  layer"
    for layer in ordered[:LAYERS_SHOWN]:
        told = "  ".join(filter(None, (layer["kind"], layer["name"], layer["tensors"], layer["kernel"])))
        yield f"{layer['ms']:>9.4f}{layer['share']:>7.1%}  {told}"
    rest = ordered[LAYERS_SHOWN:]
    if rest:
        ms, share = (sum(float(layer[key]) for layer in rest) for key in ("ms", "share"))
        yield f"{ms:>9.4f}{share:>7.1%}  {len(rest)} others; all of them, in their order, with --json"


def row(name: str, value: Any) -> str:
    """A name and its value."""
    return f"{name:<18} {value}"
