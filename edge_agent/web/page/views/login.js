// Login: the password, and what is wrong with it.

import { ask } from "../door.js";
import { button, make } from "../element.js";
import { t } from "../texts.js";

/** `done` is called once the password was right. */
export function loginView(who, done) {
  const password = make("input", {
    type: "password",
    id: "password",
    name: "password",
    autocomplete: "current-password",
    required: true,
    "aria-describedby": "login-problem",
  });
  const problem = make("p.problem", { id: "login-problem", role: "alert" });
  const show = button(
    t("login.show"),
    () => {
      const hidden = password.type === "password";
      password.type = hidden ? "text" : "password";
      show.setAttribute("aria-pressed", String(hidden));
    },
    { "aria-pressed": "false" },
  );
  const submit = make("button.button.primary", { type: "submit" }, t("login.go"));
  const go = async (event) => {
    event.preventDefault();
    submit.disabled = true;
    problem.textContent = "";
    try {
      await ask("/v1/login", { method: "POST", body: { password: password.value } });
      done();
    } catch (error) {
      submit.disabled = false;
      problem.textContent = told(error);
      password.select();
      password.focus();
    }
  };
  const element = make(
    "main.login",
    {},
    make(
      "form",
      { onsubmit: go },
      make("img", { src: "/page/mark.svg", alt: "", width: 56, height: 56 }),
      make("h1", {}, who.device ?? location.hostname),
      make("label", { for: "password" }, t("login.password")),
      make("div.password-row", {}, password, show),
      submit,
      problem,
    ),
  );
  requestAnimationFrame(() => password.focus());
  return element;
}

function told(error) {
  if (error.status === 0) return t("connection.lost");
  if (error.status === 429) return t("login.too_often");
  return error.status === 401 ? t("login.wrong") : error.message;
}
