"""The page as people use it: a real Chromium on the page of a real agent that reads labels with real models."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from edge_agent.last_words import LastWords, find_last_words
from edge_agent.patterns import Pattern
from edge_agent.settings.date_rule import ALIASES
from edge_agent.settings.expected import Rule
from tests.broker import Broker, wait_until
from tests.web.page_site import LABELS, PASSWORD, RECOGNISER, PageSite

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WIDE, PANEL, SMALL_PANEL, PHONE = (1280, 800), (1024, 600), (800, 480), (390, 844)
VIEWS = ("live", "health", "teach", "calibrate", "doctor")
WAIT_MS = 60_000  # the machine that tests run on is busy
LOTS = [label.lot for label in LABELS[:3]]

# functions for the browser; what they give stands at their head
CHECK, FOCUS = (
    "".join(line for line in (Path(__file__).parent / file).open(encoding="utf-8") if not line.startswith("//"))
    for file in ("page_check.js", "page_focus.js")
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageSite]:
    """One agent for all; the run before it ended without a word, on another boot."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    folder = tmp_path_factory.mktemp("page")
    broker = Broker(folder).start()
    try:
        site = PageSite(folder, broker)
        words = find_last_words(site.config, {})
        words.parent.mkdir()
        LastWords(words, "the-boot-before")
        with site.running():
            yield site
    finally:
        broker.kill()


@pytest.fixture(scope="module")
def browser(site: PageSite) -> Iterator[Browser]:
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


