// Overlay: what was read, drawn over the picture it was read in. Sizes are in CSS px whatever the picture's size is.

import { named } from "./texts.js";

const NARROW = 520; // CSS px
const HALO = "rgba(0, 0, 0, .55)";
const COLOURS = {
  field: "#5fe0c4",
  doubt: "#ffc23d",
  line: "rgba(255, 255, 255, .75)",
  code: "#8ec5ff",
  region: "#ffffff",
};

/** Draws on `context`, `scale` px of the canvas to one px of the frame. `texts`: whether every line's text is written. */
export function drawReading(context, reading, scale, { ratio = 1, texts = false } = {}) {
  const fieldsOf = new Map();
  for (const field of reading.fields ?? [])
    for (const index of field.lines) fieldsOf.set(index, [...(fieldsOf.get(index) ?? []), field]);
  const chips = [];
  (reading.lines ?? []).forEach((line, index) => {
    const fields = fieldsOf.get(index) ?? [];
    const style = styleOf(fields);
    outline(context, line.quad, scale, ratio, style);
    const words = fields.length
      ? fields.map((field) => [named("field", field.name), field.value || "?"])
      : texts
        ? [["", line.text]]
        : [];
    for (const [name, value] of words) chips.push({ quad: line.quad, name, value, colour: COLOURS[style] });
  });
  for (const code of reading.codes ?? []) {
    outline(context, code.quad, scale, ratio, "code");
    if (texts) chips.push({ quad: code.quad, name: code.symbology, value: code.text, colour: COLOURS.code });
  }
  const taken = [];
  const narrow = context.canvas.width / ratio < NARROW; // no room for values: they stand beside the picture
  for (const one of chips) chip(context, narrow && one.name ? { ...one, value: "" } : one, scale, ratio, taken);
}

function styleOf(fields) {
  if (!fields.length) return "line";
  return fields.every((field) => field.certain !== false) ? "field" : "doubt";
}

function outline(context, quad, scale, ratio, style) {
  const path = new Path2D();
  quad.forEach(([x, y], index) => (index ? path.lineTo(x * scale, y * scale) : path.moveTo(x * scale, y * scale)));
  path.closePath();
  const width = (style === "line" ? 1 : 1.75) * ratio;
  context.setLineDash([]);
  context.lineJoin = "round";
  context.strokeStyle = HALO;
  context.lineWidth = width + 2 * ratio;
  context.stroke(path);
  context.setLineDash(style === "doubt" ? [5 * ratio, 3 * ratio] : []);
  context.strokeStyle = COLOURS[style];
  context.lineWidth = width;
  context.stroke(path);
  context.setLineDash([]);
}

/** Name and value beside the box, where there is room: to its right, else to its left, else over its end. */
function chip(context, { quad, name, value, colour }, scale, ratio, taken) {
  const size = 12 * ratio;
  const pad = 4 * ratio;
  const height = size + 2 * pad;
  context.textBaseline = "middle";
  context.font = `500 ${size * 0.9}px ${FONT}`;
  const nameWidth = name ? context.measureText(name).width + (value ? pad * 1.5 : 0) : 0;
  context.font = `650 ${size}px ${FONT}`;
  const shown = fitted(context, value, 220 * ratio);
  const width = nameWidth + context.measureText(shown).width + 2 * pad;
  const xs = quad.map(([x]) => x * scale);
  const ys = quad.map(([, y]) => y * scale);
  const { width: wide, height: high } = context.canvas;
  const right = Math.max(...xs) + 5 * ratio;
  const left = Math.min(...xs) - width - 5 * ratio;
  const x = right + width <= wide ? right : left >= 0 ? left : Math.max(0, wide - width);
  let y = (Math.min(...ys) + Math.max(...ys)) / 2 - height / 2;
  while (
    taken.some((one) => x < one.x + one.width && one.x < x + width && y < one.y + one.height && one.y < y + height)
  )
    y += ratio;
  y = Math.max(0, Math.min(high - height, y));
  taken.push({ x, y, width, height });
  context.fillStyle = "rgba(9, 16, 20, .86)";
  context.beginPath();
  context.roundRect(x, y, width, height, 4 * ratio);
  context.fill();
  context.fillStyle = colour;
  context.font = `500 ${size * 0.9}px ${FONT}`;
  if (name) context.fillText(name, x + pad, y + height / 2 + ratio * 0.5);
  context.fillStyle = "#ffffff";
  context.font = `650 ${size}px ${FONT}`;
  context.fillText(shown, x + pad + nameWidth, y + height / 2 + ratio * 0.5);
}

function fitted(context, text, width) {
  let shown = text;
  while (shown.length > 4 && context.measureText(shown).width > width) shown = `${shown.slice(0, -2).trimEnd()}…`;
  return shown;
}

const FONT = '"Inter", "Ubuntu", "Roboto", system-ui, "DejaVu Sans", sans-serif';

/** Draws the regions of a camera; shares of the picture. */
export function drawRegions(context, rois, ratio) {
  const { width, height } = context.canvas;
  for (const roi of Object.values(rois ?? {})) {
    context.setLineDash([7 * ratio, 5 * ratio]);
    for (const [colour, line] of [
      [HALO, 3],
      [COLOURS.region, 1.25],
    ]) {
      context.strokeStyle = colour;
      context.lineWidth = line * ratio;
      context.strokeRect(
        (roi.x ?? 0) * width,
        (roi.y ?? 0) * height,
        (roi.width ?? 1) * width,
        (roi.height ?? 1) * height,
      );
    }
    context.setLineDash([]);
  }
}
