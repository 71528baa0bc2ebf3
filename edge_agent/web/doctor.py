"""Doctor and support bundle: made by the command line in a process of its own, so that nothing of it is felt here."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from starlette.responses import Response

from edge_agent.errors import in_one_line
from edge_agent.web.endpoint import Call, Door, Endpoint, Said, answered
from edge_agent.web.site import Refused

FRESH_S = 10.0
TIMEOUT_S = 90.0
MAX_OUTPUT_BYTES = 4_194_304
TAR = "application/gzip"


class Finding(Said):
    """What one check found."""

    name: str
    verdict: Literal["ok", "warn", "fail"]
    text: str
    cure: str | None
    """What to do; null where nothing is."""


class Findings(Said):
    """What is wrong with this machine and its settings: `edge-agent doctor --json`."""

    v: int
    counts: dict[str, int]
    rows: list[Finding]


class Examinations:
    """One at a time; a finding is good for FRESH_S. For the event loop."""

    def __init__(self) -> None:
        self._alone = asyncio.Lock()
        self._found: tuple[float, bytes] | None = None

    async def findings(self, door: Door) -> bytes:
        """What the doctor finds, JSON."""
        async with self._alone:
            now_s = asyncio.get_running_loop().time()
            if self._found is None or now_s - self._found[0] > FRESH_S:
                said = await output_of(["doctor", "--json", *places(door)], (0, 1))
                self._found = (asyncio.get_running_loop().time(), compact(said))
            return self._found[1]

    async def bundle(self, door: Door) -> bytes:
        """A support bundle, tar.gz."""
        async with self._alone:
            with tempfile.TemporaryDirectory(prefix="edge-agent-") as folder:
                path = Path(folder) / "support.tar.gz"
                await output_of(["support-bundle", str(path), *places(door)])
                content: bytes = await door.aside(path.read_bytes)
                return content


def places(door: Door) -> list[str]:
    """The settings that the agent runs with. Refused where it was not started from a file."""
    if door.site.config_file is None:
        raise Refused(503, "no_file", "the agent was started without a file of settings")
    return ["--config", str(door.site.config_file), "--models-dir", str(door.site.models_dir)]


def compact(said: bytes) -> bytes:
    """The doctor's words without line breaks; Refused where they are none."""
    try:
        return json.dumps(json.loads(said), separators=(",", ":")).encode()
    except ValueError:
        raise Refused(503, "no_doctor", "the doctor gave no answer") from None


async def output_of(words: Sequence[str], well: Sequence[int] = (0,)) -> bytes:
    """What `edge-agent WORDS` says; Refused where it takes too long, or ends with another code than `well`."""
    async with started(words) as process:
        try:
            said, error = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
        except (TimeoutError, asyncio.TimeoutError):
            raise Refused(503, "too_slow", f"it took more than {TIMEOUT_S:g} s and was given up") from None
    if process.returncode not in well:
        why = in_one_line(error.decode("utf-8", "replace")[-500:])
        raise Refused(503, "failed", f"edge-agent {words[0]} ended with code {process.returncode}: {why}")
    return said[:MAX_OUTPUT_BYTES]


@asynccontextmanager
async def started(words: Sequence[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """The process, which ends with the block."""
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    command = [sys.executable, "-m", "edge_agent", *words]
    process = await asyncio.create_subprocess_exec(*command, stdin=nothing, stdout=pipe, stderr=pipe)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def doctor(call: Call) -> Response:
    """What is wrong, and the cure."""
    return answered(await call.door.examinations.findings(call.door))


async def bundle(call: Call) -> Response:
    """What somebody far away needs to see."""
    content = await call.door.examinations.bundle(call.door)
    headers = {"Content-Disposition": f'attachment; filename="support-{call.site.device}.tar.gz"'}
    return Response(content, 200, headers, TAR)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/doctor",
        doctor,
        "What is wrong here, with the cure; takes seconds",
        {200: Findings},
        refusals=(503,),
    ),
    Endpoint(
        "GET",
        "/v1/support-bundle",
        bundle,
        "Findings, settings, figures and log, without secrets",
        {200: TAR},
        refusals=(503,),
    ),
)
