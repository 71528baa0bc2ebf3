// Figures and times as people write them, in the language spoken.

import { language, t } from "./texts.js";

export const NOTHING = "–";

/** A number with so many digits behind the point; a dash where there is none. */
export function number(value, digits = 0) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
  return new Intl.NumberFormat(language(), { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(
    value,
  );
}

/** A number with about three figures. */
export function figure(value) {
  const size = Math.abs(value ?? 0);
  return number(value, size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

/** The time of day of an RFC 3339 time or unix seconds; with the date where it is not today's. */
export function clock(at, { seconds = true } = {}) {
  const date = typeof at === "number" ? new Date(at * 1000) : new Date(at ?? NaN);
  if (Number.isNaN(date.getTime())) return NOTHING;
  const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(seconds && { second: "2-digit" }) };
  const today = date.toDateString() === new Date().toDateString();
  const day = today ? {} : { day: "numeric", month: "short" };
  return new Intl.DateTimeFormat(language(), { ...day, ...time }).format(date);
}

/** A duration in its two largest units. */
export function lasting(seconds) {
  if (!Number.isFinite(seconds)) return NOTHING;
  const whole = Math.max(0, Math.round(seconds));
  const parts = [
    [Math.floor(whole / 86400), "unit.d"],
    [Math.floor(whole / 3600) % 24, "unit.h"],
    [Math.floor(whole / 60) % 60, "unit.min"],
    [whole % 60, "unit.s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  const shown = first < 0 ? [parts[3]] : parts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${count} ${t(unit)}`).join(" ");
}
