// Health: how the device is, in charts over a quarter of an hour or a day, and what happened to it.

import { Chart } from "../chart.js";
import { ask } from "../door.js";
import { icon, make, put, switchOf } from "../element.js";
import * as feed from "../feed.js";
import { clock, lasting, number } from "../format.js";
import { stateKind } from "../shell.js";
import { named, t } from "../texts.js";

const SPANS = {
  "15min": { seconds: 900, points: 180, again_ms: 10_000 },
  "24h": { seconds: 86_400, points: 240, again_ms: 60_000 },
};
const MB = 1 / 1_048_576;
const STAGES = ["detect", "recognise", "decode", "extract", "total"];

/** A tile: which series of the history it draws, by name; `lines` of several, `scale` to its unit. */
const TILES = [
  { key: "fps", unit: "unit.fps", digits: 1, match: /^fps\.(.+)\.processed$/ },
  { key: "latency", unit: "unit.ms", match: /^latency_ms\.(.+)\.p50$/, order: STAGES, group: "stage" },
  { key: "power", unit: "unit.w", match: /^power_w\.(total|gpu\d+|package.*)$/ },
  { key: "energy", unit: "unit.j", match: /^j_per_reading$/ },
  { key: "temperature", unit: "unit.c", digits: 1, match: /^temp_c\.(.+)$/, most: 5 },
  {
    key: "memory",
    unit: "unit.mb",
    digits: 0,
    scale: MB,
    match: /^(process_rss_bytes|gpu_memory_used_bytes|gpu_memory_bytes|ram_used_bytes)(?:\..+)?$/,
    group: "memory",
  },
  { key: "load", unit: "unit.percent", digits: 0, match: /^(cpu_percent|gpu_load_percent)(?:\..+)?$/, group: "load" },
  { key: "outbox", unit: "unit.messages", digits: 0, match: /^outbox\.depth$/, shade: "publisher.connected" },
];

export function healthView() {
  return new HealthView();
}

class HealthView {
  constructor() {
    this.span = localStorage.getItem("span") in SPANS ? localStorage.getItem("span") : "15min";
    this.band = make("section.health-band", { "aria-label": t("health.state") });
    this.facts = make("dl.facts");
    this.charts = new Map(
      TILES.map((tile) => [
        tile.key,
        new Chart({
          title: t(`tile.${tile.key}`),
          unit: t(tile.unit),
          digits: tile.digits ?? null,
          note: tile.shade ? t(`tile.${tile.key}_note`) : "",
        }),
      ]),
    );
    this.tiles = make("div.tiles");
    this.absent = make("p.quiet");
    this.events = make("ol.events");
    this.problem = make("p.problem", { role: "status" });
    this.element = make(
      "div.health",
      {},
      make("h1.hidden", {}, t("view.health")),
      this.band,
      this.facts,
      make(
        "div.section-head",
        {},
        make("h2", {}, t("health.figures")),
        switchOf(
          "span",
          t("health.span"),
          [
            ["15min", t("health.15min")],
            ["24h", t("health.24h")],
          ],
          this.span,
          (span) => this.#over(span),
        ),
      ),
      this.tiles,
      this.absent,
      this.problem,
      make("h2", {}, t("health.events")),
      this.events,
    );
    this.offs = [
      feed.on("health", (health) => this.#state(health)),
      feed.on("telemetry", (telemetry) => this.#facts(telemetry)),
      feed.on("event", () => this.#events()),
    ];
    this.onVisibility = () => !document.hidden && this.#draw();
    document.addEventListener("visibilitychange", this.onVisibility);
    this.#draw();
    this.#events();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.offs.forEach((off) => off());
    document.removeEventListener("visibilitychange", this.onVisibility);
  }

  #over(span) {
    localStorage.setItem("span", span);
    this.span = span;
    this.#draw();
  }

  #state({ pipeline, reason, backend, precision, uptime_s: uptime, last_exit: exit, broker }) {
    const kind = stateKind(pipeline);
    const share = /(\d+) %/.exec(reason ?? "");
    this.broker = broker ?? this.broker;
    put(
      this.band,
      make(
        `p.state-word.${kind}`,
        {},
        icon({ good: "pass", busy: "wait", warn: "warn", bad: "fail" }[kind]),
        named("pipeline", pipeline),
      ),
      make(
        "div.state-why",
        {},
        make("p", {}, reason ?? t(`health.${kind === "good" ? "well" : "no_reason"}`)),
        share && make("progress", { max: 100, value: share[1], "aria-label": reason }),
      ),
      make(
        "p.quiet",
        {},
        [
          backend && `${backend} ${precision ?? ""}`,
          Number.isFinite(uptime) && t("health.up", { time: lasting(uptime) }),
        ]
          .filter(Boolean)
          .join(" · "),
      ),
    );
    this.exit = exit ?? this.exit ?? null;
    this.#restart();
  }

  #restart() {
    if (this.said) this.#facts(this.said);
  }

