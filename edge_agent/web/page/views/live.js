// Live: what a camera sees and what was read, the items that passed by, and the readings.

import { ask } from "../door.js";
import { make, put } from "../element.js";
import * as feed from "../feed.js";
import { number } from "../format.js";
import { Picture } from "../picture.js";
import { cropOf } from "../crop.js";
import { goodness, isWhole } from "../reading.js";
import { ReadingsTable } from "../readings_table.js";
import { Strip, fieldList } from "../strip.js";
import { named, t } from "../texts.js";
import { fillBand, verdictKey, whys } from "../verdict.js";

const SAME_FIELDS = 2; // without items: a label that says so much of what the one before said is the same
const CALM_MS = 600; // without items: of the readings in this time the best one is shown

export function liveView() {
  return new Live();
}

class Live {
  constructor() {
    this.cameras = new Map();
    this.camera = null;
    this.picture = new Picture((frame, reading) => this.#shown(frame, reading));
    this.picture.texts = localStorage.getItem("texts") === "all";
    this.strip = new Strip();
    this.table = new ReadingsTable();
    this.crops = new Map();
    this.chooser = make("div.cameras", { role: "group", "aria-label": t("live.cameras") });
    this.band = make("p.verdict-band", { role: "status" });
    this.why = make("ul.reasons");
    this.fields = make("div.fields-box");
    this.foot = make("p.quiet.picture-foot");
    const texts = make("input", {
      type: "checkbox",
      checked: this.picture.texts,
      onchange: () => this.#texts(texts.checked),
    });
    this.element = make(
      "div.live",
      {},
      make("h1.hidden", {}, t("view.live")),
      make(
        "div.live-bar",
        {},
        this.chooser,
        this.foot,
        make("label.check", {}, texts, make("span", {}, t("live.all_texts"))),
      ),
      make("section.stage", { "aria-label": t("live.picture") }, this.picture.element),
      make("section.now", { "aria-label": t("live.now") }, this.band, this.why, this.fields),
      this.strip.element,
      this.table.element,
    );
    this.hasItems = false;
    this.#judge(null);
    this.offs = [
      feed.on("camera", (camera) => this.#camera(camera)),
      feed.on("reading", (reading) => this.#reading(reading)),
      feed.on("item", (item) => this.#item(item)),
    ];
    this.#load();
  }

  close() {
    clearTimeout(this.calm);
    this.offs.forEach((off) => off());
    this.picture.close();
    this.table.close();
  }

  async #load() {
    try {
      const { cameras } = await ask("/v1/cameras");
      cameras.forEach((camera) => this.cameras.set(camera.name, camera));
      const before = localStorage.getItem("camera");
      if (!cameras.length) this.foot.textContent = t("live.no_cameras");
      else this.#choose(this.cameras.has(before) ? before : cameras[0].name);
    } catch (error) {
      this.foot.textContent = error.message;
    }
  }

  #camera(camera) {
    if (!this.camera) return; // not loaded yet
    const { state } = this.cameras.get(camera.name) ?? {};
    this.cameras.set(camera.name, camera);
    if (state !== camera.state) this.#chooser();
    if (camera.name === this.camera) this.#told(camera);
  }

  /** From now on this camera: its pictures, its items. */
  async #choose(name) {
    if (name === this.camera) return;
    if (this.camera) localStorage.setItem("camera", name);
    this.camera = name;
    this.hasItems = false;
    this.crops.clear();
    this.strip.clear();
    this.picture.show(name);
    this.#chooser();
    this.#told(this.cameras.get(name));
    this.#judge(null);
    const { items } = await ask(`/v1/items?${new URLSearchParams({ camera: name, limit: 40 })}`).catch(() => ({
      items: [],
    }));
    for (const item of items.reverse()) this.#item(item);
  }

  #chooser() {
    this.chooser.hidden = this.cameras.size < 2;
    put(
      this.chooser,
      [...this.cameras.values()].map((camera) =>
        make(
          "button.camera",
          {
            type: "button",
            "aria-pressed": String(camera.name === this.camera),
            onclick: () => this.#choose(camera.name),
          },
          make(`span.dot.${camera.state}`, { "aria-hidden": "true" }),
          make("span", {}, camera.name),
          camera.state !== "online" && make("span.quiet", {}, named("camera", camera.state)),
        ),
      ),
    );
  }

  /** What a camera says of itself: below its name, and over its picture where something is wrong. */
  #told(camera) {
    const parts = this.cameras.size > 1 ? [] : [camera.name, named("camera", camera.state)];
    if (Number.isFinite(camera.read_fps)) parts.push(t("live.fps", { fps: number(camera.read_fps, 1) }));
    if (camera.width_px) parts.push(`${camera.width_px} × ${camera.height_px}`);
    this.foot.textContent = parts.join(" · ");
    this.picture.rois = camera.rois;
    const troubled = camera.state !== "online" && camera.state !== "ended";
    this.picture.trouble(
      troubled ? [`${camera.name}: ${named("camera", camera.state)}`, camera.reason].filter(Boolean).join(" – ") : "",
    );
  }

  #texts(all) {
    localStorage.setItem("texts", all ? "all" : "fields");
    this.picture.texts = all;
    this.picture.again();
  }

  /** A frame stands on screen: its crop is kept for the items that it shows. */
  #shown(frame, reading) {
    if (!reading?.lines.length) return;
    this.crops.set(reading.seq, cropOf(frame, reading));
    while (this.crops.size > 12) this.crops.delete(this.crops.keys().next().value);
    if (!this.hasItems) this.#entryOf(reading);
  }

  /** Without items: what is shown is the best of the readings that come within a moment. */
  #reading(reading) {
    if (reading.camera !== this.camera || this.hasItems) return;
    if (!this.best || goodness(reading) > goodness(this.best)) this.best = reading;
    this.calm ??= setTimeout(() => {
      if (!this.hasItems) this.#judge(this.best);
      this.best = this.calm = null;
    }, CALM_MS);
  }

  /** Without items the strip shows readings of whole labels, each label once, as it was read best. */
  #entryOf(reading) {
    const { fields } = reading;
    if (fields.length < SAME_FIELDS || !isWhole(reading)) return;
    const newest = this.strip.entries[0];
    const same =
      newest &&
      fields.filter(({ name, value }) => newest.fields.some((field) => field.name === name && field.value === value))
        .length >= SAME_FIELDS;
    if (same && goodness(reading) <= goodness(newest)) return;
    this.strip.add({
      ...entry(reading),
      id: same ? newest.id : reading.id,
      at: reading.captured_at,
      crop: this.crops.get(reading.seq) ?? null,
    });
  }

  #item(item) {
    if (item.camera !== this.camera) return;
    if (!this.hasItems) this.strip.clear();
    this.hasItems = true;
    this.#judge(item);
    const note = t("item.note", { count: item.n_reads, ms: number(item.decided_after_ms) });
    this.strip.add({ ...entry(item), at: item.last_seen_at, crop: `/v1/items/${item.id}/evidence.jpg`, note });
  }

  #judge(said) {
    fillBand(this.band, said);
    put(
      this.why,
      whys(said?.reasons).map((why) => make("li", {}, why)),
    );
    put(
      this.fields,
      said?.fields.length ? fieldList(said.fields) : null,
      verdictKey(said?.verdict) === "none" && said?.lines.length
        ? make("p.hint", {}, t("live.not_judged"), " ", make("a", { href: "#/teach" }, t("live.say_expected")))
        : null,
    );
  }
}

function entry({ id, camera, verdict, reasons, fields, lines }) {
  return { id, camera, verdict, reasons: reasons ?? [], fields, lines };
}
