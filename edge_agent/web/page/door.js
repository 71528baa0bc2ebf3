// The door: what the agent is asked over HTTP. All of it is on the host that this page came from.

/** Why the agent did not do it: `status` 0 where it could not be reached; `message` is its own words. */
export class DoorError extends Error {
  constructor(status, code, text) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

let csrf = null;

/** Who is asking: whether a password is needed, and was given. */
export async function session() {
  const said = await ask("/v1/session");
  csrf = said.csrf;
  return said;
}

/** The response of a request that was answered well. Raises DoorError. */
export async function request(path, { method = "GET", body = undefined, signal = undefined } = {}) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && csrf) headers["X-CSRF"] = csrf;
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new DoorError(0, "unreachable", String(error.message));
  }
  if (response.ok) return response;
  throw await refusal(response);
}

/** The JSON of an answer. */
export async function ask(path, options = {}) {
  return (await request(path, options)).json();
}

async function refusal(response) {
  const said = await response.json().catch(() => ({}));
  if (response.status === 401) document.dispatchEvent(new Event("login-needed"));
  return new DoorError(response.status, said.error?.code ?? "", said.error?.text ?? response.statusText);
}
