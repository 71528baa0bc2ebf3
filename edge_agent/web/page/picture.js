// Picture: what a camera sees, as it comes, with what was read in it drawn over it.

import { DoorError } from "./door.js";
import { make } from "./element.js";
import * as feed from "./feed.js";
import { frames } from "./frames.js";
import { drawReading, drawRegions } from "./overlay.js";
import { t } from "./texts.js";

const PAIR_MS = 350; // a frame waits so long for its reading
const KEPT = 40; // readings, by frame number
const RETRY_MS = 1500;

/** Shows one camera after the other in `element`; `shown(frame, reading)` is called after each drawing. */
export class Picture {
  constructor(shown = () => {}) {
    this.canvas = make("canvas", { role: "img", "aria-label": t("live.picture") });
    this.message = make("p.picture-message", { role: "status" });
    this.element = make("div.picture", {}, this.canvas, this.message);
    this.texts = false;
    this.said = this.troubled = "";
    this.shown = shown;
    this.camera = null;
    this.rois = {};
    this.readings = new Map();
    this.waiting = null;
    this.drawn = null;
    this.offs = [feed.on("reading", (reading) => this.#hear(reading))];
    this.onVisibility = () => (document.hidden ? this.#pause() : this.#run());
    document.addEventListener("visibilitychange", this.onVisibility);
    this.resized = new ResizeObserver(() => this.drawn && this.#draw(this.drawn));
    this.resized.observe(this.element);
  }

  /** From now on the pictures of this camera. */
  show(camera) {
    if (camera === this.camera) return;
    this.camera = camera;
    this.readings.clear();
    this.#keep(null);
    this.troubled = "";
    this.#say(t("live.waiting"));
    this.#run();
  }

  /** The frame shown stays, and nothing is fetched, until `go`. */
  hold() {
    this.held = true;
    this.#pause();
    clearTimeout(this.patience);
    this.waiting?.bitmap.close();
    this.waiting = null;
  }

  go() {
    this.held = false;
    this.#run();
  }

  /** Draws again, with other settings. */
  again() {
    if (this.drawn) this.#draw(this.drawn);
  }

  /** The frame shown: {seq, width, height, bitmap, reading}; null before the first. */
  get frame() {
    return this.drawn;
  }

  close() {
    this.#pause();
    this.#keep(null);
    this.offs.forEach((off) => off());
    this.resized.disconnect();
    document.removeEventListener("visibilitychange", this.onVisibility);
  }

  /** What is wrong with the camera, said over its last picture; "" nothing. */
  trouble(text) {
    this.troubled = text;
    this.#say(this.said);
  }

  #say(text) {
    this.said = text;
    const shown = this.troubled || text;
    if (this.message.textContent !== shown) this.message.textContent = shown;
    this.message.hidden = !shown;
  }

  #pause() {
    clearTimeout(this.retry);
    this.abort?.abort();
    this.abort = null;
  }

  async #run() {
    this.#pause();
    if (!this.camera || this.held || document.hidden) return;
    const abort = (this.abort = new AbortController());
    const maxSide = Math.min(1280, Math.ceil((this.element.clientWidth || 640) * Math.min(2, devicePixelRatio)));
    try {
      for await (const frame of frames(this.camera, maxSide, abort.signal)) this.#take(frame, abort);
    } catch (error) {
      if (abort.signal.aborted) return;
      if (error instanceof DoorError && error.status === 401) return;
      this.#say(error instanceof DoorError && error.status ? error.message : t("live.no_picture"));
    }
    if (this.abort === abort) this.retry = setTimeout(() => this.#run(), RETRY_MS);
  }

  #hear(reading) {
    if (reading.camera !== this.camera) return;
    this.readings.set(reading.seq, reading);
    if (this.readings.size > KEPT) this.readings.delete(this.readings.keys().next().value);
    if (this.waiting?.seq === reading.seq) this.#settle();
    else if (this.drawn?.seq === reading.seq && !this.drawn.reading) this.#show(this.drawn, reading);
  }

  #take(frame, abort) {
    if (this.abort !== abort) return frame.bitmap.close();
    this.#settle();
    this.waiting = frame;
    if (this.readings.has(frame.seq)) this.#settle();
    else this.patience = setTimeout(() => this.#settle(), PAIR_MS);
  }

  /** The frame that waits is shown, with its reading where that came. */
  #settle() {
    clearTimeout(this.patience);
    const frame = this.waiting;
    if (!frame) return;
    this.waiting = null;
    this.#keep(frame);
    this.#say("");
    this.#show(frame, this.readings.get(frame.seq) ?? null);
  }

  #show(frame, reading) {
    frame.reading = reading;
    this.#draw(frame);
    this.shown(frame, reading);
  }

  #keep(frame) {
    this.drawn?.bitmap.close();
    this.drawn = frame;
    if (!frame) {
      clearTimeout(this.patience);
      this.waiting?.bitmap.close();
      this.waiting = null;
      this.canvas.getContext("2d").clearRect(0, 0, this.canvas.width, this.canvas.height);
    }
  }

  #draw(frame) {
    const ratio = Math.min(2, devicePixelRatio || 1);
    this.element.style.aspectRatio = `${frame.width} / ${frame.height}`;
    this.element.parentElement?.style.setProperty("--ratio", frame.width / frame.height);
    const width = Math.max(1, Math.round(this.element.clientWidth * ratio));
    const height = Math.round((width * frame.height) / frame.width);
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    const context = this.canvas.getContext("2d");
    context.drawImage(frame.bitmap, 0, 0, width, height);
    drawRegions(context, this.rois, ratio);
    if (frame.reading) drawReading(context, frame.reading, width / frame.width, { ratio, texts: this.texts });
    this.canvas.dataset.seq = frame.seq;
    this.canvas.dataset.lines = frame.reading ? frame.reading.lines.length : "";
  }
}
