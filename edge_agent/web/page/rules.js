// Rules: what an item must say, as people choose it here and as `cameras.<name>.expected` writes it.

const DATES = new Set(["expiry_date", "manufacture_date", "date"]);
export const FIELDS = [
  "lot",
  "expiry_date",
  "manufacture_date",
  "serial_number",
  "product_name",
  "barcode_digits",
  "weight_volume",
];
export const ANYWHERE = ""; // no field: somewhere on the label

// short names that settings may use for fields
const SHORT = {
  expiry: "expiry_date",
  mfg: "manufacture_date",
  serial: "serial_number",
  gtin: "barcode_digits",
  quantity: "weight_volume",
  product: "product_name",
};
const LEFT = /^([\w.]+) >= today(?: \+ (\d+)d)?$/;
const PAST = /^([\w.]+) <= today$/;

/** The ways in which a field can be asked for. */
export function kindsFor(field) {
  if (field === ANYWHERE) return ["text", "pattern"];
  return DATES.has(field.replace(/^(code|print)\./, ""))
    ? ["left", "past", "text", "read"]
    : ["text", "pattern", "one_of", "read"];
}

/** A rule as it is chosen: {field, kind, value}; `other` keeps one that this page has no form for, as it is. */
export function chosen(rule) {
  const left = LEFT.exec(rule.date ?? "");
  if (left) return { field: whole(left[1]), kind: "left", value: left[2] ?? "0" };
  const past = PAST.exec(rule.date ?? "");
  if (past) return { field: whole(past[1]), kind: "past", value: "" };
  const field = whole(rule.field ?? ANYWHERE);
  for (const kind of ["text", "pattern"]) if (rule[kind]) return { field, kind, value: rule[kind] };
  if (rule.one_of) return { field, kind: "one_of", value: rule.one_of.join(", ") };
  const bare = Object.entries(rule).every(([key, value]) => key === "field" || value === null);
  return bare ? { field, kind: "read", value: "" } : { field, kind: "other", value: "", rule };
}

function whole(reference) {
  return reference.replace(/[a-z_]+$/, (name) => SHORT[name] ?? name);
}

/** As settings write it; null while something is missing. */
export function written({ field, kind, value, rule }) {
  const said = value.trim();
  const of = field === ANYWHERE ? {} : { field };
  switch (kind) {
    case "other":
      return withoutNulls(rule);
    case "left":
      return /^\d{1,5}$/.test(said) ? { date: `${field} >= today + ${Number(said)}d` } : null;
    case "past":
      return { date: `${field} <= today` };
    case "one_of": {
      const values = said
        .split(",")
        .map((one) => one.trim())
        .filter(Boolean);
      return values.length ? { ...of, one_of: values } : null;
    }
    case "read":
      return of;
    default:
      return said ? { ...of, [kind]: said } : null;
  }
}

function withoutNulls(rule) {
  return Object.fromEntries(Object.entries(rule).filter(([, value]) => value !== null));
}

/** A rule to begin with for a field as it was read. */
export function proposed(field, value) {
  const [kind] = kindsFor(field);
  if (kind === "left") return { field, kind, value: "0" };
  return field === "lot" || field === "serial_number"
    ? { field, kind: "pattern", value: maskOf(value) }
    : { field, kind: "text", value };
}

/** A mask that a text fits: its digits may be others, and so may its letters, but not those that it begins with. */
export function maskOf(text) {
  const [, head, tail] = /^([^0-9Aa*?\\/]*)(.*)$/su.exec(text);
  const placeholder = (one) => (/[0-9]/.test(one) ? "9" : /[A-Z]/.test(one) ? "A" : /[a-z]/.test(one) ? "a" : null);
  return head + [...tail].map((one) => placeholder(one) ?? (/[*?\\/]/.test(one) ? `\\${one}` : one)).join("");
}
