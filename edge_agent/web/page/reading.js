// Readings: how good one is.

/** Whether no field of it is cut by the picture's edge. */
export function isWhole({ fields }) {
  return !fields.some(({ flags }) => flags.includes("cut"));
}

/** How many fields are beyond doubt. */
export function certainFields({ fields }) {
  return fields.filter(({ certain }) => certain !== false).length;
}

/** Of two readings of a label the one with more of this is better. */
export function goodness(reading) {
  return certainFields(reading) - 2 * reading.fields.filter(({ flags }) => flags.includes("cut")).length;
}
