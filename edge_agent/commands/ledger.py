"""`edge-agent ledger`: what became of the readings, by camera and day; and the messages that were given up."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edge_agent.errors import EXIT_OK
from edge_agent.records import rfc3339

if TYPE_CHECKING:
    from edge_agent.outbox.ledger import Ledger, LedgerRow
    from edge_agent.outbox.store import DeadLetter

DEFAULT_CONFIG = Path("config.yaml")
SHOWN_DAYS = 14
SHOWN_CHARS = 200


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Registers the verb."""
    parser = verbs.add_parser(
        "ledger",
        help="what became of the readings, by camera and day",
        description="Shows for each camera and UTC day how many readings were made, delivered, wait, and were dropped, "
        "by reason. Reads the outbox's file, of a running agent too, and changes nothing.",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help=f"whose outbox (default: {DEFAULT_CONFIG}, if there is one)"
    )
    parser.add_argument("--database", type=Path, metavar="FILE", help="the outbox's file itself")
    parser.add_argument(
        "--days", type=int, default=SHOWN_DAYS, metavar="N", help="the newest N days (default: %(default)s; 0: all)"
    )
    parser.add_argument("--dead", action="store_true", help="the messages that were given up instead, and why")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Prints the ledger or the dead letters."""
    from edge_agent.outbox.accounts import read_dead_letters, read_ledger

    database = args.database or configured(args.config)
    if args.dead:
        letters = read_dead_letters(database)
        print(json.dumps({"dead": list(map(letter_json, letters))}) if args.json else letters_text(letters))
        return EXIT_OK
    ledger = read_ledger(database)
    print(json.dumps(ledger_json(ledger, args.days), indent=2) if args.json else ledger_text(ledger, args.days))
    return EXIT_OK


def configured(file: Path | None) -> Path:
    """The outbox of a configuration, by default of the one in the working folder, else of no configuration."""
    from edge_agent import config as configuration
    from edge_agent.outbox.opening import find_database

    if file is None and not DEFAULT_CONFIG.is_file():
        return configuration.without_file().outbox.path or find_database()
    return configuration.load(file or DEFAULT_CONFIG).outbox.path or find_database()


def newest(ledger: Ledger, days: int) -> list[LedgerRow]:
    """The rows of so many days that have any; 0: all."""
    rows = list(ledger.rows())
    if days <= 0:
        return rows
    shown = set(sorted({row.day for row in rows})[-days:])
    return [row for row in rows if row.day in shown]


def ledger_json(ledger: Ledger, days: int) -> dict[str, Any]:
    """Days with their cameras, and the sums of all days."""
    from edge_agent.outbox.ledger import day_text

    by_day: dict[str, dict[str, Any]] = {}
    for row in newest(ledger, days):
        by_day.setdefault(day_text(row.day), {})[row.source] = row.to_json()
    return {"days": by_day, "all": ledger.totals()}


def ledger_text(ledger: Ledger, days: int) -> str:
    """A table: a line for each camera and day, then the sums."""
    from edge_agent.outbox.ledger import day_text

    lines = [("day (UTC)", "camera", "produced", "delivered", "queued", "dropped")]
    lines += [(day_text(row.day), row.source, *counts(row.to_json())) for row in newest(ledger, days)]
    lines += [("all days", source, *counts(sums)) for source, sums in sorted(ledger.totals().items())]
    if len(lines) == 1:
        return "nothing was read yet"
    widths = [max(len(line[n]) for line in lines) for n in range(5)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), line[1].ljust(widths[1])] + [line[n].rjust(widths[n]) for n in (2, 3, 4)])
        + f"  {line[5]}".rstrip()
        for line in lines
    )


def counts(row: dict[str, Any]) -> tuple[str, str, str, str]:
    """Produced, delivered, queued, and dropped with its reasons, as text."""
    dropped = row["dropped"]
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(dropped.items()) if count)
    total = sum(dropped.values())
    return str(row["produced"]), str(row["delivered"]), str(row["queued"]), f"{total} ({reasons})" if total else "0"


def letter_json(letter: DeadLetter) -> dict[str, Any]:
    """One message that was given up; what is no text in its payload is escaped."""
    payload = letter.message.payload.decode("utf-8", errors="backslashreplace")
    return {
        "at": rfc3339(letter.died_at),
        "topic": letter.message.topic,
        "reason": letter.reason,
        "detail": letter.detail,
        "payload": payload,
    }


def letters_text(letters: list[DeadLetter]) -> str:
    """Three lines for each: when and where, why, and how the payload begins."""
    if not letters:
        return "no message was given up"
    blocks = []
    for letter in map(letter_json, letters):
        payload = letter["payload"]
        begin = payload if len(payload) <= SHOWN_CHARS else f"{payload[:SHOWN_CHARS]}... ({len(payload)} characters)"
        blocks.append(f"{letter['at']}  {letter['topic']}  {letter['reason']}\n  {letter['detail']}\n  {begin}")
    return "\n".join(blocks)
