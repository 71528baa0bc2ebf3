// Shell: what stands around every view: the device and its state, the ways to the views, and the menu.

import { request } from "./door.js";
import { button, choice, icon, labelled, make, put, switchOf } from "./element.js";
import * as feed from "./feed.js";
import { LANGUAGES, language, named, t } from "./texts.js";

/** The pipeline's state as one of good, busy, warn, bad. */
export function stateKind(pipeline) {
  return (
    { running: "good", starting: "busy", building: "busy", calibrating: "busy", degraded: "warn" }[pipeline] ?? "bad"
  );
}

export class Shell {
  /** `views` by name, in their order; `who` is the session; `enter` begins anew, after a logout. */
  constructor(views, who, enter) {
    this.links = views.map((name) => make("a", { href: `#/${name}` }, icon(name), make("span", {}, t(`view.${name}`))));
    this.names = views;
    this.state = make("a.state-chip.busy", { href: "#/health", role: "status" }, t("pipeline.waiting"));
    this.lost = make("p.lost", { role: "alert", hidden: true });
    this.main = make("main", { id: "main", tabindex: "-1" });
    this.device = who.device;
    this.element = make(
      "div.shell",
      {},
      make(
        "a.skip",
        {
          href: "#main",
          onclick: (event) => {
            event.preventDefault();
            this.main.focus();
          },
        },
        t("skip"),
      ),
      make(
        "header.top",
        {},
        make(
          "a.device",
          { href: "#/live" },
          make("img", { src: "/page/mark.svg", alt: "", width: 26, height: 26 }),
          make("span", {}, who.device),
        ),
        this.state,
        menu(who, enter),
      ),
      make("nav.ways", { "aria-label": t("views") }, this.links),
      this.lost,
      this.main,
    );
    this.offs = [
      feed.on("health", (health) => this.#health(health)),
      feed.on("connection", (connection) => this.#connection(connection)),
    ];
  }

  /** Puts a view in place. */
  show(name, element) {
    this.links.forEach((link, index) => {
      if (this.names[index] === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
    document.title = `${t(`view.${name}`)} – ${this.device}`;
    put(this.main, element);
    this.main.scrollTop = 0;
    window.scrollTo(0, 0);
  }

  close() {
    this.offs.forEach((off) => off());
  }

  #health({ pipeline, reason }) {
    this.state.className = `state-chip ${stateKind(pipeline)}`;
    const words = named("pipeline", pipeline);
    put(this.state, make("span.dot", { "aria-hidden": "true" }), make("span", {}, words));
    this.state.title = reason ?? words;
  }

  #connection({ state, text }) {
    const lost = state === "lost";
    this.lost.hidden = !lost;
    document.documentElement.toggleAttribute("data-lost", lost);
    put(
      this.lost,
      lost ? [icon("warn"), make("span", {}, text ? t("connection.refused", { text }) : t("connection.lost"))] : [],
    );
  }
}

function menu(who, enter) {
  const theme = localStorage.getItem("theme") ?? "";
  const pickTheme = (value) => {
    if (value) localStorage.setItem("theme", value);
    else localStorage.removeItem("theme");
    document.dispatchEvent(new Event("theme"));
  };
  const pickLanguage = (value) => {
    localStorage.setItem("language", value);
    document.dispatchEvent(new Event("language"));
  };
  const logout = async () => {
    await request("/v1/logout", { method: "POST" }).catch(() => {});
    enter();
  };
  const box = make(
    "details.menu",
    { onkeydown: (event) => event.key === "Escape" && close(true) },
    make("summary", { "aria-label": t("menu"), title: t("menu") }, icon("menu")),
    make(
      "div.menu-box",
      {},
      labelled(t("language"), choice(Object.entries(LANGUAGES), language(), pickLanguage)),
      switchOf(
        "theme",
        t("theme"),
        [
          ["", t("theme.auto")],
          ["light", t("theme.light")],
          ["dark", t("theme.dark")],
        ],
        theme,
        pickTheme,
      ),
      make("p.quiet", {}, t("version", { version: who.version })),
      who.password_needed && button(t("logout"), logout, { sign: "key" }),
    ),
  );
  const close = (focus) => {
    box.open = false;
    if (focus) box.querySelector("summary").focus();
  };
  box.addEventListener(
    "focusout",
    (event) => event.relatedTarget && !box.contains(event.relatedTarget) && close(false),
  );
  return box;
}
