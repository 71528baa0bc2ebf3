// Chart: a few lines over time, small, drawn as SVG; gaps where nothing was known.

import { draw, make, put } from "./element.js";
import { NOTHING, clock, figure, number } from "./format.js";
import { language, t } from "./texts.js";

const WIDTH = 320;
const HEIGHT = 96;
const LEFT = 34;
const BOTTOM = 16;
const TOP = 6;
const COLOURS = 5;

/** A tile with a title, the newest figure and a chart. `lines` are [{name, values}], `at` unix seconds of each value. */
export class Chart {
  constructor({ title, unit, digits = null, note = "" }) {
    this.format = (value) => (value === null ? NOTHING : digits === null ? figure(value) : number(value, digits));
    this.unit = unit;
    this.title = title;
    this.figure = make("p.tile-figure");
    this.legend = make("ul.legend");
    this.svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", preserveAspectRatio: "none" });
    this.cursor = draw("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    this.axis = make("div.axis", { "aria-hidden": "true" });
    this.plot = make(
      "div.plot",
      { onpointermove: (event) => this.#point(event), onpointerleave: () => this.#unpoint() },
      this.svg,
      this.axis,
    );
    this.element = make(
      "article.tile",
      {},
      make("header", {}, make("h3", {}, title), this.figure),
      this.plot,
      this.legend,
      note && make("p.quiet", {}, note),
    );
  }

  /** Draws the last `seconds`. `shade` are the times (same length as `at`) at which something was wrong. */
  set(at, seconds, lines, shade = null) {
    this.at = at;
    this.lines = lines;
    this.start = at.at(-1) - seconds;
    this.seconds = seconds;
    const values = lines.flatMap((line) => line.values.filter(Number.isFinite));
    const most = ceiling(Math.max(...values, 0));
    const x = (index) => this.#x(at[index]);
    const y = (value) => TOP + (HEIGHT - BOTTOM - TOP) * (1 - value / most);
    put(
      this.svg,
      shade &&
        spans(shade).map(([from, to]) =>
          draw("rect", {
            class: "shade",
            x: x(from),
            y: TOP,
            width: Math.max(1, x(to) - x(from)),
            height: HEIGHT - BOTTOM - TOP,
          }),
        ),
      [0, 0.5, 1].map((share) =>
        draw("line", { class: "grid", x1: LEFT, x2: WIDTH, y1: y(share * most), y2: y(share * most) }),
      ),
      lines.map((line, index) =>
        draw("path", {
          class: `line c${index % COLOURS}`,
          d: path(line.values, gaps(at), x, y),
          "vector-effect": "non-scaling-stroke",
        }),
      ),
      this.cursor,
    );
    put(this.axis, this.#labels(most));
    this.svg.setAttribute("aria-label", this.#summary(values));
    this.#figures(at.length - 1);
  }

  #x(at) {
    return LEFT + ((WIDTH - LEFT) * (at - this.start)) / this.seconds;
  }

  #labels(most) {
    const label = (text, name, left, top) => {
      const one = make(`span.${name}`, {}, text);
      if (left !== null) one.style.left = `${left}%`;
      if (top !== null) one.style.top = `${top}%`;
      return one;
    };
    const high = ((HEIGHT - BOTTOM - TOP) / HEIGHT) * 100;
    const start = (LEFT / WIDTH) * 100;
    return [
      ...[1, 0.5, 0].map((share) =>
        label(tick(most * share), "value", null, (TOP / HEIGHT) * 100 + high * (1 - share)),
      ),
      ...[0, 0.5, 1].map((share, place) =>
        label(
          clock(this.start + share * this.seconds, { seconds: false }),
          `when.w${place}`,
          place === 2 ? null : start + (100 - start) * share,
          null,
        ),
      ),
    ];
  }

  #summary(values) {
    if (!values.length) return t("chart.empty", { title: this.title });
    const words = {
      title: this.title,
      least: this.format(Math.min(...values)),
      most: this.format(Math.max(...values)),
      unit: this.unit,
    };
    return t("chart.summary", words);
  }

  /** The figures at one place in time; at the newest place that has them where `index` is the last. */
  #figures(index, exactly = false) {
    const value = (line) => (exactly ? line.values[index] : line.values.findLast(Number.isFinite)) ?? null;
    const several = this.lines.length > 1;
    put(
      this.figure,
      several ? "" : [this.format(this.lines.length ? value(this.lines[0]) : null), make("span.unit", {}, this.unit)],
      exactly && make("span.unit.when", {}, clock(this.at[index])),
    );
    put(
      this.legend,
      several &&
        this.lines.map((line, place) =>
          make(
            "li",
            {},
            make(`span.key.c${place % COLOURS}`, { "aria-hidden": "true" }),
            make("span", {}, line.name),
            make("b", {}, this.format(value(line))),
            make("span.unit", {}, this.unit),
          ),
        ),
    );
  }

  #point(event) {
    if (!this.at?.length) return;
    const box = this.svg.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * WIDTH;
    const index = nearest(this.at, this.start + ((place - LEFT) / (WIDTH - LEFT)) * this.seconds);
    const x = this.#x(this.at[index]);
    for (const [name, value] of [
      ["x1", x],
      ["x2", x],
      ["visibility", "visible"],
    ])
      this.cursor.setAttribute(name, value);
    this.#figures(index, true);
  }

  #unpoint() {
    this.cursor.setAttribute("visibility", "hidden");
    if (this.at) this.#figures(this.at.length - 1);
  }
}

function tick(value) {
  return new Intl.NumberFormat(language(), {
    maximumFractionDigits: 2,
    notation: value >= 10_000 ? "compact" : "standard",
  }).format(value);
}

/** The next of 1, 2, 2.5, 5 x 10^n: a round top for an axis. */
function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value) ?? 10 * power;
}

/** Whether more time than usual lies before each place. */
function gaps(at) {
  const steps = at.slice(1).map((time, index) => time - at[index]);
  const usual = [...steps].sort((a, b) => a - b)[Math.floor(steps.length / 2)];
  return [false, ...steps.map((step) => step > 4 * usual)];
}

function path(values, breaks, x, y) {
  let pen = "M";
  const parts = [];
  values.forEach((value, index) => {
    if (!Number.isFinite(value)) {
      pen = "M";
      return;
    }
    if (breaks[index]) pen = "M";
    parts.push(`${pen}${x(index).toFixed(1)} ${y(value).toFixed(1)}`);
    pen = "L";
  });
  return parts.join("");
}

function nearest(times, wanted) {
  return times.reduce(
    (best, time, index) => (Math.abs(time - wanted) < Math.abs(times[best] - wanted) ? index : best),
    0,
  );
}

/** [from, to] of each run of true. */
function spans(flags) {
  const found = [];
  flags.forEach((flag, index) => {
    if (!flag) return;
    if (found.length && found.at(-1)[1] === index - 1) found.at(-1)[1] = index;
    else found.push([index, index]);
  });
  return found;
}
