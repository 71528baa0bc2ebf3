// Elements: the page is built from these, never from text with markup, so that what was read can do nothing.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** `make("button.primary", {type: "button", onclick: go}, "Go")`; an attribute that is null or false is left out. */
export function make(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  return fill(element, attributes, children);
}

/** The same for the elements of a drawing. */
export function draw(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

const signs = new Map();

/** Fetches icons.svg, once; signs are copied from it then. */
export async function loadIcons() {
  const text = await (await fetch("/page/icons.svg")).text();
  const drawing = new DOMParser().parseFromString(text, "image/svg+xml");
  for (const symbol of drawing.querySelectorAll("symbol")) signs.set(symbol.id, symbol);
}

/** A sign of icons.svg; without a label it is decoration. */
export function icon(name, label = null) {
  const said = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  const parts = [...signs.get(name).children].map((part) => document.importNode(part, true));
  return draw("svg", { class: "icon", viewBox: "0 0 24 24", ...said }, parts);
}

/** Replaces the children of `host`. */
export function put(host, ...children) {
  host.replaceChildren(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return host;
}

/** A button with words and, before them, a sign. */
export function button(words, onclick, { sign = null, kind = "", ...attributes } = {}) {
  const name = ["button", "button", kind].filter(Boolean).join(".");
  return make(name, { type: "button", onclick, ...attributes }, sign && icon(sign), make("span", {}, words));
}

/** A button that is a sign alone; `label` is its name. */
export function signButton(sign, label, onclick, attributes = {}) {
  return make("button.sign", { type: "button", "aria-label": label, title: label, onclick, ...attributes }, icon(sign));
}

/** A labelled control: the label stands before or above it. */
export function labelled(words, control, attributes = {}) {
  return make("label.labelled", attributes, make("span", {}, words), control);
}

/** A select of [value, words]. */
export function choice(options, value, onchange, attributes = {}) {
  const select = make(
    "select",
    { ...attributes, onchange: () => onchange(select.value) },
    options.map(([key, words]) => make("option", { value: key }, words)),
  );
  select.value = value;
  return select;
}

/** Radio buttons that look like one switch; `options` are [value, words, sign?]. */
export function switchOf(name, label, options, value, onchange) {
  return make(
    "fieldset.switch",
    {},
    make("legend", {}, label),
    options.map(([key, words, sign]) =>
      make(
        "label",
        {},
        make("input", { type: "radio", name, value: key, checked: key === value, onchange: () => onchange(key) }),
        make("span", {}, sign && icon(sign), words),
      ),
    ),
  );
}
