// Texts: every word that the page says stands in texts/<language>.json, by key; `{name}` is filled in.

export const LANGUAGES = { en: "English", de: "Deutsch" };

let words = {};
let spoken = "en";

/** The language chosen here, else the browser's where there are words for it, else English. */
export function wanted() {
  const chosen = [localStorage.getItem("language"), ...navigator.languages.map((tag) => tag.slice(0, 2))];
  return chosen.find((language) => language in LANGUAGES) ?? "en";
}

/** From now on texts are in this language. */
export async function speak(language) {
  const response = await fetch(`/page/texts/${language}.json`);
  words = await response.json();
  spoken = language;
  document.documentElement.lang = language;
}

/** The language spoken, for dates and numbers. */
export function language() {
  return spoken;
}

/** The text of a key, with its gaps filled. */
export function t(key, gaps = {}) {
  const text = words[key];
  if (text === undefined) throw new Error(`no text for ${key}`);
  return text.replace(/\{(\w+)\}/g, (_, name) => gaps[name] ?? "");
}

/** The text of `group.name` where there is one, else the name itself, as people write it: what may be new to the page. */
export function named(group, name) {
  return words[`${group}.${name}`] ?? String(name).replaceAll("_", " ");
}
