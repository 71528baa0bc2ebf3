// Teach: which part of the picture is read, and what must stand there; rehearsed at once on what was read last, then
// tried like every change of settings: for a while, and back where it does no good.

import { ask } from "../door.js";
import { patchOf } from "../camera_patch.js";
import { button, choice, icon, labelled, make, put } from "../element.js";
import { Picture } from "../picture.js";
import { certainFields, isWhole } from "../reading.js";
import { RegionsForm } from "../regions_form.js";
import { Rehearsal } from "../rehearsal.js";
import { RoiEditor } from "../roi_editor.js";
import { ANYWHERE, proposed } from "../rules.js";
import { RulesForm, fieldChoices } from "../rules_form.js";
import { t } from "../texts.js";
import { Trial } from "../trial.js";

const GOOD_FIELDS = 3; // a frame with so many is held by itself

export function teachView() {
  return new TeachView();
}

class TeachView {
  constructor() {
    this.camera = null;
    this.before = { rois: {}, expected: [] };
    this.picture = new Picture((frame, reading) => this.#shown(reading));
    const changed = () => this.#changed();
    this.editor = new RoiEditor(changed, () => this.regions.draw());
    this.regions = new RegionsForm(this.editor, changed);
    this.rules = new RulesForm(changed);
    this.picture.element.append(this.editor.element);
    this.cameras = make("select", { onchange: () => this.#open(this.cameras.value) });
    this.holder = button(t("teach.hold"), () => this.#hold(!this.picture.held), { "aria-pressed": "false" });
    this.texts = make("ul.read-texts");
    this.rehearsal = new Rehearsal();
    this.save = button(t("teach.save"), () => this.#save(), { kind: "primary" });
    this.discard = button(t("teach.discard"), () => this.#open(this.camera));
    this.problem = make("p.problem", { role: "alert" });
    this.trial = new Trial((rolledBack) => (rolledBack || !this.#patch()) && this.#open(this.camera));
    this.element = make(
      "div.teach",
      { inert: true }, // until the settings in force are known
      make("h1.hidden", {}, t("view.teach")),
      this.#left(),
      this.#right(),
    );
    this.#load();
  }

  /** The picture, and what was read in it. */
  #left() {
    return make(
      "section.teach-picture",
      { "aria-label": t("live.picture") },
      this.picture.element,
      make(
        "div.actions",
        {},
        labelled(t("table.camera"), this.cameras),
        this.holder,
        button(t("teach.add_region"), () => this.editor.add(), { sign: "add" }),
      ),
      make("p.quiet", {}, t("teach.draw_how")),
      make("h2", {}, t("teach.read_here")),
      this.texts,
    );
  }

  /** What is taught, what it would have said, and how it is saved. */
  #right() {
    const box = (title, content) => make("section.card-box", { "aria-label": title }, make("h2", {}, title), content);
    return make(
      "div.teach-steps",
      {},
      box(t("teach.regions"), this.regions.element),
      box(t("teach.expected"), this.rules.element),
      this.rehearsal.element,
      make(
        "section.save-bar",
        { "aria-label": t("teach.save") },
        this.trial.element,
        this.save,
        this.discard,
        this.problem,
      ),
    );
  }

  close() {
    this.picture.close();
    this.rehearsal.close();
    this.trial.close();
  }

  async #load() {
    try {
      const { cameras } = await ask("/v1/cameras");
      put(
        this.cameras,
        cameras.map(({ name }) => make("option", { value: name }, name)),
      );
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
    if (camera !== this.camera) {
      this.camera = camera;
      this.picture.show(camera);
      this.#hold(false);
    }
    this.editor.set(structuredClone(this.before.rois));
    this.regions.draw();
    this.rules.set(this.before.expected);
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
    const label = { "aria-label": t("teach.mark_as", { text: value }) };
    const select = choice(fieldChoices(field), field, () => {}, label);
    const expect = button(t("teach.expect"), () => this.rules.add(proposed(select.value, value)), {
      sign: "add",
      "aria-label": t("teach.expect_text", { text: value }),
    });
    return make("li", {}, make("span.read-text", {}, value), select, expect);
  }

  /** The settings as they stand here. */
  #wish() {
    return { rois: this.editor.rois, expected: this.rules.expected };
  }

  #patch() {
    return patchOf(this.camera, this.before, this.#wish());
  }

  #changed() {
    const patch = this.#patch();
    this.save.disabled = !patch || !this.rules.isWhole;
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