  #facts(telemetry) {
    this.said = telemetry;
    const {
      outbox,
      publisher,
      power_mode: mode,
      throttled,
      throttled_by: by,
      clock: time,
      ram_total_bytes: ram,
      ram_available_bytes: free,
      disk_free_bytes: disk,
    } = telemetry;
    const rows = [];
    if (publisher)
      rows.push([
        "broker",
        publisher.connected ? t("health.connected") : publisher.cause || t("health.not_connected"),
        publisher.connected ? "good" : "bad",
      ]);
    if (outbox)
      rows.push(["outbox", t("health.waiting", { count: number(outbox.depth) }), outbox.fault ? "bad" : null]);
    if (outbox?.fault) rows.push(["outbox_fault", outbox.fault, "bad"]);
    if (ram)
      rows.push(["ram", t("health.of", { part: number((ram - free) / 1e9, 1), whole: number(ram / 1e9, 1) }), null]);
    if (disk) rows.push(["disk", `${number(disk / 1e9, 1)} GB`, null]);
    if (mode) rows.push(["power_mode", mode, null]);
    if (throttled !== undefined && throttled !== null)
      rows.push(["throttled", throttled ? by.join(", ") || t("yes") : t("no"), throttled ? "warn" : null]);
    if (time)
      rows.push(["clock", t(time.trusted ? "health.clock_set" : "health.clock_unset"), time.trusted ? null : "warn"]);
    if (this.exit) rows.push(["last_exit", this.exit.cause, null]);
    put(
      this.facts,
      rows.map(([name, words, kind]) =>
        make(
          `div${name === "last_exit" ? ".wide" : ""}`,
          {},
          make("dt", {}, t(`fact.${name}`)),
          make("dd", { class: kind }, kind && icon({ good: "pass", warn: "warn", bad: "fail" }[kind]), words),
        ),
      ),
    );
  }

  async #draw() {
    clearTimeout(this.timer);
    const { seconds, points, again_ms: again } = SPANS[this.span];
    const asked = (this.asked = Symbol("asked"));
    try {
      const names =
        "fps,latency_ms,power_w,j_per_reading,temp_c,process_rss_bytes,ram_,gpu_,cpu_percent,outbox,publisher";
      const history = await ask(`/v1/telemetry/history?seconds=${seconds}&points=${points}&names=${names}`);
      if (asked !== this.asked || this.closed) return;
      this.problem.textContent = "";
      this.#tiles(
        history.at.map((time) => Date.parse(time) / 1000),
        seconds,
        history.series,
      );
    } catch (error) {
      if (asked === this.asked) this.problem.textContent = error.message;
    }
    if (!this.closed && !document.hidden) this.timer = setTimeout(() => this.#draw(), again);
  }

  #tiles(at, seconds, series) {
    withRamUsed(series);
    const shown = [];
    const absent = [];
    for (const tile of TILES) {
      const lines = linesOf(tile, series);
      if (!lines.length) {
        absent.push(t(`tile.${tile.key}`));
        continue;
      }
      const chart = this.charts.get(tile.key);
      chart.set(at, seconds, lines, tile.shade && series[tile.shade]?.map((value) => value === 0));
      shown.push(chart.element);
    }
    if (shown.length !== this.tiles.children.length || shown.some((one, index) => one !== this.tiles.children[index]))
      put(this.tiles, shown);
    this.absent.textContent = absent.length ? t("health.absent", { names: absent.join(", ") }) : "";
  }

  async #events() {
    try {
      const { events } = await ask("/v1/events");
      if (this.closed) return;
      put(
        this.events,
        events.map(({ at, kind, text }) =>
          make(
            "li",
            {},
            make("time", { datetime: at }, clock(at)),
            make("b", {}, named("event", kind)),
            make("span", {}, text),
          ),
        ),
      );
      if (!events.length) put(this.events, make("li.quiet", {}, t("health.no_events")));
    } catch (error) {
      this.problem.textContent = error.message;
    }
  }
}

function withRamUsed(series) {
  const { ram_total_bytes: all, ram_available_bytes: free } = series;
  if (all && free)
    series.ram_used_bytes = all.map((total, index) =>
      total === null || free[index] === null ? null : total - free[index],
    );
}

function linesOf(tile, series) {
  const found = Object.entries(series)
    .map(([name, values]) => [tile.match.exec(name), values])
    .filter(([match, values]) => match && values.some(Number.isFinite))
    .map(([match, values]) => ({
      name: match[1] ?? "",
      values: tile.scale ? values.map((value) => (value === null ? null : value * tile.scale)) : values,
    }));
  if (tile.order) found.sort((a, b) => rank(tile.order, a.name) - rank(tile.order, b.name));
  const named_ = found.slice(0, tile.most ?? 5);
  return tile.group ? named_.map((line) => ({ ...line, name: named(tile.group, line.name) })) : named_;
}

function rank(order, name) {
  const place = order.indexOf(name);
  return place < 0 ? order.length : place;
}
