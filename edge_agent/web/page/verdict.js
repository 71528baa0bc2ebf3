// Verdicts: a sign, a word and a colour each, so that no one of them is needed to tell them apart.

import { icon, make, put } from "./element.js";
import { named, t } from "./texts.js";

/** pass, fail, no_read, or none where nothing was judged. */
export function verdictKey(verdict) {
  return verdict === "PASS" || verdict === "FAIL" || verdict === "NO_READ" ? verdict.toLowerCase() : "none";
}

/** The verdict's word in the language spoken. */
export function verdictWord(verdict) {
  return t(`verdict.${verdictKey(verdict)}`);
}

/** Sign and word, small; a dash where nothing was judged. */
export function verdictMark(verdict) {
  const key = verdictKey(verdict);
  if (key === "none") return make("span.quiet", {}, verdictWord(verdict));
  return make(`span.mark.${key}`, {}, icon(key), make("span", {}, verdictWord(verdict)));
}

/** Puts the verdict of an item or a reading into a band, large; without one, whether there was text. */
export function fillBand(band, said) {
  const key = verdictKey(said?.verdict);
  const text = said?.lines.length > 0;
  const unjudged = said ? t(text ? "verdict.read" : "verdict.nothing") : t("live.waiting_items");
  band.className = `verdict-band ${key}`;
  put(
    band,
    icon(key === "none" && text ? "live" : key),
    make("span", {}, key === "none" ? unjudged : verdictWord(said.verdict)),
  );
}

/** Why it is not PASS: one line of words for each rule that does not hold. */
export function whys(reasons) {
  return (reasons ?? []).filter((reason) => reason.verdict !== "PASS").map(reasonText);
}

function reasonText({ rule, expected, seen, why }) {
  const parts = [rule === "min_reads" ? t("rule.min_reads") : rule];
  if (expected && !rule.includes(expected)) parts.push(t("reason.expected", { text: expected }));
  parts.push(seen ? t("reason.seen", { text: seen }) : t("reason.nothing_seen"));
  if (why && why !== "differs" && why !== "absent") parts.push(named("why", why));
  return parts.join(" · ");
}
