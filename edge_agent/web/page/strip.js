// Strip: the items that passed by last, each with its crop, verdict and reasons; the newest first.

import { icon, make, put, signButton } from "./element.js";
import { clock } from "./format.js";
import { FIELDS } from "./rules.js";
import { named, t } from "./texts.js";
import { fillBand, verdictKey, verdictMark, verdictWord, whys } from "./verdict.js";

const SHOWN = 40;

/** An entry is {id, at, verdict, reasons, fields, lines, crop}: `crop` an address, a canvas, or null. */
export class Strip {
  constructor() {
    this.list = make("ol.strip", { "aria-label": t("live.items"), tabindex: "0" });
    this.tally = make("p.tally", {});
    this.element = make("section.strip-box", { "aria-label": t("live.items") }, this.tally, this.list);
    this.entries = [];
    this.#count();
  }

  /** Puts an entry in front; one with the same id is replaced. Who is on a card that goes is led on. */
  add(entry) {
    const before = this.entries.findIndex((one) => one.id === entry.id);
    const replaced = this.list.children[before];
    if (replaced) this.entries.splice(before, 1);
    const atStart = this.list.scrollLeft < 8;
    this.entries.unshift(entry);
    this.list.prepend(card(entry));
    if (replaced) takeAway(replaced, this.list.firstElementChild);
    if (atStart) this.list.scrollLeft = 0;
    while (this.entries.length > SHOWN) {
      this.entries.pop();
      takeAway(this.list.lastElementChild, this.list.lastElementChild.previousElementSibling);
    }
    this.#count();
  }

  clear() {
    this.entries = [];
    put(this.list);
    this.#count();
  }

  #count() {
    const counts = { PASS: 0, FAIL: 0, NO_READ: 0 };
    for (const { verdict } of this.entries) if (verdict in counts) counts[verdict] += 1;
    const judged = Object.values(counts).some(Boolean);
    put(
      this.tally,
      make("span", {}, this.entries.length ? t("live.last_items", { count: this.entries.length }) : t("live.no_items")),
      judged &&
        Object.entries(counts).map(([verdict, count]) => [
          make(`span.mark.${verdictKey(verdict)}`, {}, icon(verdictKey(verdict), verdictWord(verdict)), String(count)),
        ]),
    );
  }
}

function takeAway(going, other) {
  if (going.contains(document.activeElement)) other.querySelector("button").focus({ preventScroll: true });
  going.remove();
}

function card(entry) {
  const words = entry.fields.find((field) => field.name === "lot") ?? entry.fields[0];
  const why = whys(entry.reasons).join("; ");
  const name = [verdictWord(entry.verdict), clock(entry.at), words?.value, why].filter(Boolean).join(", ");
  return make(
    "li",
    {},
    make(
      `button.card.${verdictKey(entry.verdict)}`,
      { type: "button", "aria-label": name, onclick: () => showItem(entry) },
      make("span.crop", {}, cropElement(entry)),
      make("span.card-words", {}, verdictMark(entry.verdict), make("time", {}, clock(entry.at))),
      make("span.card-why", {}, why || words?.value || ""),
    ),
  );
}

function cropElement(entry) {
  if (typeof entry.crop === "string") {
    const image = make("img", { src: entry.crop, alt: "", loading: "lazy", decoding: "async" });
    image.addEventListener("error", () => image.replaceWith(icon(verdictKey(entry.verdict))));
    return image;
  }
  return entry.crop ?? icon(verdictKey(entry.verdict));
}

/** Everything about one item, over the page. */
function showItem(entry) {
  const picture =
    typeof entry.crop === "string" ? make("img", { src: entry.crop, alt: t("item.crop") }) : copyOf(entry.crop);
  const band = make("p");
  fillBand(band, entry);
  const dialog = make(
    "dialog.item",
    {
      "aria-label": t("item.title"),
      onclose: () => dialog.remove(),
      onclick: (event) => event.target === dialog && dialog.close(),
    },
    make(
      "header",
      {},
      band,
      signButton("close", t("close"), () => dialog.close()),
    ),
    picture,
    make(
      "ul.reasons",
      {},
      whys(entry.reasons).map((why) => make("li", {}, why)),
    ),
    fieldList(entry.fields),
    make("p.quiet", {}, [clock(entry.at), entry.camera, entry.note, entry.id].filter(Boolean).join(" · ")),
  );
  document.body.append(dialog);
  dialog.showModal();
}

function copyOf(canvas) {
  if (!canvas) return null;
  const copy = make("canvas", { role: "img", "aria-label": t("item.crop") });
  Object.assign(copy, { width: canvas.width, height: canvas.height });
  copy.getContext("2d").drawImage(canvas, 0, 0);
  return copy;
}

/** Fields with their values, those that are verified most first; what is in doubt says so. */
export function fieldList(fields) {
  const place = (field) => (FIELDS.includes(field.name) ? FIELDS.indexOf(field.name) : FIELDS.length);
  return make(
    "dl.fields",
    {},
    [...fields]
      .sort((a, b) => place(a) - place(b))
      .map((field) =>
        make(
          "div",
          { class: field.certain === false ? "doubt" : null },
          make("dt", {}, named("field", field.name)),
          make(
            "dd",
            {},
            field.value || field.text || "?",
            field.certain === false &&
              make(
                "span.flag",
                {},
                icon("warn"),
                field.flags.map((flag) => named("flag", flag)).join(", ") || t("live.doubt"),
              ),
          ),
        ),
      ),
  );
}
