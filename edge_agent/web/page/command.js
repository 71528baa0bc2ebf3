// Commands: something is asked of the agent, and what became of it is waited for.

import { ask } from "./door.js";

const LOOK_MS = 700;

/** Sends a command and waits until it is done, failed or busy; gives the reply. `alive()` false stops waiting. */
export async function carryOut(name, args, alive = () => true) {
  let reply = await ask(`/v1/commands/${name}`, { method: "POST", body: { args } });
  while (reply.state === "accepted" && alive()) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    reply = await ask(`/v1/commands/${reply.id}`);
  }
  return reply;
}
