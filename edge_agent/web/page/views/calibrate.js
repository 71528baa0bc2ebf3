// Calibrate: start it, watch it, read the report, keep what it made or go back.

import { carryOut } from "../command.js";
import { ask } from "../door.js";
import { button, choice, icon, labelled, make, put, signButton } from "../element.js";
import * as feed from "../feed.js";
import { lasting } from "../format.js";
import { named, t } from "../texts.js";

export function calibrateView() {
  return new CalibrateView();
}

class CalibrateView {
  constructor() {
    this.progress = make("section.progress-box", {
      "aria-label": t("calibrate.progress"),
      "aria-live": "polite",
      hidden: true,
    });
    this.models = make("ul.models");
    this.wanted = make("fieldset.checks");
    this.outcome = make("div.outcome", { role: "status" });
    this.source = choice([["recorded", t("calibrate.recorded")]], "recorded", () => {});
    this.count = make("input", { type: "number", min: 10, max: 2000, step: 10, value: 60, inputmode: "numeric" });
    this.dry = make("input", { type: "checkbox" });
    this.start = button(t("calibrate.start"), () => this.#start(), { sign: "calibrate", kind: "primary" });
    this.element = make(
      "div.calibrate",
      {},
      make("h1", {}, t("view.calibrate")),
      make("p.quiet", {}, t("calibrate.what")),
      this.progress,
      make(
        "section.card-box",
        { "aria-label": t("calibrate.start") },
        this.wanted,
        make(
          "div.form-row",
          {},
          labelled(t("calibrate.source"), this.source),
          labelled(t("calibrate.count"), this.count),
        ),
        make("label.check", {}, this.dry, make("span", {}, t("calibrate.dry"))),
        make("div.actions", {}, this.start),
        this.outcome,
      ),
      make("h2", {}, t("calibrate.models")),
      this.models,
    );
    this.offs = [feed.on("calibration", (said) => this.#show(said))];
    this.#load();
  }

  close() {
    this.closed = true;
    this.offs.forEach((off) => off());
  }

  async #load() {
    try {
      const [said, { cameras }] = await Promise.all([ask("/v1/calibration"), ask("/v1/cameras")]);
      cameras.forEach(({ name }) =>
        this.source.append(make("option", { value: `camera:${name}` }, t("calibrate.camera", { name }))),
      );
      this.#show(said);
    } catch (error) {
      this.outcome.textContent = error.message;
    }
  }

  #show({ progress, models }) {
    this.progress.hidden = !progress;
    this.start.disabled = Boolean(progress) || this.busy === true;
    if (progress) this.#progress(progress);
    const names = models.map(({ model }) => model).join();
    if (names !== this.names) {
      this.names = names;
      put(
        this.wanted,
        make("legend", {}, t("calibrate.which")),
        models.map(({ model }) =>
          make(
            "label.check",
            {},
            make("input", { type: "checkbox", name: "model", value: model, checked: true }),
            make("span", {}, model),
          ),
        ),
      );
    }
    const said = JSON.stringify(models);
    if (said !== this.said)
      put(
        this.models,
        models.map((model) => this.#model(model)),
      );
    this.said = said;
  }

  #progress({ model, step, percent, started_at: started }) {
    const words = [model, step].filter(Boolean).join(": ");
    if (!this.bar) {
      this.bar = make("progress", { max: 100, "aria-label": t("calibrate.progress") });
      this.words = make("p.progress-words");
      put(this.progress, this.words, this.bar);
    }
    this.bar.value = percent;
    const since = Number.isFinite(started) ? ` · ${lasting(Date.now() / 1000 - started)}` : "";
    put(this.words, make("b", {}, `${percent} %`), ` ${words}${since}`);
  }

  #model({ model, active, previous, report }) {
    const act = (words, sign, toFloat) =>
      button(words, () => this.#rollBack(model, toFloat), { sign, "aria-label": `${words}: ${model}` });
    return make(
      "li",
      {},
      make(
        "div",
        {},
        make("b", {}, model),
        make(
          "p.quiet",
          {},
          active ? t("calibrate.int8", { id: shortId(active) }) : t("calibrate.float"),
          previous && previous !== active ? ` · ${t("calibrate.before", { id: shortId(previous) })}` : "",
        ),
      ),
      make(
        "div.actions",
        {},
        report &&
          button(t("calibrate.report"), () => showReport(model, report), {
            "aria-label": `${t("calibrate.report")}: ${model}`,
          }),
        active && act(previous ? t("calibrate.back") : t("calibrate.to_float"), "again", !previous),
        active && previous && act(t("calibrate.to_float"), null, true),
      ),
    );
  }

  #start() {
    const models = [...this.wanted.querySelectorAll("input:checked")].map((box) => box.value);
    if (!models.length) {
      this.outcome.textContent = t("calibrate.none_chosen");
      return;
    }
    const [source, camera] = this.source.value.split(":");
    this.#run({
      models,
      source,
      count: Number(this.count.value) || 60,
      dry_run: this.dry.checked,
      ...(camera && { camera }),
    });
  }

  async #run(args) {
    this.busy = this.start.disabled = true;
    put(this.outcome, t("calibrate.started"));
    await this.#wait("calibrate", args, ({ outcomes, notes }) => [
      outcomes.map((one) => this.#outcome(one, args)),
      notes.map((note) => make("p.quiet", {}, note)),
    ]);
    this.busy = false;
    this.start.disabled = !this.progress.hidden;
  }

  /** How it ended; what only tried and passed can be kept: the same again, which finds ranges and inputs ready. */
  #outcome({ model, verdict, summary, reasons }, args) {
    const kind = { promoted: "good", passed: "warn", refused: "bad" }[verdict] ?? "warn";
    const sign = { good: "pass", warn: "wait", bad: "fail" }[kind];
    return make(
      "article",
      { class: `told ${kind}` },
      make("p", {}, make(`span.mark.${kind}`, {}, icon(sign), t(`outcome.${verdict}`)), ` ${model}`),
      make("p", {}, summary),
      make(
        "ul",
        {},
        reasons.map((reason) => make("li", {}, reason)),
      ),
      verdict === "passed" &&
        button(t("calibrate.promote"), () => this.#run({ ...args, models: [model], dry_run: false }), {
          sign: "pass",
          "aria-label": `${t("calibrate.promote")}: ${model}`,
        }),
    );
  }

  async #rollBack(model, toFloat) {
    put(this.outcome, t("calibrate.going_back", { model }));
    await this.#wait("rollback", { model, to_float: toFloat }, ({ active }) =>
      t("calibrate.gone_back", { model, id: active ? shortId(active) : t("calibrate.float") }),
    );
  }

  async #wait(name, args, told) {
    try {
      const reply = await carryOut(name, args, () => !this.closed);
      put(
        this.outcome,
        reply.state === "done"
          ? told(reply.result ?? {})
          : make("p.problem", {}, icon("warn"), reply.reason ?? named("command", reply.state)),
      );
      this.#show(await ask("/v1/calibration"));
    } catch (error) {
      put(this.outcome, make("p.problem", {}, icon("warn"), error.message));
    }
  }
}

function shortId(artefact) {
  return artefact.split("-")[0].replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d).*/, "$1-$2-$3 $4:$5");
}

/** The report of a model, over the page. */
function showReport(model, address) {
  const dialog = make(
    "dialog.report",
    { "aria-label": `${t("calibrate.report")}: ${model}`, onclose: () => dialog.remove() },
    make(
      "header",
      {},
      make("h2", {}, model),
      make("a", { href: address, target: "_blank", rel: "noopener" }, t("calibrate.own_window")),
      signButton("close", t("close"), () => dialog.close()),
    ),
    make("iframe", { src: address, sandbox: true, title: `${t("calibrate.report")}: ${model}` }),
  );
  document.body.append(dialog);
  dialog.showModal();
}
