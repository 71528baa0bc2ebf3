// Rules form: what an item must say, one row a rule.

import { button, choice, make, put, signButton } from "./element.js";
import { ANYWHERE, FIELDS, chosen, kindsFor, written } from "./rules.js";
import { named, t } from "./texts.js";

/** The fields that a rule can be about, as choices; `more` is one that is there already. */
export function fieldChoices(more) {
  const names = [...new Set([...FIELDS, more].filter(Boolean))];
  return [[ANYWHERE, t("teach.anywhere")], ...names.map((name) => [name, named("field", name)])];
}

export class RulesForm {
  /** `changed()` is called after every change that is made here. */
  constructor(changed) {
    this.changed = changed;
    this.rules = [];
    this.rows = make("ul.rules");
    const more = button(t("teach.add_rule"), () => this.add({ field: "lot", kind: "pattern", value: "" }), {
      sign: "add",
    });
    this.element = make("div.rules-box", {}, this.rows, more);
  }

  /** Shows these rules, as settings write them. */
  set(rules) {
    this.rules = rules.map(chosen);
    this.#draw();
  }

  /** The rules as settings write them, without those in which something is missing. */
  get expected() {
    return this.rules.map(written).filter(Boolean);
  }

  /** Whether nothing is missing. */
  get isWhole() {
    return this.rules.every((rule) => written(rule) !== null);
  }

  /** One more; one that is made of a text that was read takes the place of the one for the same field. */
  add(rule) {
    const same = this.rules.findIndex(
      (one) => one.field === rule.field && one.kind !== "other" && one.field !== ANYWHERE,
    );
    if (same >= 0 && rule.value) this.rules[same] = rule;
    else this.rules.push(rule);
    this.#draw();
    this.changed();
    this.rows.lastElementChild.querySelector("input, select")?.focus({ preventScroll: true });
  }

  #draw() {
    put(
      this.rows,
      this.rules.length
        ? this.rules.map((rule, index) => this.#rule(rule, index))
        : make("li.quiet", {}, t("teach.nothing_expected")),
    );
  }

  #rule(rule, index) {
    const drop = signButton(
      "remove",
      t("teach.remove_rule", { field: rule.field ? named("field", rule.field) : t("teach.anywhere") }),
      () => {
        this.rules.splice(index, 1);
        this.#draw();
        this.changed();
      },
    );
    if (rule.kind === "other") return make("li", {}, make("code", {}, settingsText(written(rule))), drop);
    const again = () => {
      this.#draw();
      this.changed();
    };
    const field = choice(
      fieldChoices(rule.field),
      rule.field,
      (value) => {
        Object.assign(
          rule,
          kindsFor(value).includes(rule.kind)
            ? { field: value }
            : { field: value, kind: kindsFor(value)[0], value: "" },
        );
        again();
      },
      { "aria-label": t("teach.field") },
    );
    const kind = choice(
      kindsFor(rule.field).map((one) => [one, t(`kind.${one}`)]),
      rule.kind,
      (value) => {
        rule.kind = value;
        again();
      },
      { "aria-label": t("teach.kind") },
    );
    return make(
      "li",
      {},
      field,
      kind,
      this.#value(rule),
      drop,
      rule.kind === "pattern" && make("p.quiet.mask-how", {}, t("teach.mask_how")),
    );
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
        this.changed();
      },
    });
    return days ? make("span.days", {}, input, t("unit.d")) : input;
  }
}

/** A rule as settings have it, in a line. */
function settingsText(rule) {
  return Object.entries(rule)
    .map(([key, value]) => `${key}: ${Array.isArray(value) ? value.join(", ") : value}`)
    .join(" · ");
}
