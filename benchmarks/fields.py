"""Fields: how well lines of labels become fields; macro-F1 per class and the values of each.

    python benchmarks/fields.py LINES.jsonl [--draws N] [--no-encoder] [--misses] [--json]

LINES.jsonl has one object a line: `clean` and `noised` text, `label` (a field's name, or `other` for none), `value`
(normalised, or null) and, where known, `ambiguous`. Each text is read alone, as one line, without layout, in both
forms. The clock stands at --today, so that figures do not age.

With --draws N the clean lines are bent N times more, each time otherwise: `drawn` counts all of these together, and
says the mean of their macro-F1, the least and the most. One draw moves it by 0.02 on a set of 200 lines.

A file of lines `text|name=value;name=value` measures lines with several fields: how many of the fields are found with
their values, how many beside them are told, and how many lines are read wholly and rightly.

A value counts as right when it is equal; 2027-08-31 with `month_precision` equals 2027-08, and units are compared
by amount. `silent` counts the worst: a wrong value without a flag that tells doubt.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from noise import noised

from edge_agent.backends.ort import OrtBackend
from edge_agent.records import Field, Quad, TextBox, TextLine
from edge_agent.settings.fields import FieldsConfig
from edge_agent.stages.field_extractor import FieldExtractor
from edge_agent.stages.text_encoder import TextEncoder

ROOT = Path(__file__).resolve().parents[1]
FORMS = ("clean", "noised")
IN_BASE = {"mg": 0.001, "g": 1, "kg": 1000, "ml": 1, "cl": 10, "dl": 100, "l": 1000}


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The labelled lines of a file: JSON Lines, or `label|language|text|value` whose noised form is made here."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in lines]
    rows = []
    for line in lines:
        label, language, text, *value = line.split("|")
        rows.append({"label": label, "lang": language, "clean": text, "noised": noised(text), "value": "".join(value)})
    return rows


def read_several(path: Path) -> list[tuple[str, dict[str, str]]] | None:
    """The lines of a file about several fields on a line, and what each says; None for a file of another kind."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        text, bar, said = line.rpartition("|")
        pairs = [pair.partition("=") for pair in said.split(";")]
        if not bar or not all(equals for _, equals, _ in pairs):
            return None
        rows.append((text, {name: value for name, _, value in pairs}))
    return rows


def score_several(extractor: FieldExtractor, rows: Sequence[tuple[str, dict[str, str]]]) -> dict[str, Any]:
    tally: Counter[str] = Counter()
    misses = []
    for text, wanted in rows:
        fields = extractor.extract([text_line(text)])
        right = {name for name, value in wanted.items() if any(f.name == name and same_value(value, f) for f in fields)}
        beside = [f for f in fields if f.name not in right]
        tally.update(fields=len(wanted), right=len(right), beside=len(beside), lines=1)
        tally["silent"] += sum(not doubtful(f) and bool(f.value) for f in beside if f.name in wanted)
        tally["whole"] += len(right) == len(wanted) and not beside
        if len(right) < len(wanted) or beside:
            misses.append(
                {"text": text, "label": "", "want": wanted, "got": "; ".join(shown(f.name, f) for f in fields)}
            )
    return {**tally, "misses": misses}


def text_line(text: str) -> TextLine:
    """A line that stands alone, its height and width made up."""
    corners = np.array([[0, 0], [400, 0], [400, 30], [0, 30]], np.float32)
    return TextLine(text, 1.0, TextBox(Quad(corners), 1.0))


def predicted(fields: Sequence[Field]) -> tuple[str, Field | None]:
    """The class of a line: its first field's name."""
    return (fields[0].name, fields[0]) if fields else ("other", None)


def same_value(wanted: str, got: Field) -> bool:
    """Whether the field's value is the wanted one, in whichever unit or precision it is spelled."""
    if got.value == wanted:
        return True
    if len(wanted) == 7 and "month_precision" in got.flags and got.value.startswith(wanted):
        return True
    return _amount(wanted) is not None and _amount(wanted) == _amount(got.value)


def _amount(value: str) -> tuple[float, bool] | None:
    number, _, unit = value.partition(" ")
    try:
        return round(float(number) * IN_BASE[unit], 6), unit in ("mg", "g", "kg")
    except (KeyError, ValueError):
        return None


def doubtful(field: Field) -> bool:
    """Whether the field itself says that it may be wrong; a year that is printed alone is none of that."""
    return not replace(field, flags=tuple(flag for flag in field.flags if flag != "year_precision")).certain


def macro_f1(pairs: Sequence[tuple[str, str]]) -> tuple[float, dict[str, float]]:
    """Mean F1 over the classes that occur in the truth, and F1 per class."""
    f1 = {}
    for name in sorted({wanted for wanted, _ in pairs}):
        right = sum(w == g == name for w, g in pairs)
        said, true = sum(g == name for _, g in pairs), sum(w == name for w, _ in pairs)
        f1[name] = 2 * right / (said + true) if said + true else 0.0
    return sum(f1.values()) / len(f1), f1


def drawn(rows: Sequence[dict[str, Any]], draws: int) -> list[dict[str, Any]]:
    """The rows once for each draw, their clean text bent otherwise in each."""
    return [{**row, "draw": n, "drawn": noised(row["clean"], n)} for n in range(1, draws + 1) for row in rows]


