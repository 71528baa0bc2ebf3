// Regions form: the region that is chosen, as figures: its name, which way its text runs, how it is printed.

import { labelled, make, put, signButton, switchOf } from "./element.js";
import { t } from "./texts.js";

const ANGLES = ["auto", "0", "90", "180", "270"];

export class RegionsForm {
  /** `editor` holds the regions; `changed()` is called after every change that is made here. */
  constructor(editor, changed) {
    this.editor = editor;
    this.changed = changed;
    this.element = make("div.regions");
  }

  /** Shows the region that is chosen. */
  draw() {
    const names = Object.keys(this.editor.rois);
    const name = this.editor.selected;
    if (!names.length) return put(this.element, make("p.quiet", {}, t("teach.whole")));
    const roi = this.editor.rois[name];
    const angle = String(roi.angle_deg ?? "auto");
    const turn = (value) => {
      roi.angle_deg = value === "auto" ? "auto" : Number(value);
      this.editor.draw();
      this.changed();
      degrees.value = value === "auto" ? "" : value;
    };
    const degrees = make("input", {
      type: "number",
      min: -180,
      max: 360,
      step: 1,
      value: angle === "auto" ? "" : angle,
      inputmode: "numeric",
      onchange: () => degrees.value !== "" && turn(degrees.value),
    });
    const dots = make("input", {
      type: "checkbox",
      checked: roi.dot_matrix === true,
      onchange: () => {
        roi.dot_matrix = dots.checked;
        this.changed();
      },
    });
    const rename = make("input", {
      value: name,
      maxlength: 64,
      pattern: "[A-Za-z0-9_][A-Za-z0-9._\\-]*",
      onchange: () => this.#rename(name, rename),
    });
    put(
      this.element,
      names.length > 1 &&
        make(
          "div.cameras",
          { role: "group", "aria-label": t("teach.regions") },
          names.map((one) =>
            make(
              "button.camera",
              { type: "button", "aria-pressed": String(one === name), onclick: () => this.editor.select(one) },
              one,
            ),
          ),
        ),
      make(
        "div.form-row",
        {},
        labelled(t("teach.name"), rename),
        signButton("remove", t("teach.remove_region", { name }), () => this.editor.remove(name)),
      ),
      switchOf(
        "angle",
        t("teach.angle"),
        ANGLES.map((one) => [one, one === "auto" ? t("teach.angle_auto") : `${one}°`]),
        ANGLES.includes(angle) ? angle : "other",
        turn,
      ),
      make(
        "div.form-row",
        {},
        labelled(t("teach.degrees"), degrees),
        make("label.check", {}, dots, make("span", {}, t("teach.dots"))),
      ),
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
    this.changed();
  }
}
