"""The front door: `edge-agent VERB ...`; each verb lives in edge_agent/commands/ and calls one function."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence

from edge_agent import __version__, registry
from edge_agent.commands.output import leave_quietly, open_missing_streams, tolerate_any_text
from edge_agent.errors import EdgeAgentError

# verb -> the function that adds its parser; a new verb is one file and one row
COMMANDS = {
    "run": "edge_agent.commands.run:add_parser",
    "read": "edge_agent.commands.read:add_parser",
    "replay": "edge_agent.commands.replay:add_parser",
    "demo": "edge_agent.commands.demo:add_parser",
    "models": "edge_agent.commands.models:add_parser",
    "build": "edge_agent.commands.build:add_parser",
    "calibrate": "edge_agent.commands.calibrate:add_parser",
    "rollback": "edge_agent.commands.rollback:add_parser",
    "bench": "edge_agent.commands.bench:add_parser",
    "ledger": "edge_agent.commands.ledger:add_parser",
    "outbox": "edge_agent.commands.outbox:add_parser",
    "config": "edge_agent.commands.config:add_parser",
    "schema": "edge_agent.commands.schema:add_parser",
    "doctor": "edge_agent.commands.doctor:add_parser",
    "support-bundle": "edge_agent.commands.doctor:add_bundle_parser",
    "web": "edge_agent.commands.web:add_parser",
    "install": "edge_agent.commands.install:add_parser",
    "uninstall": "edge_agent.commands.install:add_uninstall_parser",
    "note-exit": "edge_agent.commands.note_exit:add_parser",
}


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(argv: Sequence[str] | None = None) -> int:
    """Parses, calls the verb's function and returns the exit code: 0 done, 1 done in part or not allowed to, 2 usage,
    70 and 78 as edge_agent.errors says."""
    open_missing_streams()
    tolerate_any_text(sys.stdout)
    # numpy's own threads would gain nothing on matrices as small as ours, and spin on every core after each product
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        args = parser().parse_args(argv)  # imports the verbs: Ctrl-C may come meanwhile
        return carried_out(args)
    except EdgeAgentError as exc:
        print(f"edge-agent: {exc}", file=sys.stderr)
        return exc.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        leave_quietly()
        return 0
    except PermissionError as exc:
        if exc.filename is None:
            raise
        print(f"edge-agent: {exc.filename}: {exc.strerror}; do this as a user who may", file=sys.stderr)
        return 1
    except OSError as exc:
        if exc.errno not in NO_ROOM or exc.filename is not None:
            raise  # not from writing to something already open, stdout most of all
        leave_quietly()
        print(f"edge-agent: cannot write: {exc.strerror}", file=sys.stderr)
        return 1


def carried_out(args: argparse.Namespace) -> int:
    """The verb's exit code, its output written: what Python still holds back can fail as well."""
    code = int(args.func(args))
    sys.stdout.flush()
    return code


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="edge-agent",
        description="Reads labels from cameras and publishes what they say over MQTT.",
        epilog="Start with `edge-agent read IMAGE`, then `edge-agent run --config config.yaml`. "
        "Each verb has its own --help.",
    )
    top.add_argument("--version", action="version", version=f"edge-agent {__version__}")
    verbs = top.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in COMMANDS:
        registry.load(COMMANDS, verb, "verb")(verbs)
    return top


if __name__ == "__main__":
    sys.exit(main())