def score(extractor: FieldExtractor, rows: Sequence[dict[str, Any]], form: str) -> dict[str, Any]:
    """Values counted over all rows; F1 is the mean of the draws' where the rows are of several."""
    misses = []
    pairs: dict[int, list[tuple[str, str]]] = {}
    values: dict[str, Counter[str]] = {}
    for row in rows:
        name, field = predicted(extractor.extract([text_line(row[form])]))
        pairs.setdefault(row.get("draw", 0), []).append((row["label"], name))
        verdict = "class" if name != row["label"] else "right"
        if row.get("value"):
            tally = values.setdefault(row["label"], Counter())
            verdict = value_verdict(row, name, field)
            tally[verdict] += 1
        if verdict != "right":
            misses.append(
                {"text": row[form], "label": row["label"], "want": row.get("value"), "got": shown(name, field)}
            )
    means, of_classes = zip(*map(macro_f1, pairs.values()), strict=True)
    return {
        "macro_f1": round(statistics.mean(means), 4),
        "draws": [round(mean, 4) for mean in means],
        "f1": {name: round(statistics.mean(f1[name] for f1 in of_classes), 3) for name in of_classes[0]},
        "values": {name: dict(tally) for name, tally in values.items()},
        "misses": misses,
    }


def value_verdict(row: dict[str, Any], name: str, field: Field | None) -> str:
    """right, flagged (wrong or missing, and it says so), silent (wrong, and it does not) or none."""
    if field is None or name != row["label"]:
        return "none"
    if same_value(row["value"], field):
        return "right"
    return "flagged" if doubtful(field) or not field.value else "silent"


def shown(name: str, field: Field | None) -> str:
    return name if field is None else f"{name} {field.value!r} {' '.join(field.flags)}".strip()


def make_extractor(today: str, *, encoder: bool) -> FieldExtractor:
    now = datetime.fromisoformat(today).replace(tzinfo=timezone.utc).timestamp()
    model = ROOT / "engines" / "minilm-l6-v2"
    text_encoder = TextEncoder(OrtBackend(2).load(model / "model.onnx"), model / "tokenizer.json") if encoder else None
    return FieldExtractor(FieldsConfig(), text_encoder, lambda: now)


def show(form: str, result: dict[str, Any], *, misses: bool) -> None:
    draws = result["draws"]
    of = f", mean of {len(draws)} draws, {min(draws):.3f} to {max(draws):.3f}" if len(draws) > 1 else ""
    print(f"\n{form}: macro-F1 {result['macro_f1']:.3f}{of}")
    for name, f1 in result["f1"].items():
        tally = result["values"].get(name)
        counts = (
            "  ".join(f"{key} {tally[key]}" for key in ("right", "flagged", "silent", "none") if key in tally)
            if tally
            else ""
        )
        print(f"  {name:18} F1 {f1:.3f}  {counts}")
    for miss in result["misses"] if misses else ():
        print(f"    {miss['text']!r}: want {miss['label']} {miss['want']}, got {miss['got']}")


def show_several(result: dict[str, Any], args: argparse.Namespace) -> int:
    if args.json:
        print(json.dumps(result, ensure_ascii=False))
        return 0
    print(
        f"{result['lines']} lines, {result['whole']} wholly right; {result['fields']} fields, {result['right']} right, "
        f"{result['beside']} told beside them, {result['silent']} of those wrong and without a flag"
    )
    for miss in result["misses"] if args.misses else ():
        print(f"    {miss['text']!r}: want {miss['want']}, got {miss['got']}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", type=Path, help="labelled lines, JSON Lines")
    parser.add_argument("--today", default="2026-11-30", help="where the clock stands (default %(default)s)")
    parser.add_argument("--draws", type=int, default=0, help="bend the clean lines so many times more")
    parser.add_argument("--no-encoder", action="store_true", help="rules alone")
    parser.add_argument("--misses", action="store_true", help="list every text not read right")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    args = parser.parse_args()
    several = read_several(args.lines) if args.lines.suffix == ".txt" else None
    if several is not None:
        return show_several(score_several(make_extractor(args.today, encoder=not args.no_encoder), several), args)
    rows = read_rows(args.lines)
    began = time.perf_counter()
    extractor = make_extractor(args.today, encoder=not args.no_encoder)
    started_s = time.perf_counter() - began
    results: dict[str, Any] = {}
    began = time.perf_counter()
    for form in FORMS:
        results[form] = score(extractor, rows, form)
    per_line_ms = (time.perf_counter() - began) * 1e3 / (len(rows) * len(FORMS))
    if args.draws:
        results["drawn"] = score(extractor, drawn(rows, args.draws), "drawn")
    results |= {"lines": len(rows), "start_s": round(started_s, 3), "ms_per_line": round(per_line_ms, 3)}
    if args.json:
        print(json.dumps(results, ensure_ascii=False))
        return 0
    print(f"{len(rows)} lines, start {started_s:.2f} s, {per_line_ms:.2f} ms a line read alone")
    for form in (form for form in (*FORMS, "drawn") if form in results):
        show(form, results[form], misses=args.misses)
    return 0


if __name__ == "__main__":
    sys.exit(main())
