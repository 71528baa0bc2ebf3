// Doctor: what is wrong with this machine, with the cure; and one file for those who help from afar.

import { ask } from "../door.js";
import { button, icon, make, put } from "../element.js";
import { clock } from "../format.js";
import { t } from "../texts.js";

const ORDER = ["fail", "warn", "ok"];
const SIGNS = { fail: "fail", warn: "warn", ok: "pass" };
const KINDS = { fail: "bad", warn: "warn", ok: "good" };

export function doctorView() {
  const rows = make("ul.findings");
  const summary = make("p.doctor-summary", { role: "status" });
  const go = button(t("doctor.run"), run, { sign: "doctor", kind: "primary" });
  const element = make(
    "div.doctor",
    {},
    make("h1", {}, t("view.doctor")),
    make("p.quiet", {}, t("doctor.what")),
    make(
      "div.actions",
      {},
      go,
      make(
        "a.button",
        { href: "/v1/support-bundle", download: true },
        icon("down"),
        make("span", {}, t("doctor.bundle")),
      ),
    ),
    make("p.quiet", {}, t("doctor.bundle_what")),
    summary,
    rows,
  );

  async function run() {
    go.disabled = true;
    summary.textContent = t("doctor.running");
    try {
      const found = (await ask("/v1/doctor")).rows;
      const counts = Object.fromEntries(
        ORDER.map((verdict) => [verdict, found.filter((row) => row.verdict === verdict).length]),
      );
      put(
        summary,
        ORDER.filter((verdict) => counts[verdict]).map((verdict) =>
          make(
            `span.count.${KINDS[verdict]}`,
            {},
            icon(SIGNS[verdict]),
            t(`doctor.count_${verdict}`, { count: counts[verdict] }),
          ),
        ),
        make("span.quiet", {}, clock(Date.now() / 1000)),
      );
      put(rows, found.sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict)).map(finding));
    } catch (error) {
      summary.textContent = error.message;
    }
    go.disabled = false;
  }

  return { element, close() {} };
}

function finding({ name, verdict, text, cure }) {
  return make(
    "li",
    {},
    make(`span.mark.${KINDS[verdict]}`, {}, icon(SIGNS[verdict]), make("span", {}, t(`doctor.${verdict}`))),
    make(
      "div",
      {},
      make("b", {}, name),
      make("p", {}, text),
      verdict !== "ok" && cure && make("p.cure", {}, icon("back"), cure),
    ),
  );
}
