// Main: who is asking, then the shell around one view at a time. READ THIS FIRST.

import { session } from "./door.js";
import { icon, loadIcons, make, put } from "./element.js";
import * as feed from "./feed.js";
import { Shell } from "./shell.js";
import { speak, t, wanted } from "./texts.js";
import { calibrateView } from "./views/calibrate.js";
import { doctorView } from "./views/doctor.js";
import { healthView } from "./views/health.js";
import { liveView } from "./views/live.js";
import { loginView } from "./views/login.js";
import { teachView } from "./views/teach.js";

/** A view is a function of the session that gives {element, close}; its name is its address: #/live. */
const VIEWS = { live: liveView, health: healthView, teach: teachView, calibrate: calibrateView, doctor: doctorView };
const RETRY_MS = 2000;

let shell = null;
let view = null;
let who = null;

async function enter() {
  leave();
  try {
    who = await session();
  } catch {
    put(document.body, make("p.lost", { role: "alert" }, icon("warn"), t("connection.lost")));
    setTimeout(enter, RETRY_MS);
    return;
  }
  if (!who.authenticated) {
    put(document.body, loginView(who, enter));
    return;
  }
  shell = new Shell(Object.keys(VIEWS), who, enter);
  put(document.body, shell.element);
  feed.start();
  show();
}

function leave() {
  feed.stop();
  view?.close();
  shell?.close();
  view = shell = null;
}

function show() {
  if (!shell) return;
  const asked = location.hash.replace("#/", "").split("/")[0];
  const name = asked in VIEWS ? asked : "live";
  view?.close();
  view = VIEWS[name](who);
  shell.show(name, view.element);
}

window.addEventListener("hashchange", show);
document.addEventListener("login-needed", () => shell && enter());
document.addEventListener("language", async () => {
  await speak(wanted());
  enter();
});

await Promise.all([speak(wanted()), loadIcons()]);
enter();
