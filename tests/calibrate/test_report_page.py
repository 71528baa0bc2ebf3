from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from typing import Any

import pytest

from edge_agent.calibrate.charts import BAR_PX
from edge_agent.calibrate.findings import MOST_CHANGED, ChangedText, Findings, Size
from edge_agent.calibrate.markup import VOID
from edge_agent.calibrate.report_grounds import group_table
from edge_agent.calibrate.report_page import PARTS, STYLE_FILE, page
from edge_agent.calibrate.report_result import marked
from tests.calibrate.made_findings import MADE_AT, promoted, refused

HOSTILE = "</style><script>alert(1)</script><img src=x onerror=alert(2)>\" ' & \u202e\x00\udcff"


class Parsed(HTMLParser):
    """A page as a browser sees it: elements with attributes, text by the path of elements around it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(html)
        assert self.open == [], "elements that are not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, within: str) -> str:
        return "".join(data for tag, data in self.texts if tag == within)


def with_every_text(value: Any, text: str, keep: frozenset[str]) -> Any:
    """The findings with `text` in place of every string and key, but for the fields in `keep`."""
    if isinstance(value, str):
        return text
    if isinstance(value, dict):
        return {text + str(n): with_every_text(item, text, keep) for n, item in enumerate(value.values())}
    if isinstance(value, tuple):
        return tuple(with_every_text(item, text, keep) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        own = {f.name: getattr(value, f.name) for f in fields(value)}
        changed = {k: v if k in keep else with_every_text(v, text, keep) for k, v in own.items()}
        return replace(value, **changed)
    return value


@pytest.mark.parametrize("findings", [promoted(), refused()], ids=lambda findings: findings.verdict)
def test_text_from_outside_is_harmless_wherever_it_stands(findings: Findings) -> None:
    hostile = with_every_text(findings, HOSTILE, frozenset({"task", "verdict", "jpeg"}))
    parsed = Parsed(page(hostile))
    assert {tag for tag, _ in parsed.elements} & {"script", "iframe", "object", "form", "base", "link"} == set()
    assert len(parsed.of("style")) == 1
    for tag, attributes in parsed.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        assert attributes.get("src", "data:image/jpeg;base64,").startswith("data:image/jpeg;base64,")
        assert attributes.get("href", "#").startswith("#")
    assert "<script>alert(1)</script>" in parsed.text("bdi")
    assert "\\u202e\\u0000\\udcff" in parsed.text("bdi")


def test_policy_lets_nothing_in_or_out() -> None:
    html = page(promoted())
    (policy,) = [meta["content"] for meta in Parsed(html).of("meta") if "http-equiv" in meta]
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy.split("; ") == [
        "default-src 'none'",
        "img-src data:",
        f"style-src 'sha256-{digest}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert html.index("Content-Security-Policy") < html.index("<style>")
    assert not re.search(r"https?://|url\(|@import", html)


def test_the_style_can_stand_inside_a_page() -> None:
    assert "<" not in STYLE_FILE.read_text(encoding="utf-8")


def test_the_verdict_stands_first_in_plain_words() -> None:
    assert Parsed(page(promoted())).text("h1") == (
        "INT8 reads as well and is 1.31× faster: in use since 2026-11-30 14:05 UTC."
    )
    dry = replace(promoted(), verdict="passed", promoted_at=None)
    assert Parsed(page(dry)).text("h1") == "INT8 reads as well and is 1.31× faster. Dry run: nothing was put to use."
    assert Parsed(page(refused())).text("h1") == (
        "Refused: boxes found again 97.2 % (gate: at least 99 %), speed against float 0.96× "
        "(gate: at least 1.05×); FP32 stays."
    )


def test_a_refusal_says_what_to_try_before_anything_else() -> None:
    html = page(refused())
    places = [html.index(words) for words in ("What to try", "Collect frames that show small print", "<main>")]
    assert places == sorted(places)


def test_advice_is_given_once_at_the_top_or_beside_its_gate() -> None:
    advice = "7 of 254 boxes of the float engine are not found"
    assert page(refused()).count(advice) == 1
    top = replace(refused(), advice=(advice,))
    assert page(top).count(advice) == 1
    assert page(top).index(advice) < page(top).index("<main>")


def test_every_link_leads_to_a_part_and_all_parts_follow_in_order() -> None:
    parsed = Parsed(page(promoted()))
    assert [link["href"] for link in parsed.of("a")] == [f"#{key}" for key, _ in PARTS]
    assert [section["id"] for section in parsed.of("section")] == [key for key, _ in PARTS]


def test_screen_readers_get_titles_headers_and_alternatives() -> None:
    parsed = Parsed(page(refused()))
    assert parsed.of("html") == [{"lang": "en"}]
    assert len(parsed.of("caption")) == len(parsed.of("table"))
    assert all(heading.get("scope") in ("col", "row") for heading in parsed.of("th"))
    assert all(picture.get("alt") for picture in parsed.of("img"))
    titles = {title["id"] for title in parsed.of("h2") if "id" in title}
    assert all(section["aria-labelledby"] in titles for section in parsed.of("section"))
    for drawing in parsed.of("svg"):
        assert drawing.get("aria-hidden") == "true" or (drawing.get("role") == "img" and drawing.get("aria-label"))


def test_no_bar_leaves_its_chart() -> None:
    found = re.findall(r'<rect [^>]*x="([\d.-]+)%"[^>]* width="([\d.-]+)%"', page(promoted()) + page(refused()))
    assert len(found) > 100
    assert all(float(x) >= 0 and float(width) > 0 and float(x) + float(width) <= 100.01 for x, width in found)


def test_damage_beyond_the_gates_is_drawn_past_the_mark() -> None:
    row = re.search(r"depthwise\.s8</th>.*?</tr>", page(promoted()))
    assert row is not None
    bar, bound = re.search(r'class="damage".*?width="([\d.]+)%"', row[0]), re.search(r'"bound" x1="([\d.]+)%"', row[0])
    assert bar is not None
    assert bound is not None
    assert float(bar[1]) > float(bound[1])
    assert f'height="{BAR_PX}"' in row[0]


def test_one_extreme_damage_does_not_flatten_the_others() -> None:
    groups = tuple(
        replace(group, damage=damage, gain_ms=None)
        for group, damage in zip(promoted().groups, (900.0, -40.0, 0.5), strict=False)
    )
    widths = re.findall(r'class="(damage|gain)" x="[\d.]+%"[^>]* width="([\d.]+)%"', group_table(groups))
    assert [(css, float(width)) for css, width in widths if float(width) > 10] == [
        ("damage", 85.71),
        ("gain", 14.29),
        ("damage", 14.29),
    ]


def test_only_what_differs_between_two_texts_is_marked() -> None:
    assert marked("LOT B2", "LOT 82") == ("LOT <del>B</del>2", "LOT <ins>8</ins>2")
    assert marked("S/N 1", "S/N 1.") == ("S/N 1", "S/N 1<ins>.</ins>")
    assert marked("<b>", "<i>") == ("&lt;<del>b</del>&gt;", "&lt;<ins>i</ins>&gt;")
    assert marked("gone", "")[1] == '<span class="quiet">nothing found</span>'


def test_lines_beyond_the_bound_are_counted_not_shown() -> None:
    lines = tuple(ChangedText(f"img_{n}.jpg", "a", "b") for n in range(30))
    parsed = Parsed(page(replace(promoted(), changed=lines, changed_count=57)))
    assert "57 lines of the held-out frames came out otherwise; 24 of them are shown." in parsed.text("p")
    assert len([text for tag, text in parsed.texts if tag == "ins"]) == MOST_CHANGED


def test_an_encoders_lines_show_their_classes() -> None:
    lines = (ChangedText("BEST BEFORE 12 AUG", "expiry_date", "product_name"),)
    parsed = Parsed(page(replace(promoted(), task="text_embedding", changed=lines, changed_count=1)))
    assert parsed.text("bdi") == "BEST BEFORE 12 AUGexpiry_dateproduct_name"
    assert parsed.of("del") == []


def test_a_calibration_that_ended_early_has_a_report_too() -> None:
    whole = refused()
    early = Findings(
        model=whole.model,
        task=whole.task,
        variant=whole.variant,
        scheme="tensorrt",
        float_precision="FP16",
        machine=whole.machine,
        verdict="refused",
        calibrated_on=replace(whole.calibrated_on, shapes={}, thumbnails=()),
        before=Size(4_750_112),
        made_at=MADE_AT,
        reasons=("tensor x never moved: no scale can come from it.",),
    )
    parsed = Parsed(page(early))
    assert parsed.text("h1") == "Refused: tensor x never moved: no scale can come from it; FP16 stays."
    said = parsed.text("p")
    for words in ("No INT8 engine came into being", "None was reached.", "None were compared.", "No ranges were"):
        assert words in said


def test_inputs_of_one_shape_are_told_not_drawn() -> None:
    findings = refused()
    same = replace(findings, calibrated_on=replace(findings.calibrated_on, shapes={"1x736x1312x3": 36}))
    parsed = Parsed(page(same))
    assert parsed.of("figure") == []
    assert "Widths of frames: 1312 px, all 36." in parsed.text("p")


def test_a_hash_is_told_once() -> None:
    on = promoted().calibrated_on
    both = replace(promoted(), came_from={"collection": on.digest})
    assert page(both).count(on.digest) == 1


def test_pictures_that_were_not_kept_are_named() -> None:
    bare = Findings.from_json(promoted().to_json())
    parsed = Parsed(page(bare))
    assert parsed.of("img") == []
    assert "img_0000.jpg (picture not kept)" in parsed.text("span")
