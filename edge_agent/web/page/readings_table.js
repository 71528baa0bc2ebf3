// Readings table: what was read last, filtered by a text, page by page, and as a CSV file.

import { ask } from "./door.js";
import { button, icon, labelled, make, put, switchOf } from "./element.js";
import * as feed from "./feed.js";
import { clock, number } from "./format.js";
import { named, t } from "./texts.js";
import { verdictMark } from "./verdict.js";

const ROWS = 15;
const TYPING_MS = 250;
const CALM_MS = 1000; // rows are not put in faster than anyone can read
const COLUMNS = ["product_name", "lot", "expiry_date", "serial_number"];

export class ReadingsTable {
  constructor() {
    this.source = localStorage.getItem("table") ?? "readings";
    this.query = "";
    this.cursor = null;
    this.older = false;
    const search = make("input", {
      type: "search",
      placeholder: t("table.filter_hint"),
      oninput: () => this.#typed(search.value),
    });
    this.csv = make("a.button", { download: true }, icon("down"), make("span", {}, "CSV"));
    this.body = make("tbody");
    this.status = make("p.quiet", { role: "status" });
    this.more = button(t("table.older"), () => this.#load(true));
    this.latest = button(t("table.latest"), () => this.#load(false), { sign: "again" });
    this.element = make(
      "section.readings",
      { "aria-label": t("table.title") },
      make(
        "div.table-tools",
        {},
        switchOf(
          "table",
          t("table.title"),
          [
            ["readings", t("table.readings")],
            ["items", t("table.items")],
          ],
          this.source,
          (value) => this.#from(value),
        ),
        labelled(t("table.filter"), search),
        this.csv,
      ),
      make(
        "div.scroll",
        { tabindex: "0", role: "group", "aria-label": t("table.title") },
        make(
          "table",
          {},
          make(
            "thead",
            {},
            make(
              "tr",
              {},
              [
                t("table.time"),
                t("table.camera"),
                t("table.verdict"),
                ...COLUMNS.map((name) => named("field", name)),
                t("table.lines"),
                t("table.confidence"),
              ].map((words) => make("th", { scope: "col" }, words)),
            ),
          ),
          this.body,
        ),
      ),
      make("div.table-foot", {}, this.status, this.latest, this.more),
    );
    this.offs = ["reading", "item"].map((kind) => feed.on(kind, () => this.#fresh(kind)));
    this.#load(false);
  }

  close() {
    clearTimeout(this.typing);
    clearTimeout(this.calm);
    this.offs.forEach((off) => off());
  }

  #from(source) {
    localStorage.setItem("table", source);
    this.source = source;
    this.#load(false);
  }

  #typed(text) {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => {
      this.query = text.trim();
      this.#load(false);
    }, TYPING_MS);
  }

  #fresh(kind) {
    if (`${kind}s` !== this.source || this.older || this.calm || !this.#seen()) return;
    this.calm = setTimeout(() => {
      this.calm = null;
      if (!this.older && !document.hidden) this.#load(false);
    }, CALM_MS);
  }

  /** Whether any of it is on screen: what nobody sees is not asked for. */
  #seen() {
    const { top, bottom } = this.element.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  }

  async #load(older) {
    const asked = (this.asked = Symbol("asked"));
    const words = new URLSearchParams({ limit: ROWS });
    if (this.query) words.set("query", this.query);
    this.csv.href = `/v1/${this.source}.csv${this.query ? `?${new URLSearchParams({ query: this.query })}` : ""}`;
    if (older && this.cursor !== null) words.set("before", this.cursor);
    try {
      const answer = await ask(`/v1/${this.source}?${words}`);
      if (asked !== this.asked) return;
      const rows = answer[this.source];
      this.cursor = answer.next;
      this.older = older;
      put(this.body, rows.map(row));
      this.status.textContent = rows.length ? "" : this.query ? t("table.none_found") : t("table.none");
      this.more.disabled = answer.next === null || answer.next === undefined;
      this.latest.hidden = !older;
    } catch (error) {
      if (asked === this.asked) this.status.textContent = error.message;
    }
  }
}

function row(said) {
  const value = (name) => said.fields.find((field) => field.name === name);
  const confidence = said.lines.length
    ? said.lines.reduce((sum, line) => sum + line.confidence, 0) / said.lines.length
    : null;
  const cell = (field) =>
    make(
      "td",
      {},
      field
        ? [
            field.value || field.text || "?",
            field.certain === false &&
              make(
                "span.doubt-mark",
                { title: field.flags.map((flag) => named("flag", flag)).join(", ") },
                icon("warn", t("live.doubt")),
              ),
          ]
        : make("span.quiet", {}, "–"),
    );
  return make(
    "tr",
    {},
    make(
      "td.figure",
      {},
      make("time", { datetime: said.captured_at ?? said.last_seen_at }, clock(said.captured_at ?? said.last_seen_at)),
    ),
    make("td", {}, said.camera),
    make("td", {}, verdictMark(said.verdict)),
    COLUMNS.map((name) => cell(value(name))),
    make("td.figure", {}, String(said.lines.length)),
    make("td.figure", {}, number(confidence, 2)),
  );
}
