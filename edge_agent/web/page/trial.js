// Trial: what became of the settings that were saved: tried for a while, then in force or rolled back.

import { ask } from "./door.js";
import { button, icon, make, put } from "./element.js";
import * as feed from "./feed.js";
import { lasting } from "./format.js";
import { t } from "./texts.js";

const TICK_MS = 1000;

/** `changed(rolledBack)` is called when other settings than before are in force. */
export class Trial {
  constructor(changed) {
    this.changed = changed;
    this.words = make("p.trial-words");
    this.left = make("p.quiet");
    this.bar = make("progress", { max: 100, "aria-label": t("trial.title"), hidden: true });
    this.back = button(t("trial.roll_back"), () => this.#rollBack(), { sign: "again" });
    this.said = make("div", { role: "status" }, this.words);
    this.element = make(
      "section.trial",
      { "aria-label": t("trial.title"), hidden: true },
      this.said,
      this.back,
      this.left,
      this.bar,
    );
    this.off = feed.on("config", (reported) => this.#show(reported));
    ask("/v1/config/reported").then(
      (reported) => this.#show(reported),
      () => {},
    );
  }

  close() {
    this.off();
    clearInterval(this.ticking);
  }

  /** The settings of this version were sent. */
  watch(version) {
    this.watched = version;
    if (this.reported?.version === version) this.#show(this.reported);
    else this.#say("wait", t("trial.sent"));
  }

  #show(reported) {
    const before = this.reported;
    this.reported = reported;
    const { code, detail, version, trial, active_version: active, refused } = reported;
    clearInterval(this.ticking);
    this.bar.hidden = true;
    this.left.textContent = "";
    this.first ??= reported.at;
    const over = (code === 400 || code === 500) && reported.at === this.first; // it was told when it happened
    if (over || (version === null && active === null)) {
      this.element.hidden = true;
      return;
    }
    const why = [detail, ...(refused ?? []).map(({ key, why: text }) => `${key}: ${text}`)].filter(Boolean).join("; ");
    const told = {
      200: ["pass", t("trial.in_force", { version })],
      202: ["wait", t("trial.on_trial", { version })],
      400: ["fail", t("trial.refused", { version, why })],
      500: ["fail", t("trial.rolled_back", { version, why })],
    };
    this.#say(...(told[code] ?? ["warn", why]));
    this.back.hidden = code === 400 || (code === 500 && active === null);
    if (code === 202) this.#count(trial);
    const other = before && (before.active_version !== active || before.code !== code);
    if (other && code !== 400) this.changed(code === 500 || active === null);
  }

  #say(sign, words) {
    this.element.hidden = false;
    this.element.className = `trial ${sign}`;
    put(this.words, icon(sign), make("span", {}, words));
  }

  #count(trial) {
    if (!Number.isFinite(trial?.remaining_s)) return;
    const until = performance.now() + 1000 * trial.remaining_s; // this machine's time of day may be another one
    const whole = Math.max(1, trial.trial_s);
    const tick = () => {
      const left = Math.max(0, (until - performance.now()) / 1000);
      this.bar.value = 100 * (1 - left / whole);
      this.left.textContent = t("trial.left", { time: lasting(left) });
    };
    this.bar.hidden = false;
    tick();
    this.ticking = setInterval(tick, TICK_MS);
  }

  async #rollBack() {
    this.back.disabled = true;
    try {
      await ask("/v1/config/rollback", { method: "POST", body: {} });
    } catch (error) {
      this.left.textContent = error.message;
    }
    this.back.disabled = false;
  }
}
