// Regions: drawn on the picture with a mouse or a finger, moved by their middle and sized by their corners; with the
// keyboard by arrow keys. Coordinates are shares of the picture, 0 to 1.

import { icon, make, put } from "./element.js";
import { t } from "./texts.js";

const LEAST = 0.03; // of the picture's side
const STEP = 0.005;
const CORNERS = { nw: [0, 0], ne: [1, 0], se: [1, 1], sw: [0, 1] };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** `changed()` after every change, `selected()` after another region was chosen; `rois` by name is changed in place. */
export class RoiEditor {
  constructor(changed, selected) {
    this.rois = {};
    this.selected = null;
    this.changed = changed;
    this.onSelect = selected;
    this.element = make("div.rois", {
      role: "group",
      "aria-label": t("teach.regions"),
      onpointerdown: (event) => this.#press(event),
    });
  }

  /** Shows these regions. */
  set(rois) {
    this.rois = rois;
    if (!(this.selected in rois)) this.selected = Object.keys(rois)[0] ?? null;
    this.draw();
  }

  select(name) {
    this.selected = name;
    this.draw();
    this.onSelect();
  }

  /** A new region in the middle, for those who do not draw. */
  add(box = { x: 0.3, y: 0.3, width: 0.4, height: 0.4 }) {
    const name = this.#freeName();
    this.rois[name] = { ...rounded(box), angle_deg: "auto" };
    this.select(name);
    this.changed();
    return name;
  }

  remove(name) {
    delete this.rois[name];
    this.select(Object.keys(this.rois)[0] ?? null);
    this.changed();
  }

  draw() {
    const focused = this.element.contains(document.activeElement) ? document.activeElement.dataset.part : null;
    put(
      this.element,
      Object.entries(this.rois).map(([name, roi]) => this.#box(name, roi)),
    );
    if (focused) this.element.querySelector(`[data-part="${CSS.escape(focused)}"]`)?.focus();
  }

  #freeName() {
    let count = 1;
    while (`roi${count}` in this.rois) count += 1;
    return `roi${count}`;
  }

  #box(name, roi) {
    const chosen = name === this.selected;
    const angle = typeof roi.angle_deg === "number" ? roi.angle_deg : null;
    const arrow = make("span.roi-arrow", { "aria-hidden": "true" }, angle === null ? "" : icon("back"));
    if (angle !== null) arrow.style.transform = `rotate(${angle + 180}deg)`;
    const body = make(
      "button.roi",
      {
        type: "button",
        "aria-label": t("teach.region_box", { name }),
        "aria-pressed": String(chosen),
        "data-part": name,
        onkeydown: (event) => this.#key(event, name, null),
      },
      make("span.roi-name", {}, name),
      arrow,
    );
    const corners = chosen
      ? Object.keys(CORNERS).map((corner) =>
          make(`button.corner.${corner}`, {
            type: "button",
            "aria-label": t(`teach.corner_${corner}`, { name }),
            "data-part": `${name}/${corner}`,
            "data-corner": corner,
            onkeydown: (event) => this.#key(event, name, corner),
          }),
        )
      : [];
    const box = make("div.roi-box", { "data-roi": name, class: chosen ? "roi-box chosen" : "roi-box" }, body, corners);
    place(box, roi);
    return box;
  }

  #key(event, name, corner) {
    if (event.key === "Delete" && !corner) {
      this.remove(name);
      return;
    }
    const arrow = ARROWS[event.key];
    if (!arrow) return;
    event.preventDefault();
    const step = STEP * (event.shiftKey ? 10 : 1);
    this.selected = name;
    const before = { ...this.rois[name] };
    this.#apply(
      name,
      corner
        ? sized(before, corner, arrow[0] * step, arrow[1] * step)
        : moved(before, arrow[0] * step, arrow[1] * step),
    );
    this.draw();
    this.changed();
  }

  #apply(name, box) {
    Object.assign(this.rois[name], rounded(box));
  }

  #press(event) {
    if (event.button !== 0) return;
    const area = this.element.getBoundingClientRect();
    const share = (one) => [
      clamp((one.clientX - area.left) / area.width),
      clamp((one.clientY - area.top) / area.height),
    ];
    const start = share(event);
    const name = event.target.closest(".roi-box")?.dataset.roi ?? null;
    const corner = event.target.dataset.corner ?? null;
    const before = name ? { ...this.rois[name] } : null;
    if (name && name !== this.selected) this.select(name);
    const drawn = name
      ? this.element.querySelector(`[data-roi="${CSS.escape(name)}"]`)
      : this.element.appendChild(make("div.roi-box.chosen.new"));
    let box = before;
    const follow = (move) => {
      const [x, y] = share(move);
      if (!name) box = between(start, [x, y]);
      else if (corner) box = sized(before, corner, x - start[0], y - start[1]);
      else box = moved(before, x - start[0], y - start[1]);
      place(drawn, box);
    };
    const end = (last) => {
      this.element.removeEventListener("pointermove", follow);
      for (const kind of ["pointerup", "pointercancel"]) this.element.removeEventListener(kind, end);
      if (!name) drawn.remove();
      if (last.type === "pointercancel" || !box || box === before) return this.draw();
      if (name) {
        this.#apply(name, box);
        this.draw();
        this.changed();
      } else if (box.width >= LEAST && box.height >= LEAST) this.add(box);
    };
    this.element.setPointerCapture(event.pointerId);
    this.element.addEventListener("pointermove", follow);
    for (const kind of ["pointerup", "pointercancel"]) this.element.addEventListener(kind, end);
  }
}

function place(element, { x = 0, y = 0, width = 1, height = 1 }) {
  Object.assign(element.style, {
    left: `${x * 100}%`,
    top: `${y * 100}%`,
    width: `${width * 100}%`,
    height: `${height * 100}%`,
  });
}

function clamp(value, low = 0, high = 1) {
  return Math.min(high, Math.max(low, value));
}

function between([ax, ay], [bx, by]) {
  return { x: Math.min(ax, bx), y: Math.min(ay, by), width: Math.abs(ax - bx), height: Math.abs(ay - by) };
}

function moved({ x = 0, y = 0, width = 1, height = 1 }, dx, dy) {
  return { x: clamp(x + dx, 0, 1 - width), y: clamp(y + dy, 0, 1 - height), width, height };
}

function sized({ x = 0, y = 0, width = 1, height = 1 }, corner, dx, dy) {
  const [right, bottom] = CORNERS[corner];
  const x1 = right ? x : clamp(x + dx, 0, x + width - LEAST);
  const y1 = bottom ? y : clamp(y + dy, 0, y + height - LEAST);
  const x2 = right ? clamp(x + width + dx, x + LEAST, 1) : x + width;
  const y2 = bottom ? clamp(y + height + dy, y + LEAST, 1) : y + height;
  return { x: x1, y: y1, width: x2 - x1, height: y2 - y1 };
}

/** To a ten-thousandth, and never over the edge. */
function rounded({ x, y, width, height }) {
  const round = (value) => Math.round(value * 10_000) / 10_000;
  const left = round(x);
  const top = round(y);
  return { x: left, y: top, width: round(Math.min(width, 1 - left)), height: round(Math.min(height, 1 - top)) };
}
