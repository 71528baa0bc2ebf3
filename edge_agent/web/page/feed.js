// The feed: one connection on which the agent says what is new (server-sent events), for the whole page.
//
// It is read by fetch, not by EventSource: a refusal has a status then, and a line that has gone quiet is noticed. A page
// that nobody sees holds no connection.

import { DoorError, request } from "./door.js";

const QUIET_MS = 25_000; // the agent says something, if only a comment, every 10 s
const RETRY_MS = [500, 1000, 2000, 4000, 8000];

const listeners = new Map();
const newest = new Map();
let abort = null;
let tries = 0;
let retry = null;
let quiet = null;
let started = false;

/** Calls `listener(value)` for each event of this kind; what was said last at once. Returns how to stop it. */
export function on(kind, listener) {
  if (!listeners.has(kind)) listeners.set(kind, new Set());
  listeners.get(kind).add(listener);
  if (newest.has(kind)) listener(newest.get(kind));
  return () => listeners.get(kind).delete(listener);
}

/** Opens the connection, and again whenever it is lost, as long as the page is seen. */
export function start() {
  started = true;
  open();
}

/** Ends it. */
export function stop() {
  started = false;
  close();
}

document.addEventListener("visibilitychange", () => {
  if (!started) return;
  if (document.hidden) close();
  else open();
});

function tell(kind, value) {
  if (kind !== "reading" && kind !== "item" && kind !== "event") newest.set(kind, value);
  for (const listener of listeners.get(kind) ?? []) listener(value);
}

function close() {
  clearTimeout(retry);
  clearTimeout(quiet);
  abort?.abort();
  abort = null;
}

async function open() {
  close();
  if (document.hidden) return;
  const mine = (abort = new AbortController());
  try {
    const response = await request("/v1/live", { signal: mine.signal });
    tries = 0;
    tell("connection", { state: "open" });
    await listen(response.body.getReader());
    lost(mine, null);
  } catch (error) {
    lost(mine, error);
  }
}

function lost(mine, error) {
  if (abort !== mine) return; // closed on purpose, or another one is open
  close();
  if (error instanceof DoorError && error.status === 401) return;
  tell("connection", { state: "lost", text: error instanceof DoorError && error.status ? error.message : null });
  retry = setTimeout(open, RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]);
  tries += 1;
}

async function listen(reader) {
  const mine = abort;
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    clearTimeout(quiet);
    quiet = setTimeout(() => lost(mine, new DoorError(0, "quiet", "")), QUIET_MS);
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true }).replaceAll("\r", "")).split("\n\n");
    rest = blocks.pop();
    blocks.forEach(hear);
  }
}

function hear(block) {
  let kind = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) kind = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5));
  }
  if (data.length) tell(kind, JSON.parse(data.join("\n")));
}
