// Teach: which part of the picture is read, and what must stand there; rehearsed at once on what was read last, then
// tried like every change of settings: for a while, and back where it does no good.

import { ask } from "../door.js";
import { button, choice, icon, labelled, make, put, signButton, switchOf } from "../element.js";
import * as feed from "../feed.js";
import { Picture } from "../picture.js";
import { certainFields, isWhole } from "../reading.js";
import { RoiEditor } from "../roi_editor.js";
import { ANYWHERE, FIELDS, chosen, kindsFor, proposed, written } from "../rules.js";
import { named, t } from "../texts.js";
import { Rehearsal } from "../rehearsal.js";
import { Trial } from "../trial.js";

const GOOD_FIELDS = 3; // a frame with so many is held by itself
const ANGLES = ["auto", "0", "90", "180", "270"];
const ROI_KEYS = ["x", "y", "width", "height", "angle_deg", "dot_matrix"];

export function teachView() {
  return new TeachView();
}

class TeachView {
  constructor() {
    this.camera = null;
    this.rules = [];
    this.before = { rois: {}, expected: [] };
    this.picture = new Picture((frame, reading) => this.#shown(reading));
    this.editor = new RoiEditor(() => this.#changed(), () => this.#regions());
    this.picture.element.append(this.editor.element);
    this.cameras = make("select", { onchange: () => this.#open(this.cameras.value) });
    this.holder = button(t("teach.hold"), () => this.#hold(!this.picture.held), { "aria-pressed": "false" });
    this.texts = make("ul.read-texts");
    this.regions = make("div.regions");
    this.rows = make("ul.rules");
    this.rehearsal = new Rehearsal();
    this.save = button(t("teach.save"), () => this.#save(), { kind: "primary" });
    this.discard = button(t("teach.discard"), () => this.#open(this.camera));
    this.problem = make("p.problem", { role: "alert" });
    this.trial = new Trial((rolledBack) => (rolledBack || !this.#patch()) && this.#open(this.camera));
    const steps = make(
      "div.teach-steps",
      {},
      make("section.card-box", { "aria-label": t("teach.regions") }, make("h2", {}, t("teach.regions")), this.regions),
      make("section.card-box", { "aria-label": t("teach.expected") }, make("h2", {}, t("teach.expected")), this.rows, button(t("teach.add_rule"), () => this.#add({ field: "lot", kind: "pattern", value: "" }), { sign: "add" })),
      this.rehearsal.element,
      make("section.save-bar", { "aria-label": t("teach.save") }, this.trial.element, this.save, this.discard, this.problem),
    );
    this.element = make(
      "div.teach",
      { inert: true }, // until the settings in force are known
      make("h1.hidden", {}, t("view.teach")),
      make(
        "section.teach-picture",
        { "aria-label": t("live.picture") },
        this.picture.element,
        make("div.actions", {}, labelled(t("table.camera"), this.cameras), this.holder, button(t("teach.add_region"), () => this.editor.add(), { sign: "add" })),
        make("p.quiet", {}, t("teach.draw_how")),
        make("h2", {}, t("teach.read_here")),
        this.texts,
      ),
      steps,
    );
    this.#load();
  }

  close() {
    this.picture.close();
    this.rehearsal.close();
    this.trial.close();
  }

  async #load() {
    try {
      const { cameras } = await ask("/v1/cameras");
      put(this.cameras, cameras.map(({ name }) => make("option", { value: name }, name)));
      const asked = localStorage.getItem("camera");
      const first = cameras.find(({ name }) => name === asked) ?? cameras[0];
      if (!first) this.problem.textContent = t("live.no_cameras");
      else await this.#open(first.name);
    } catch (error) {
      this.problem.textContent = error.message;
    }
  }

  /** The settings of a camera as they are in force. */
  async #open(camera) {
    this.cameras.value = camera;
    this.problem.textContent = "";
    let config;
    try {
      config = await ask("/v1/config");
    } catch (error) {
      this.problem.textContent = error.message;
      return;
    }
    const { rois = {}, expected = [] } = config.cameras?.[camera] ?? {};
    this.before = structuredClone({ rois: rois ?? {}, expected: expected ?? [] });
    this.rules = this.before.expected.map(chosen);
    if (camera !== this.camera) {
      this.camera = camera;
      this.picture.show(camera);
      this.#hold(false);
    }
    this.editor.set(structuredClone(this.before.rois));
    this.#regions();
    this.#rules();
    this.#changed();
    this.element.inert = false;
  }

  #hold(held) {
    if (held) this.picture.hold();
    else this.picture.go();
    this.held = held;
    this.holder.setAttribute("aria-pressed", String(held));
    this.holder.querySelector("span").textContent = t(held ? "teach.next" : "teach.hold");
  }

  #shown(reading) {
    if (!reading?.lines.length) return;
    if (isWhole(reading) && certainFields(reading) >= GOOD_FIELDS) this.#hold(true);
    const named_ = new Set(reading.fields.flatMap((field) => field.lines));
    const rest = reading.lines.filter((line, index) => !named_.has(index));
    put(
      this.texts,
      reading.fields.map((field) => this.#text(field.name, field.value || field.text)),
      rest.map((line) => this.#text(ANYWHERE, line.text)),
    );
  }

  /** A text that was read, to be made an expectation: of the field that it was taken for, or of another. */
  #text(field, value) {
    const select = choice([[ANYWHERE, t("teach.anywhere")], ...this.#fields(field).map((name) => [name, named("field", name)])], field, () => {}, { "aria-label": t("teach.mark_as", { text: value }) });
    const expect = button(t("teach.expect"), () => this.#add(proposed(select.value, value)), { sign: "add", "aria-label": t("teach.expect_text", { text: value }) });
    return make("li", {}, make("span.read-text", {}, value), select, expect);
  }

  #fields(more) {
    return [...new Set([...FIELDS, more].filter(Boolean))];
  }

  #add(rule) {
    const same = this.rules.findIndex((one) => one.field === rule.field && one.kind !== "other" && rule.field !== ANYWHERE);
    if (same >= 0 && rule.value) this.rules[same] = rule;
    else this.rules.push(rule);
    this.#rules();
    this.#changed();
    this.rows.lastElementChild.querySelector("input, select")?.focus({ preventScroll: true });
  }

  #regions() {
    const names = Object.keys(this.editor.rois);
    const name = this.editor.selected;
    if (!names.length) return put(this.regions, make("p.quiet", {}, t("teach.whole")));
    const roi = this.editor.rois[name];
    const angle = String(roi.angle_deg ?? "auto");
    const turn = (value) => {
      roi.angle_deg = value === "auto" ? "auto" : Number(value);
      this.editor.draw();
      this.#changed();
      degrees.value = value === "auto" ? "" : value;
    };
    const degrees = make("input", { type: "number", min: -180, max: 360, step: 1, value: angle === "auto" ? "" : angle, inputmode: "numeric", onchange: () => degrees.value !== "" && turn(degrees.value) });
    const dots = make("input", { type: "checkbox", checked: roi.dot_matrix === true, onchange: () => { roi.dot_matrix = dots.checked; this.#changed(); } });
    const rename = make("input", { value: name, maxlength: 64, pattern: "[A-Za-z0-9_][A-Za-z0-9._\\-]*", onchange: () => this.#rename(name, rename) });
    put(
      this.regions,
      names.length > 1 && make("div.cameras", { role: "group", "aria-label": t("teach.regions") }, names.map((one) => make("button.camera", { type: "button", "aria-pressed": String(one === name), onclick: () => this.editor.select(one) }, one))),
      make("div.form-row", {}, labelled(t("teach.name"), rename), signButton("remove", t("teach.remove_region", { name }), () => this.editor.remove(name))),
      switchOf("angle", t("teach.angle"), ANGLES.map((one) => [one, one === "auto" ? t("teach.angle_auto") : `${one}°`]), ANGLES.includes(angle) ? angle : "other", turn),
      make("div.form-row", {}, labelled(t("teach.degrees"), degrees), make("label.check", {}, dots, make("span", {}, t("teach.dots")))),
    );
  }

  #rename(name, input) {
    const wanted = input.value.trim();
    if (wanted === name) return;
    if (!input.checkValidity() || !wanted || wanted in this.editor.rois) {
      input.value = name;
      return;
    }
    this.editor.rois[wanted] = this.editor.rois[name];
    delete this.editor.rois[name];
    this.editor.select(wanted);
    this.#changed();
  }

  #rules() {
    put(this.rows, this.rules.length ? this.rules.map((rule, index) => this.#rule(rule, index)) : make("li.quiet", {}, t("teach.nothing_expected")));
  }

  #rule(rule, index) {
    const drop = signButton("remove", t("teach.remove_rule", { field: rule.field ? named("field", rule.field) : t("teach.anywhere") }), () => {
      this.rules.splice(index, 1);
      this.#rules();
      this.#changed();
    });
    if (rule.kind === "other") return make("li", {}, make("code", {}, JSON.stringify(written(rule))), drop);
    const again = () => {
      this.#rules();
      this.#changed();
    };
    const field = choice(
      [[ANYWHERE, t("teach.anywhere")], ...this.#fields(rule.field).map((name) => [name, named("field", name)])],
      rule.field,
      (value) => {
        Object.assign(rule, kindsFor(value).includes(rule.kind) ? { field: value } : { field: value, kind: kindsFor(value)[0], value: "" });
        again();
      },
      { "aria-label": t("teach.field") },
    );
    const kind = choice(kindsFor(rule.field).map((one) => [one, t(`kind.${one}`)]), rule.kind, (value) => { rule.kind = value; again(); }, { "aria-label": t("teach.kind") });
    return make("li", {}, field, kind, this.#value(rule), drop, rule.kind === "pattern" && make("p.quiet.mask-how", {}, t("teach.mask_how")));
  }

  #value(rule) {
    if (rule.kind === "read" || rule.kind === "past") return null;
    const days = rule.kind === "left";
    const input = make("input", {
      value: rule.value,
      type: days ? "number" : "text",
      min: days ? 0 : null,
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      "aria-label": t(days ? "teach.days" : "teach.value"),
      placeholder: { pattern: "L9999A", one_of: "A1, A2" }[rule.kind] ?? null,
      oninput: () => {
        rule.value = input.value;
        this.#changed();
      },
    });
    return days ? make("span.days", {}, input, t("unit.d")) : input;
  }

  /** The settings as they stand here. */
  #wish() {
    return { rois: this.editor.rois, expected: this.rules.map(written).filter(Boolean) };
  }

  #patch() {
    const { rois, expected } = this.#wish();
    const patch = {};
    const changed = {};
    for (const name of Object.keys(this.before.rois)) if (!(name in rois)) changed[name] = null;
    for (const [name, roi] of Object.entries(rois)) {
      const wanted = Object.fromEntries(ROI_KEYS.filter((key) => roi[key] !== undefined).map((key) => [key, roi[key]]));
      if (JSON.stringify(wanted) !== JSON.stringify(Object.fromEntries(Object.keys(wanted).map((key) => [key, this.before.rois[name]?.[key]])))) changed[name] = wanted;
    }
    if (Object.keys(changed).length) patch.rois = changed;
    const had = this.before.expected.map((rule) => written(chosen(rule)));
    if (JSON.stringify(expected) !== JSON.stringify(had)) patch.expected = expected;
    return Object.keys(patch).length ? { cameras: { [this.camera]: patch } } : null;
  }

  #changed() {
    const patch = this.#patch();
    const whole = this.rules.every((rule) => written(rule) !== null);
    this.save.disabled = !patch || !whole;
    this.discard.disabled = !patch;
    const { rois, expected } = this.#wish();
    this.rehearsal.rehearse(this.camera, rois, expected);
  }

  async #save() {
    const patch = this.#patch();
    if (!patch) return;
    this.save.disabled = true;
    this.problem.textContent = "";
    try {
      const { version } = await ask("/v1/config", { method: "PATCH", body: patch });
      this.before = structuredClone(this.#wish());
      this.trial.watch(version);
      this.#changed();
    } catch (error) {
      put(this.problem, icon("warn"), make("span", {}, error.message));
      this.save.disabled = false;
    }
  }
}
