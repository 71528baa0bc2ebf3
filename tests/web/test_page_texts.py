"""The page's files by themselves: texts in one place, in two languages; nothing from another host, nothing inline."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import cast, get_args

import pytest

from edge_agent.cameras.status import State as CameraState
from edge_agent.messages import PipelineState
from edge_agent.web import app
from tests.conftest import ROOT

PAGE = ROOT / "edge_agent" / "web" / "page"
SCRIPTS = sorted(PAGE.rglob("*.js"))
LANGUAGES = ("de", "en")
GAP = re.compile(r"\{(\w+)\}")


def texts(language: str) -> dict[str, str]:
    return cast(dict[str, str], json.loads((PAGE / "texts" / f"{language}.json").read_text(encoding="utf-8")))


def said_in(script: Path) -> str:
    """The script without comments."""
    return re.sub(r"(?m)^\s*(//|/?\*).*$", "", script.read_text(encoding="utf-8"))


def test_both_languages_say_the_same() -> None:
    german, english = texts("de"), texts("en")
    assert list(german) == list(english)
    for key, text in english.items():
        assert set(GAP.findall(german[key])) == set(GAP.findall(text)), key


def test_every_text_that_the_page_asks_for_is_there_and_no_other() -> None:
    known = set(texts("en"))
    whole = "".join(said_in(script) for script in SCRIPTS)
    asked = set(re.findall(r'\bt\(\s*"([^"]+)"', whole)) | set(re.findall(r'"((?:\w+\.)+\w+)"', whole)) & known
    assert asked <= known
    groups = set(re.findall(r"\bt\(`([\w.]+[._])\$\{", whole)) | {
        f"{group}." for group in re.findall(r'named\("(\w+)"', whole)
    }
    groups |= {"stage.", "memory.", "load."}  # of the charts, named by their row of TILES
    unused = {key for key in known - asked if not any(key.startswith(group) for group in groups)}
    words = {key for key in unused if not re.search(rf'"{re.escape(key)}"', whole)}
    assert words == set()


def test_every_field_and_state_of_the_agent_has_words() -> None:
    known = texts("en")
    assert {f"pipeline.{state}" for state in get_args(PipelineState)} <= set(known)
    assert {f"camera.{state}" for state in get_args(CameraState)} <= set(known)
    flags = re.findall(r"(?m)^\| (`[\w`, ]+`) \|", (ROOT / "docs" / "fields.md").read_text(encoding="utf-8"))
    named = {word for cell in flags for word in re.findall(r"`(\w+)`", cell)}
    assert {word for word in named if f"flag.{word}" not in known and f"field.{word}" not in known} == set()


@pytest.mark.parametrize("path", sorted(p for p in PAGE.rglob("*") if p.is_file()), ids=lambda p: p.name)
def test_nothing_leads_to_another_host_and_nothing_is_inline(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\s\"'`)]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\bstyle=|<style|\bon\w+=\"|javascript:|data:image|innerHTML|\beval\(", text)
    if path.suffix == ".html":
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))


def test_pages_own_policy_allows_no_other_host_and_nothing_inline() -> None:
    policy = dict(part.strip().split(" ", 1) for part in app.CSP.split(";"))
    assert policy["default-src"] == "'self'"
    assert "unsafe" not in app.CSP and "http" not in app.CSP
