"""Artefacts for tests; `python -m tests.artefact_site OPERATION FOLDER` performs one again and again and is killed at
each of its file operations in turn, and prints what was left each time."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from edge_agent.artefacts import NODES, Artefacts, Binding

MODEL = "reader"
CONTENT = b"a model" + b"".join(NODES.values())
BINDING = Binding(
    model=MODEL,
    variant="full",
    scheme="onnxruntime",
    source_sha256="ab" * 32,
    preprocessing={"height_px": 48, "widths_px": (96, 160)},
    device={"architecture": "x86_64", "cpu": "Made-up 9000"},
    versions={"onnxruntime": "1.30.0"},
)
FILE_EVENTS = ("open", "os.", "shutil.", "tempfile.")


def manifest(binding: Binding = BINDING, **changes: Any) -> dict[str, Any]:
    return {
        **binding.to_json(),
        "collection": "cd" * 32,
        "method": "entropy",
        "batches": 45,
        "groups": ["stem"],
        "judgement": {"passed": True, "figures": {"cer": 0.001}},
        **changes,
    }


def numbered(number: int, binding: Binding = BINDING) -> tuple[bytes, dict[str, Any]]:
    """What to store as the artefact of that number, made a minute after the one before."""
    return CONTENT + bytes([number]), manifest(binding, made_at=1_800_000_000.0 + 60 * number)


def site(folder: Path, stored: int, promoted: int) -> Artefacts:
    """So many artefacts stored one after the other, the first of them promoted at once."""
    artefacts = Artefacts(folder, MODEL)
    for number in range(stored):
        artefact = artefacts.store(*numbered(number))
        if number < promoted:
            artefacts.promote(artefact.id)
    return artefacts


def perform(operation: str, artefacts: Artefacts) -> None:
    if operation == "store":
        artefacts.store(*numbered(9))
    elif operation == "promote":
        artefacts.promote(artefacts.stored()[-1])
    else:
        artefacts.rollback()


def killed_at(point: int, operation: str, artefacts: Artefacts) -> bool:
    """Whether a child that performs the operation met its end there; False: it was over before."""
    child = os.fork()
    if child == 0:
        left = point

        def count(event: str, _arguments: Any) -> None:
            nonlocal left
            if event.startswith(FILE_EVENTS):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        perform(operation, artefacts)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def main(operation: str, folder: Path) -> None:
    point, ended = 0, False
    while not ended:
        point += 1
        copy = folder / str(point)
        artefacts = site(copy, 4, 3)
        before = artefacts.stored()
        ended = not killed_at(point, operation, artefacts)
        promotion = artefacts.promotion()
        for artefact_id in artefacts.stored():
            artefacts.get(artefact_id)  # raises unless whole
        left = {"active": promotion.active, "stored": artefacts.stored(), "before": before, "ended": ended}
        perform(operation, artefacts)
        after = {"again": artefacts.promotion().active, "in_folder": len(list((copy / MODEL / "artefacts").iterdir()))}
        print(json.dumps({**left, **after}), flush=True)
        shutil.rmtree(copy)


def other(**changes: Any) -> Binding:
    return replace(BINDING, **changes)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
