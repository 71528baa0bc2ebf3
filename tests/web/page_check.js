// What breaks a rule, as texts; the rules are those of WCAG 2.2 that a program can decide: 1.1.1, 1.3.1, 1.4.10, 2.4.6,
// 2.5.8, 4.1.2.
() => {
  const seen = (e) => e.checkVisibility({ visibilityProperty: true });
  const all = (selector) => [...document.querySelectorAll(selector)];
  const said = (e) => e.outerHTML.slice(0, 120);
  const name = (e) => {
    const ids = (e.getAttribute("aria-labelledby") ?? "").split(" ").filter(Boolean);
    const by = ids.map((id) => document.getElementById(id)?.textContent ?? "").join(" ");
    const labels = [...(e.labels ?? [])].map((label) => label.textContent).join(" ");
    const content = e.matches("input, select") ? "" : e.textContent;
    return (e.getAttribute("aria-label") || by || labels || e.title || content || "").trim();
  };
  const wrong = [];
  const controls = all(
    "button, a[href], input, select, summary, [tabindex='0'], iframe, [role='img'], progress",
  ).filter(seen);
  for (const e of controls) if (!name(e)) wrong.push(`no name: ${said(e)}`);
  for (const e of all("img")) if (e.getAttribute("alt") === null) wrong.push(`no alt: ${said(e)}`);
  for (const e of controls.filter((one) => one.matches("button, summary, select, nav a, a.button"))) {
    const { width, height } = e.getBoundingClientRect();
    if (width < 24 || height < 24) wrong.push(`too small: ${said(e)}`);
  }
  const ids = all("[id]").map((e) => e.id);
  if (new Set(ids).size < ids.length) wrong.push(`an id stands twice: ${ids}`);
  for (const tag of ["h1", "main"]) if (all(tag).length !== 1) wrong.push(`not one ${tag}`);
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) wrong.push(`sticks out by ${scrollWidth - clientWidth}`);
  return wrong;
};
