"""The demo for half an hour: does anything grow where nothing goes wrong?

    nice python benchmarks/soak_demo.py --minutes 30

`edge-agent demo` as it is: the default models, the sample video again and again, a broker, a subscriber. Its agent
gets one thread (backend.threads) and, as a service has it, an outbox and telemetry on disk. Resident memory, threads
and open files of the agent and of the demo around it are looked at every second. Prints them after they have settled,
at the end and at most, with the medians of each tenth of the time, and one JSON object with --json; exits with 1 where
something grew. Needs the models, and Mosquitto or aMQTT.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
from soak import Footprint, Meter, footprint_faults, footprint_of, wait_for, working_folder

from edge_agent.demo.child import Child, started

SHOW = """
import sys
from pathlib import Path
from edge_agent.demo.run import DemoOptions, run_demo
folder, *agent = sys.argv[1:]
sys.exit(run_demo(DemoOptions(json=True, out=Path(folder)), agent))
"""
TENTHS = 10


def agent_command(folder: Path) -> list[str]:
    """The agent's, with settings over the demo's own."""
    settings = {
        "BACKEND__THREADS": "1",
        "OUTBOX__KIND": "disk",
        "OUTBOX__PATH": str(folder / "outbox.db"),
        "TELEMETRY__INTERVAL_S": "2",
    }
    pairs = [f"EDGE_AGENT_{name}={value}" for name, value in settings.items()]
    return ["env", *pairs, sys.executable, "-m", "edge_agent", "run"]


def readings(demo: Child) -> int:
    """How many the demo has shown; it writes one line of JSON each."""
    with demo.log.open("rb") as lines:
        return sum(line.startswith(b"{") for line in lines)


def agent_of(demo: Child) -> int:
    """The agent's process id, which is the demo's child."""
    for process in psutil.Process(demo.pid).children():
        if process.cmdline()[-4:-1] == ["edge_agent", "run", "--config"]:
            return process.pid
    raise SystemExit(f"the demo has no agent; see {demo.log}")


def soak(folder: Path, minutes: float) -> dict[str, Any]:
    """Runs it; the figures, with what is not in order under `faults`."""
    command = [sys.executable, "-c", SHOW, str(folder), *agent_command(folder)]
    with started("demo", command, folder / "demo.log", grace_s=30) as demo:
        wait_for(lambda: demo.exit_code() is not None or readings(demo) > 5, f"readings, see {demo.log}", 600)
        if demo.exit_code() is not None:
            raise SystemExit(f"the demo ended with {demo.exit_code()}; see {demo.log}")
        meters = {"agent": Meter(agent_of(demo), lambda: 1), "demo": Meter(demo.pid, lambda: 1)}
        began_mono, began = time.monotonic(), readings(demo)
        for meter in meters.values():
            meter.start()
        while time.monotonic() - began_mono < minutes * 60 and demo.exit_code() is None:
            time.sleep(1.0)
        for meter in meters.values():
            meter.stop()
        ended = demo.exit_code()
        read = readings(demo) - began
        load = os.getloadavg()[2]
        demo.close()
    figures = {name: of_process(meter.lives[-1]) for name, meter in meters.items()}
    faults = [f"the demo ended by itself with {ended}"] if ended is not None else []
    faults += [f"{name}: {fault}" for name, process in figures.items() for fault in footprint_faults(process)]
    return {"minutes": minutes, "readings": read, "load_15_min": round(load, 1), "processes": figures, "faults": faults}


def of_process(life: Footprint) -> dict[str, Any]:
    """What soak.py says of a process, and the median of each tenth of its time."""
    size = max(1, len(life.rss_mb) // TENTHS)
    tenths = {
        what: [round(statistics.median(samples[at : at + size]), 1) for at in range(0, size * TENTHS, size)]
        for what, samples in (("rss_mb", life.rss_mb), ("threads", life.threads), ("files", life.files))
        if len(samples) >= TENTHS
    }
    return {**footprint_of(life), "tenths": tenths}


def table(figures: Mapping[str, Any]) -> str:
    """For people."""
    rows = [f"{figures['readings']} readings in {figures['minutes']:g} min; load {figures['load_15_min']}"]
    for name, process in figures["processes"].items():
        rows.append(f"{name}, after {process['settled_after_s']:.0f} s, at the end, at most; medians of each tenth")
        for what in ("rss_mb", "threads", "files"):
            values = process[what]
            tenths = " ".join(f"{value:g}" for value in process["tenths"].get(what, ()))
            rows.append(f"  {what:<8} {values['first']:>8} {values['last']:>8} {values['most']:>8}   {tenths}")
    return "\n".join([*rows, *(f"NOT IN ORDER: {fault}" for fault in figures["faults"])])


def main() -> int:
    """0 where nothing grew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder for logs and databases, which stays")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the figures are to be written too")
    args = parser.parse_args()
    with working_folder(args.keep) as folder:
        figures = soak(folder, args.minutes)
    print(table(figures))
    if args.json is not None:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 1 if figures["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
