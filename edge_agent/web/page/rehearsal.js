// Rehearsal: what the frames read last would have said under other settings, in counts and examples.

import { ask } from "./door.js";
import { make, put } from "./element.js";
import { clock } from "./format.js";
import { t } from "./texts.js";
import { verdictKey, verdictMark, whys } from "./verdict.js";

const TYPING_MS = 400;
const EXAMPLES = 5;
const WORST_FIRST = ["FAIL", "NO_READ", "PASS"];

export class Rehearsal {
  constructor() {
    this.counts = make("div.counts");
    this.bar = make("div.share-bar", { "aria-hidden": "true" });
    this.examples = make("ul.examples");
    this.status = make("p.quiet", { role: "status" });
    this.element = make(
      "section.card-box.rehearsal",
      { "aria-label": t("rehearsal.title") },
      make("h2", {}, t("rehearsal.title")),
      this.status,
      this.counts,
      this.bar,
      this.examples,
    );
    this.#empty();
  }

  close() {
    clearTimeout(this.timer);
    this.abort?.abort();
  }

  /** Soon, with these settings; what was asked before is forgotten. */
  rehearse(camera, rois, expected) {
    const wish = JSON.stringify({ camera, rois, expected });
    if (wish === this.wish) return;
    this.wish = wish;
    this.close();
    if (!camera || !expected.length) return this.#empty();
    this.timer = setTimeout(() => this.#ask(wish), TYPING_MS);
  }

  #empty() {
    this.status.textContent = t("rehearsal.how");
    put(this.counts);
    put(this.bar);
    put(this.examples);
  }

  async #ask(wish) {
    const abort = (this.abort = new AbortController());
    this.element.setAttribute("aria-busy", "true");
    try {
      const said = await ask("/v1/rehearsal", { method: "POST", body: JSON.parse(wish), signal: abort.signal });
      this.#show(said);
    } catch (error) {
      if (abort.signal.aborted) return;
      if (error.status === 429) this.timer = setTimeout(() => this.#ask(wish), TYPING_MS * 2);
      else {
        this.#empty();
        this.status.textContent = error.message;
      }
    }
    this.element.removeAttribute("aria-busy");
  }

  #show({ frames, pass, fail, no_read: noRead, examples }) {
    const counts = [
      ["PASS", pass],
      ["FAIL", fail],
      ["NO_READ", noRead],
    ];
    this.status.textContent = frames ? t("rehearsal.frames", { count: frames }) : t("rehearsal.no_frames");
    put(
      this.counts,
      counts.map(([verdict, count]) =>
        make(`p.${verdictKey(verdict)}`, {}, make("b", {}, String(count)), verdictMark(verdict)),
      ),
    );
    put(
      this.bar,
      counts
        .filter(([, count]) => count)
        .map(([verdict, count]) => {
          const part = make(`span.${verdictKey(verdict)}`);
          part.style.flexGrow = count;
          return part;
        }),
    );
    const telling = [...examples]
      .sort((a, b) => WORST_FIRST.indexOf(a.verdict) - WORST_FIRST.indexOf(b.verdict))
      .slice(0, EXAMPLES);
    put(
      this.examples,
      telling.map((one) =>
        make(
          "li",
          {},
          verdictMark(one.verdict),
          make("time", {}, clock(one.at)),
          make("span", {}, whys(one.reasons).join("; ") || one.text),
        ),
      ),
    );
  }
}