class Watch:
    """What a page asked for and complained of since `begin`."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.begin()
        page.on("request", self._asked)
        page.on("requestfailed", lambda request: self.ended.append(request.url))
        page.on("console", lambda line: self.complaints.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def begin(self) -> None:
        self.requests: list[Request] = []
        self.ended: list[str] = []
        self.complaints: list[str] = []

    def _asked(self, request: Request) -> None:
        self.requests.append(request)


@pytest.fixture(scope="module")
def opened(browser: Browser, site: PageSite) -> Iterator[Watch]:
    """The page of somebody who gave the password; one for all tests."""
    context = browser.new_context(locale="en-GB", has_touch=True)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.goto(site.address)
    log_in(page)
    expect(page.get_by_role("navigation")).to_be_visible()
    yield Watch(page)
    context.close()


@pytest.fixture
def watch(opened: Watch, site: PageSite) -> Iterator[Watch]:
    """The page loaded anew, as it was never used. It asks no other host for anything, and breaks no rule of its
    policy."""
    opened.begin()
    opened.page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    opened.page.goto(site.address)
    yield opened
    opened.page.unroute_all()
    opened.page.evaluate("localStorage.clear()")
    assert {request.url for request in opened.requests if not request.url.startswith(f"{site.address}/")} == set()
    # an answer that refuses is no fault of the page
    assert [text for text in opened.complaints if not text.startswith("Failed to load resource")] == []


@pytest.fixture
def page(watch: Watch) -> Page:
    return watch.page


def log_in(page: Page, password: str = PASSWORD) -> None:
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def go(page: Page, view: str) -> None:
    """To a view, by its link."""
    page.locator(f'nav a[href="#/{view}"]').click()
    expect(page.locator(f'nav a[href="#/{view}"]')).to_have_attribute("aria-current", "page")


def asked(page: Page, path: str) -> Any:
    """What the door answers to the page itself."""
    return page.evaluate("async path => (await fetch(path)).json()", path)


class TestLogin:
    def test_wrong_password_is_said_the_right_one_opens_by_keyboard_alone_and_signing_out_closes(
        self, browser: Browser, site: PageSite
    ) -> None:
        context = browser.new_context(locale="en-GB")
        page = context.new_page()
        page.goto(f"{site.address}/#/health")
        field = page.get_by_label("Password")
        expect(field).to_be_focused()
        page.keyboard.type("guessed")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("That password is not right.")
        page.keyboard.type(PASSWORD)  # over the wrong one, which is selected
        page.keyboard.press("Enter")
        expect(page.locator('nav a[href="#/health"]')).to_have_attribute("aria-current", "page")

        page.locator("summary").click()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Password")).to_be_visible()
        assert asked(page, "/v1/cameras")["error"]["code"]
        context.close()


class TestLive:
    def test_reading_appears_with_its_fields_and_boxes_stand_on_the_frame_that_they_are_of(self, page: Page) -> None:
        canvas = page.locator(".picture canvas")
        expect(canvas).to_have_attribute("data-lines", re.compile("[1-9]"))
        seq = int(str(canvas.get_attribute("data-seq")))
        lot = page.locator(".fields dd").first
        expect(lot).to_have_text(re.compile("|".join(LOTS)))
        drawn = page.evaluate(
            """() => { const c = document.querySelector(".picture canvas"), d = c.getContext("2d");
                const pixels = d.getImageData(0, 0, c.width, c.height).data; let green = 0;
                for (let i = 0; i < pixels.length; i += 4)
                    if (pixels[i] === 95 && pixels[i + 1] === 224 && pixels[i + 2] === 196) green += 1;
                return green; }"""
        )
        assert drawn > 200  # the outlines of fields
        readings = asked(page, "/v1/readings?limit=50")["readings"]
        assert seq in {reading["seq"] for reading in readings}

    def test_items_pass_by_with_crop_and_time_and_open_by_keyboard(self, page: Page) -> None:
        card = page.locator(".strip button").first
        card.wait_for()
        page.wait_for_function("() => document.querySelector('.strip button img')?.naturalWidth > 0")
        card.focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("Lot")
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)

    def test_table_is_filtered_and_taken_along_as_csv(self, page: Page) -> None:
        lot = LOTS[0]
        page.locator(".readings").scroll_into_view_if_needed()
        page.locator("label", has_text="Readings").last.click()
        page.get_by_label("Filter").fill(lot.lower())
        rows = page.locator(".readings tbody tr")
        expect(rows.filter(has_not_text=lot)).to_have_count(0)
        assert rows.count() >= 1
        with page.expect_download() as started:
            page.get_by_role("link", name="CSV").click()
        text = Path(started.value.path()).read_text(encoding="utf-8-sig")
        found = list(csv.DictReader(io.StringIO(text)))
        assert found and all(lot in json.dumps(row) for row in found)
        page.get_by_label("Filter").fill("no such text")
        expect(page.locator(".readings [role=status]")).to_have_text("Nothing that was read holds this text.")

    def test_page_that_nobody_sees_fetches_nothing(self, page: Page, watch: Watch) -> None:
        expect(page.locator(".picture canvas")).to_have_attribute("data-lines", re.compile("[1-9]"))
        hide = """hidden => {
            Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }"""
        page.evaluate(hide, True)
        wait_until(lambda: turned(page, watch.ended, "/v1/live") and turned(page, watch.ended, "/stream"), "both end")
        before = len(watch.requests)
        shown = page.locator(".picture canvas").get_attribute("data-seq")
        page.wait_for_timeout(1500)
        assert [request.url for request in watch.requests[before:]] == []
        page.evaluate(hide, False)
        expect(page.locator(".picture canvas")).not_to_have_attribute("data-seq", str(shown))

    def test_lost_connection_is_said_and_comes_back_by_itself(self, page: Page) -> None:
        expect(page.locator(".state-chip")).to_have_text("Running")
        page.route("**/v1/live", lambda route: route.abort())
        page.reload()
        expect(page.get_by_role("alert")).to_contain_text("No connection to the device")
        page.unroute("**/v1/live")
        expect(page.locator(".lost")).to_be_hidden()
        expect(page.locator(".state-chip")).to_have_text("Running")


class TestHealth:
    def test_state_broker_charts_and_the_cause_of_the_last_restart_are_shown(self, page: Page) -> None:
        go(page, "health")
        expect(page.locator(".state-word")).to_have_text("Running")
        expect(page.locator(".facts")).to_contain_text("connected")
        expect(page.locator(".facts")).to_contain_text("power was lost")
        expect(page.locator(".events")).to_contain_text("Power lost")
        for title in ("Frames read", "Latency, median", "Memory", "Load", "Outbox"):
            tile = page.locator(".tile", has=page.get_by_role("heading", name=title, exact=True))
            expect(tile.locator("path.line").first).to_have_attribute("d", re.compile("^M"))
        latency = page.locator(".tile", has_text="Latency")
        expect(latency.locator(".legend")).to_contain_text("find text")
        page.locator("label", has_text="24 h").click()
        expect(page.locator(".tile").first).to_be_visible()

    def test_broker_that_is_away_is_said(self, page: Page, site: PageSite) -> None:
        go(page, "health")
        site.broker.kill()
        try:
            expect(page.locator(".facts .bad").first).to_be_visible()
        finally:
            site.broker.start()
        expect(page.locator(".facts .good")).to_have_text("connected")


class TestTeach:
    def test_region_is_drawn_turned_moved_by_keys_and_removed(self, page: Page) -> None:
        go(page, "teach")
        held(page)
        x, y, width, height = picture_box(page)
        page.mouse.move(x + 0.2 * width, y + 0.3 * height)
        page.mouse.down()
        page.mouse.move(x + 0.5 * width, y + 0.5 * height, steps=4)
        page.mouse.move(x + 0.7 * width, y + 0.8 * height)
        page.mouse.up()
        region = page.get_by_role("button", name=re.compile("^Region roi1"))
        left, top, wide, high = shares(page, "roi1")
        assert (left, top, wide, high) == pytest.approx((0.2, 0.3, 0.5, 0.5), abs=0.02)
        region.focus()
        page.keyboard.press("Shift+ArrowLeft")
        assert shares(page, "roi1")[0] == pytest.approx(left - 0.05, abs=0.005)
        page.get_by_role("button", name="Lower right corner of roi1").focus()
        page.keyboard.press("Shift+ArrowUp")
        assert shares(page, "roi1")[3] == pytest.approx(high - 0.05, abs=0.005)
        expect(page.get_by_role("button", name="Lower right corner of roi1")).to_be_focused()
        page.locator("label", has_text=re.compile("^90°$")).click()
        expect(page.locator(".roi-arrow")).to_have_attribute("style", re.compile("rotate\\(270deg\\)"))
        page.get_by_label("Name", exact=True).fill("label")
        page.keyboard.press("Enter")
        page.get_by_role("button", name=re.compile("^Region label")).focus()
        page.keyboard.press("Delete")
        expect(page.locator(".regions")).to_have_text("None: the whole picture is read.")

    def test_region_is_drawn_with_a_finger(self, page: Page) -> None:
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        go(page, "teach")
        held(page)
        x, y, width, height = picture_box(page)
        touches = page.context.new_cdp_session(page)
        for kind, share in (("touchStart", 0.2), ("touchMove", 0.5), ("touchMove", 0.8)):
            point = {"x": x + share * width, "y": y + share * height}
            touches.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        touches.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        found = shares(page, "roi1")
        assert found == pytest.approx((0.2, 0.2, 0.6, 0.6), abs=0.03)

    def test_expectation_is_rehearsed_tried_found_to_fail_and_rolled_back(self, page: Page) -> None:
        go(page, "teach")
        held(page)
        lot = page.locator(".read-texts li", has_text=re.compile("|".join(LOTS))).first
        lot.get_by_role("button", name="Expect").click()
        mask = page.get_by_label("Text or mask")
        assert re.fullmatch(r"[A-Z9-]+", mask.input_value())
        counts = page.locator(".rehearsal .counts p b")
        expect(page.locator(".rehearsal")).to_contain_text("frames with text")
        said = [int(count) for count in counts.all_inner_texts()]
        # those with the label whose form it is
        assert sum(said) > 0 and said[0] > 0, page.locator(".rehearsal").inner_text()
        page.get_by_label("How").select_option("text")
        mask.fill("X-000")
        expect(counts.first).to_have_text("0")
        assert int(counts.nth(1).inner_text()) > 0
        expect(page.locator(".examples li").first).to_contain_text("X-000")

        page.get_by_role("button", name="Save and try").click()
        trial = page.locator(".trial")
        expect(trial).to_contain_text("on trial")
        expect(trial).to_contain_text("are in force")

        go(page, "live")
        expect(page.locator(".now .verdict-band")).to_have_text("FAIL")
        expect(page.locator(".reasons")).to_contain_text("X-000")
        card = page.locator(".strip .card.fail").first
        expect(card).to_contain_text("FAIL")
        card.click()
        expect(page.get_by_role("dialog").locator("img")).to_be_visible()
        expect(page.get_by_role("dialog").locator(".reasons")).to_contain_text("X-000")
        page.get_by_role("button", name="Close").click()

        go(page, "teach")
        page.get_by_role("button", name="Roll back").click()
        expect(page.locator(".rules")).to_have_text("Nothing: no item is verified.")
        go(page, "live")
        expect(page.locator(".now .verdict-band")).to_have_text("Read")

    def test_mask_that_is_none_is_refused_with_the_reason(self, page: Page) -> None:
        go(page, "teach")
        page.get_by_role("button", name="Add by hand").click()
        page.get_by_label("Text or mask").fill("/[A-/")
        page.get_by_role("button", name="Save and try").click()
        expect(page.locator(".save-bar [role=alert]")).to_contain_text("pattern")
        page.get_by_role("button", name="Discard").click()
        expect(page.locator(".rules")).to_have_text("Nothing: no item is verified.")

    def test_rules_come_back_from_the_form_as_they_were(self, page: Page) -> None:
        rules = [
            {"field": "lot", "text": "A1"},
            {"field": "print.lot", "pattern": "L99"},
            {"text": "Made in"},
            {"date": "expiry_date >= today + 90d"},
            {"date": "manufacture_date <= today"},
            {"date": "expiry > mfg + 1y"},
            {"field": "lot", "one_of": ["A1", "A2"]},
            {"gs1": ["01", "17"]},
            {"field": "code.expiry", "equals": "print.expiry"},
            {"field": "serial_number"},
            {"field": "product_name", "catalogue": "Epoxy"},
        ]
        whole = [
            Rule.model_validate_json(json.dumps(rule)).model_dump(mode="json") for rule in rules
        ]  # as the door gives them
        form = "async rules => { const { chosen, written } = await import('/page/rules.js'); return RULES; }"
        assert page.evaluate(form.replace("RULES", "rules.map(rule => written(chosen(rule)))"), whole) == rules
        short = [{"date": "expiry >= today"}, {"field": "code.serial", "text": "1"}]
        kinds = page.evaluate(form.replace("RULES", "rules.map(rule => chosen(rule).field)"), short)
        assert kinds == [ALIASES["expiry"], f"code.{ALIASES['serial']}"]

    def test_patch_says_what_differs_and_a_region_keeps_its_rules_under_another_name(self, page: Page) -> None:
        roi = {"x": 0.1, "y": 0.1, "width": 0.5, "height": 0.5, "angle_deg": "auto", "expected": [{"field": "lot"}]}
        before = {"rois": {"kept": roi, "turned": roi, "old": roi, "gone": roi}, "expected": [{"field": "lot"}]}
        wish: dict[str, Any] = {
            "rois": {"kept": roi, "turned": {**roi, "angle_deg": 90}, "new": roi},
            "expected": [{"field": "lot"}],
        }
        form = "async ([one, other]) => (await import('/page/camera_patch.js')).patchOf('line1', one, other)"
        turned = {key: value for key, value in wish["rois"]["turned"].items() if key != "expected"}
        rois = {"old": None, "gone": None, "turned": turned, "new": roi}
        assert page.evaluate(form, [before, wish]) == {"cameras": {"line1": {"rois": rois}}}
        assert page.evaluate(form, [before, before]) is None

    def test_mask_that_is_proposed_fits_the_text_that_it_was_made_of(self, page: Page) -> None:
        texts = [text for label in LABELS for text in (label.lot, label.serial)]
        texts += ["Ab-12", "a", "*7?", "\\x", "9-/é", "ÄÖ 12ß", "ⅷ٣", "L4711 b", "/x/", "12/27"]
        form = "async texts => { const { maskOf } = await import('/page/rules.js'); return texts.map(maskOf); }"
        masks = page.evaluate(form, texts)
        assert [text for text, mask in zip(texts, masks, strict=True) if not Pattern.parse(mask).matches(text)] == []
        assert masks[texts.index("A7K2093")] == "A9A9999"


class TestCalibrate:
    def test_it_is_started_watched_refused_and_its_report_read(self, page: Page, site: PageSite) -> None:
        go(page, "calibrate")
        page.get_by_role("checkbox", name=RECOGNISER).wait_for()
        for model in page.get_by_role("checkbox", name=re.compile("-det|minilm")).all():
            model.uncheck()
        page.get_by_role("button", name="Start calibrating").click()
        progress = page.get_by_role("region", name="Calibration under way")
        expect(progress).to_contain_text("42 %")
        expect(progress).to_contain_text(f"{RECOGNISER}: ranges")
        expect(page.locator(".state-chip")).to_have_text("Calibrating")
        site.calibrated.touch()
        expect(page.locator(".outcome")).to_contain_text("It would read worse.")
        expect(progress).to_be_hidden()
        page.get_by_role("button", name=f"Report: {RECOGNISER}").click()
        report = page.frame_locator("dialog iframe")
        expect(report.get_by_role("heading")).to_have_text("Refused: it would read worse")
        assert report.get_by_role("heading").evaluate("h => getComputedStyle(h).color") == "rgb(0, 128, 128)"
        page.get_by_role("button", name="Close").click()

    def test_what_was_promoted_is_rolled_back_to_the_one_before_and_to_float(self, page: Page) -> None:
        go(page, "calibrate")
        model = page.locator(".models li", has_text=RECOGNISER)
        expect(model).to_contain_text("INT8")
        model.get_by_role("button", name="Roll back").click()
        expect(page.locator(".outcome")).to_contain_text(f"{RECOGNISER}: now")
        model.get_by_role("button", name="Back to float").click()
        expect(page.locator(".outcome")).to_have_text(f"{RECOGNISER}: now float.")
        expect(model.get_by_role("button", name="Roll back")).to_have_count(0)


class TestDoctor:
    def test_findings_come_worst_first_and_the_bundle_is_one_file_without_the_password(
        self, page: Page, site: PageSite, tmp_path: Path
    ) -> None:
        go(page, "doctor")
        page.get_by_role("button", name="Examine").click()
        rows = page.locator(".findings li")
        rows.first.wait_for()
        verdicts = [text.splitlines()[0] for text in rows.all_inner_texts()]
        assert verdicts == sorted(verdicts, key=["wrong", "warning", "good"].index)
        with page.expect_download() as started:
            page.get_by_role("link", name="Support bundle").click()
        started.value.save_as(tmp_path / "bundle")
        with tarfile.open(tmp_path / "bundle") as bundle:
            assert len(bundle.getnames()) > 2


class TestEverywhere:
    def test_every_control_has_a_name_every_picture_a_text_and_nothing_sticks_out(self, page: Page) -> None:
        for view in VIEWS:
            go(page, view)
            expect(page.locator("main > *")).to_have_count(1)
            for width, height in (PHONE, SMALL_PANEL, PANEL, WIDE):
                page.set_viewport_size({"width": width, "height": height})
                assert page.evaluate(CHECK) == [], (view, width)

    def test_keyboard_leads_through_the_page_in_its_order_and_shows_where_it_is(self, page: Page) -> None:
        page.locator(".strip button").first.wait_for()
        page.evaluate("document.activeElement.blur()")
        reached = []
        for _ in range(12):
            page.keyboard.press("Tab")
            reached.append(page.evaluate(FOCUS))
        names = [where["name"] for where in reached]
        assert names[0] == "Skip to the content"
        assert [name for name in names if name in ("Live", "Health", "Teach", "Calibrate", "Doctor")] == [
            "Live",
            "Health",
            "Teach",
            "Calibrate",
            "Doctor",
        ]
        assert all(where["seen"] for where in reached), reached

    def test_card_that_is_replaced_hands_the_keyboard_on(self, page: Page) -> None:
        expect(page.locator('nav a[href="#/live"]')).to_be_visible()  # the page's texts are there
        name = page.evaluate("""async () => {
            const { Strip } = await import("/page/strip.js");
            const strip = new Strip();
            const add = (id, value) => strip.add({ id, at: "2026-11-30T10:00:00Z", verdict: "PASS", reasons: [],
                fields: [{ name: "lot", value }], lines: [], crop: null });
            document.body.append(strip.element);
            add("a", "L1");
            add("b", "L2");
            strip.list.children[1].querySelector("button").focus();
            add("a", "L3");
            const name = document.activeElement.getAttribute("aria-label");
            strip.element.remove();
            return name;
        }""")
        assert "L3" in name

    def test_language_and_brightness_are_switched_and_stay(self, page: Page) -> None:
        page.locator("summary").click()
        page.locator("label", has_text="Dark").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 18, 21)"
        page.get_by_label("Language").select_option("de")
        expect(page.locator('nav a[href="#/health"]')).to_have_text("Zustand")
        page.reload()
        expect(page.locator('nav a[href="#/health"]')).to_have_text("Zustand")
        expect(page.locator(".state-chip")).to_have_text("Läuft")
        assert page.evaluate("document.documentElement.lang") == "de"
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"

    def test_verdict_fields_and_picture_are_on_one_screen_of_a_small_panel(self, page: Page) -> None:
        for width, height in (SMALL_PANEL, PANEL):
            page.set_viewport_size({"width": width, "height": height})
            page.locator(".strip button").first.wait_for()
            for part in (".picture", ".now .verdict-band", ".strip"):
                box = page.locator(part).bounding_box()
                assert box is not None and box["y"] + box["height"] <= height, (part, box)


def held(page: Page) -> None:
    """A picture with text stands still."""
    expect(page.get_by_role("button", name="Next picture")).to_be_visible()


def picture_box(page: Page) -> tuple[float, float, float, float]:
    page.locator(".picture").scroll_into_view_if_needed()
    box = page.locator(".picture").bounding_box()
    assert box is not None
    return box["x"], box["y"], box["width"], box["height"]


def shares(page: Page, region: str) -> tuple[float, ...]:
    """Left, top, width and height of a region, as shares of the picture."""
    expect(page.locator(f'[data-part="{region}"]')).to_be_visible()
    found = page.evaluate(
        """region => {
            const picture = document.querySelector(".picture").getBoundingClientRect();
            const box = document.querySelector(`[data-part="${region}"]`).getBoundingClientRect();
            const across = [box.left - picture.left, box.width].map((length) => length / picture.width);
            const down = [box.top - picture.top, box.height].map((length) => length / picture.height);
            return [across[0], down[0], across[1], down[1]];
        }""",
        region,
    )
    return tuple(found)


def turned(page: Page, urls: list[str], part: str) -> bool:
    """Whether an address with `part` is among them, after the browser's news were looked at."""
    page.wait_for_timeout(10)
    return any(part in url for url in urls)
