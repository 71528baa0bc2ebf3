"""The documents against what is there: every command, option, key, variable, word, file and link that they name."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from edge_agent.__main__ import parser
from edge_agent.calibrate.recipe import Recipe, parse_recipe
from edge_agent.config import Config, patched
from edge_agent.models.spec import ModelSpec
from edge_agent.settings.environment import overrides
from edge_agent.settings.keys import leaves, model_at
from edge_agent.settings.strict_yaml import parse
from tests.conftest import ROOT

DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
# a command in a document or message: up to the end of the line, of the code, or a comment
COMMAND = re.compile(r"(?:\.venv/bin/|(?<![\w/-]))edge-agent ((?:--?)?[a-z<][^`\n#]*)")
CODE = re.compile(r"```.*?\n(.*?)```|`([^`\n]+)`", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CAMERAS = {"cameras": {"line1": {}}, "fields": {"custom": {"lot": {}}}}


def documents() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def code(path: Path) -> Iterator[str]:
    """Everything between backticks: whole blocks, and words in the text."""
    for block, words in CODE.findall(path.read_text(encoding="utf-8")):
        yield block or words


def words_in_text(path: Path) -> list[str]:
    """What stands between single backticks."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.findall(r"`([^`\n]+)`", text)


def sub_parsers(of: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def fault_of(words: list[str]) -> str | None:
    """What is wrong with `edge-agent WORDS`; None where the command line takes its verbs and options."""
    at = parser()
    for word in words:
        below = sub_parsers(at)
        option = word.partition("=")[0]
        if word.startswith("-"):
            if option not in at._option_string_actions:
                return f"{at.prog} has no option {option}"
        elif below:
            if word not in below:
                return f"{at.prog} has no verb {word}; it has {', '.join(below)}"
            at = below[word]
    return None


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command in `text`; `a|b` and `a | b` after edge-agent are one command each."""
    for line in COMMAND.findall(text):
        ended = re.split(r" > | && |; ", line)[0]
        piped = ended.split(" | ")
        for part in piped if all(" " not in part.strip() for part in piped) else piped[:1]:
            words = shlex.split(re.sub(r"[,.:)]+$", "", part.strip()))
            last = words[-1].split("|")
            yield from ([*words[:-1], choice] for choice in last)


def test_a_wrong_command_would_be_found() -> None:
    assert list(commands("`edge-agent run | read`")) == [["run"], ["read"]]
    assert list(commands("`edge-agent config validate|show`")) == [["config", "validate"], ["config", "show"]]
    (right, wrong) = commands(
        "`.venv/bin/edge-agent read a.png --draw out/ | less` edge-agent models fecth --frm DIR\n"
    )
    assert right == ["read", "a.png", "--draw", "out/"]
    assert fault_of(right) is None
    assert fault_of(wrong) == "edge-agent models has no verb fecth; it has list, fetch, verify, add"
    assert fault_of(["read", "--draw=x"]) is None
    assert fault_of(["read", "--darw=x"]) == "edge-agent read has no option --darw"


@documents()
def test_every_command_in_a_document_exists(path: Path) -> None:
    faults = [fault_of(words) for text in code(path) for words in commands(text)]
    assert [fault for fault in faults if fault] == []


def test_every_command_in_a_message_exists() -> None:
    found = [
        words
        for path in sorted((ROOT / "edge_agent").rglob("*.py"))
        for quoted in re.findall(r"`(edge-agent [^`{}]+)`|run:? (edge-agent [^\"'{}]+)", path.read_text("utf-8"))
        for words in commands("".join(quoted))
    ]
    assert len(found) > 10
    assert [fault for fault in map(fault_of, found) if fault] == []


@documents()
def test_every_make_target_in_a_document_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {word for text in code(path) for word in re.findall(r"(?:^|\s|`)make ([a-z0-9-]+)", text)}
    assert named <= targets


@documents()
def test_every_key_of_the_settings_in_a_document_exists(path: Path) -> None:
    keys = [leaf.path for leaf in leaves(Config, CAMERAS)]
    sections = {key[:depth] for key in keys for depth in range(1, len(key))}
    known = {".".join(map(str, key)).replace("cameras.line1.", "cameras.*.") for key in (*keys, *sections)}
    known |= members_shown(path)
    for word in words_in_text(path):
        if ": unknown key" in word:
            continue  # the mistake that a document shows
        match = re.fullmatch(r"([a-z][a-z0-9_]*(?:\.[a-z*<][\w>*]*)+)(?::.*)?", word)
        if (
            match
            and match[1].split(".")[0] in Config.model_fields
            and not match[1].endswith((".md", ".py", ".yaml", ".db", ".db-wal", ".db-shm"))
        ):
            key = re.sub(r"^cameras\.[\w<>*]+", "cameras.*", match[1])
            assert key in known, f"{path.name} names {word}"


def members_shown(path: Path) -> set[str]:
    """`outbox.dropped` and such of the JSON that the document shows."""
    shown = re.findall(r"```json\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
    return {f"{name}.{member}" for block in shown for name, value in json_objects(block) for member in value}


def json_objects(block: str) -> Iterator[tuple[str, dict[str, object]]]:
    for name, value in json.loads(block).items():
        if isinstance(value, dict):
            yield name, value


@documents()
def test_every_variable_of_the_settings_in_a_document_exists(path: Path) -> None:
    for text in code(path):
        for variable in re.findall(r"\bEDGE_AGENT_[A-Z0-9_]+\b(?!_*<)", text):
            if "HOTS" not in variable:  # the mistake that docs/config.md shows
                said = [problem.text for problem in overrides(Config, CAMERAS, {variable: "1"}).problems]
                assert not any("sets no key" in text for text in said), f"{path.name} names {variable}"


@cache
def vocabulary() -> frozenset[str]:
    """Every word of the program, of its settings and of the models' declarations."""
    places = [*(ROOT / "edge_agent").rglob("*.py"), ROOT / "config.yaml", *(ROOT / "engines").glob("*/*.yaml")]
    places += [ROOT / "pyproject.toml", *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    return frozenset(word for place in places for word in re.findall(r"\w+", place.read_text("utf-8")))


@documents()
def test_every_name_in_a_document_is_a_word_of_the_program(path: Path) -> None:
    names = [word for word in words_in_text(path) if re.fullmatch(r"[a-z]+(?:_[a-z0-9]+)+", word)]
    assert [name for name in names if name not in vocabulary()] == []


@documents()
def test_every_file_that_a_document_names_exists(path: Path) -> None:
    here = path.read_text(encoding="utf-8")
    named = [word for word in words_in_text(path) if re.fullmatch(r"[\w.-]+(?:/[\w.-]+)+\.(?:py|md|yaml|toml)", word)]
    made_at_run_time = "demo-out/"
    assert [name for name in named if not name.startswith(made_at_run_time) and not (ROOT / name).exists()] == []
    for link in LINK.findall(re.sub(r"```.*?```", "", here, flags=re.DOTALL)):
        target, _, heading = link.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = path.parent / target if target else path
        assert file.exists(), f"{path.name} links to {link}"
        if heading:
            headings = re.findall(r"^#+ (.*)", file.read_text("utf-8"), re.MULTILINE)
            assert heading in {anchor(text) for text in headings}, f"{path.name} links to {link}"


def anchor(heading: str) -> str:
    """A heading's anchor as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def yaml_blocks() -> list[tuple[str, str]]:
    return [
        (f"{path.name}-{n}", block)
        for path in DOCUMENTS
        for n, block in enumerate(re.findall(r"```yaml\n(.*?)```", path.read_text("utf-8"), re.DOTALL))
    ]


@pytest.mark.parametrize("block", [block for _, block in yaml_blocks()], ids=[name for name, _ in yaml_blocks()])
def test_every_yaml_in_a_document_is_taken(block: str) -> None:
    values = parse(block.encode(), "block")
    if set(values) <= set(Config.model_fields):
        patched(Config(), values)
    elif set(values) <= set(Recipe.model_fields):
        parse_recipe(values, "block")
    else:
        assert set(values) <= set(ModelSpec.model_fields)
        assert all(model_at(ModelSpec, (key,)) is not None for key, value in values.items() if isinstance(value, dict))


def test_tour_of_the_house_names_every_room() -> None:
    tour = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms = [path.name for path in (ROOT / "edge_agent").glob("*.py") if path.name != "__init__.py"]
    rooms += [f"{path.parent.name}/" for path in (ROOT / "edge_agent").glob("*/__init__.py")]
    assert not [room for room in rooms if f"`{room}`" not in tour and f"`edge_agent/{room}`" not in tour]
