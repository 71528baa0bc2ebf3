"""Who may import whom: the house rules of CONTRIBUTING.md, held by reading the source."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "edge_agent"
GROUND = {
    "child_process",
    "clock",
    "config",
    "errors",
    "files",
    "journal",
    "messages",
    "patterns",
    "plain_text",
    "records",
    "registry",
    "secrets",
    "settings",
    "__init__",
}

# room -> the other rooms it may import (the ground floor is open to all; a room may always import itself)
MAY_IMPORT = {
    "__main__": None,  # the front door opens every room
    "commands": None,  # the verbs of the command line
    "demo": None,
    "bench": None,
    "drawing": set(),
    "agent": {
        "agent_links",
        "agent_report",
        "agent_site",
        "events",
        "evidence",
        "expectations",
        "artefacts",
        "backends.base",
        "board",
        "calibrate.progress",
        "cameras",
        "cooling",
        "frame_recorder",
        "inspection",
        "last_words",
        "mailbox",
        "live",
        "no_text",
        "outbox",
        "pipeline",
        "publisher",
        "remote",
        "results",
        "service",
        "telemetry",
        "transports",
        "uploads",
        "web",
        "web_site",
    },
    "agent_links": {
        "board",
        "events",
        "last_words",
        "outbox",
        "publisher",
        "remote",
        "telemetry",
        "transports",
        "web_site",
    },
    "agent_report": {"agent", "cameras.status", "frame_recorder", "inspection", "outbox.base"},
    "agent_site": {"agent", "agent_report", "live", "remote.trial", "transports.base"},
    "artefacts": {"models"},
    "background": set(),
    "board": {"outbox"},
    "cooling": {"cameras", "telemetry"},
    "events": set(),
    "evidence": {"background", "cameras.image_file", "outbox.opening", "verify"},
    "expectations": {"remote.bucket", "verify"},
    "frame_recorder": {"background"},
    "inspection": {"evidence", "expectations", "items", "verify"},
    "doctor": {
        "backends",
        "cameras",
        "installation",
        "models",
        "stages.catalogue",
        "telemetry",
        "transports",
        "web.passwords",
    },
    "installation": set(),
    "items": {"cameras.base", "cameras.repeat_log", "frame_recorder", "stages.label_text", "stages.reading_order"},
    "last_words": set(),
    "live": {"cameras", "pipeline", "results", "telemetry"},
    "no_text": set(),
    "nvpmodel": {"telemetry.power_mode"},
    "calibrate": {
        "artefacts",
        "pipeline",
        "served_model",
        "stages",
        "cameras",
        "backends",
        "models",
        "telemetry.energy",
    },
    "pipeline": {"artefacts", "served_model", "stages", "backends", "models", "verify", "view_codes", "view_text"},
    "served_model": {"artefacts", "backends"},
    "publisher": {"outbox", "transports.base"},
    "results": {"frame_recorder", "inspection", "no_text", "transports.base"},
    "remote": {
        "artefacts",
        "calibrate.job",
        "calibrate.wish",
        "cameras.base",
        "cameras.repeat_log",
        "models.spec",
        "stages.catalogue",
        "transports.base",
    },
    "schema": {"expectations", "remote.commands"},
    "stages": {"backends.base"},
    "cameras": set(),
    "backends": set(),
    "transports": set(),
    "telemetry": set(),
    "mailbox": set(),
    "outbox": set(),
    "service": set(),
    "web": {"background", "schema", "telemetry.metrics", "transports.base", "verify"},
    "uploads": {"cameras.image_file", "cameras.image_header", "mailbox", "verify.expectation", "web.site"},
    "web_remote": {"remote", "transports.base", "web.site"},
    "web_site": {
        "agent",
        "artefacts",
        "board",
        "calibrate.progress",
        "evidence",
        "last_words",
        "no_text",
        "remote.control",
        "telemetry.history",
        "transports.base",
        "verify.expectation",
        "web",
        "web_remote",
    },
    "models": set(),
    "view_codes": {"stages"},
    "view_text": {"stages", "verify.expectation"},
    "verify": {"stages.dates", "stages.gs1", "stages.label_date", "stages.label_text", "stages.product_numbers"},
}

# heavy library -> the modules (below edge_agent) that may import it
HOMES = {
    "tensorrt": {
        "backends.trt",
        "backends.trt_api",
        "backends.trt_build",
        "backends.trt_engine",
        "backends.trt_lanes",
        "backends.trt_layers",
    },
    "pycuda": {"backends.gpu"},
    "onnxruntime": {"backends.ort", "backends.half", "models.check", "calibrate"},
    "onnx": {"models", "calibrate", "backends.half"},
    "gpiod": {"items.gpio"},
    "pymodbus": {"items.modbus"},
    "paho": {"transports.mqtt_library", "demo.subscriber"},
    "simplejpeg": {"cameras.jpeg"},
    "sqlite3": {"outbox"},
    "jtop": set(),  # jetson-stats is AGPL: what it tells is read from the kernel's own files
    "zxingcpp": {"stages.code_reader", "demo.line_labels"},
    "biip": {"stages.gs1", "stages.code_fields"},
    "phonenumbers": {"stages.contacts"},
    "py3langid": {"stages.language"},
    "starlette": {"web"},
    "uvicorn": {"web"},
}


def modules() -> list[tuple[str, Path]]:
    return [
        (".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"), path)
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


@cache
def imports(path: Path) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}:{node.lineno} relative import"
            found.add(node.module)
            if node.module.split(".")[0] == "edge_agent":
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def inside(module: str, rooms: set[str]) -> bool:
    return any(module == room or module.startswith(room + ".") for room in rooms)


@pytest.mark.parametrize(("name", "path"), modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_module_imports_only_the_rooms_it_may(name: str, path: Path) -> None:
    room = name.split(".", maxsplit=1)[0]
    if room in GROUND:
        allowed: set[str] | None = set(GROUND)
    else:
        assert room in MAY_IMPORT, f"{room} is a new room: say in MAY_IMPORT what it may import"
        allowed = MAY_IMPORT[room]
    if allowed is None:
        return
    for imported in sorted(imports(path)):
        if not imported.startswith("edge_agent."):
            continue
        target = imported.removeprefix("edge_agent.")
        if (
            not (PACKAGE / target.replace(".", "/")).with_suffix(".py").exists()
            and not (PACKAGE / target.replace(".", "/")).is_dir()
        ):
            target = target.rpartition(".")[0]  # a name inside a module
        if target and target.split(".")[0] not in {room} | GROUND:
            assert inside(target, allowed), f"{name} may not import {target}; allowed: {sorted(allowed)}"


@pytest.mark.parametrize(("name", "path"), modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_heavy_library_has_one_home(name: str, path: Path) -> None:
    for library, homes in HOMES.items():
        if any(imported.split(".")[0] == library for imported in imports(path)):
            assert inside(name, homes), f"{name} imports {library}; its home is {sorted(homes)}"


def test_videocapture_is_opened_in_cameras_only() -> None:
    for name, path in modules():
        if "VideoCapture(" in path.read_text(encoding="utf-8"):
            assert name.startswith("cameras."), f"{name} opens a VideoCapture; its home is cameras/"
