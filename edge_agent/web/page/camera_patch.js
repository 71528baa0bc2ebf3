// Camera patch: what differs between the settings of a camera and those that are wished for, as a merge patch (RFC 7396).

import { chosen, written } from "./rules.js";

const ROI_KEYS = ["x", "y", "width", "height", "angle_deg", "dot_matrix"]; // that this page changes

/** `before` as the agent gave it, `wish` as it stands on the page, both {rois, expected}; null where they are the same. */
export function patchOf(camera, before, wish) {
  const rois = {};
  for (const name of Object.keys(before.rois)) if (!(name in wish.rois)) rois[name] = null;
  for (const [name, roi] of Object.entries(wish.rois)) {
    const known = before.rois[name];
    if (!known) rois[name] = roi;
    else if (!same(picked(roi), picked(known))) rois[name] = picked(roi);
  }
  const patch = {};
  if (Object.keys(rois).length) patch.rois = rois;
  const had = before.expected.map((rule) => written(chosen(rule)));
  if (!same(wish.expected, had)) patch.expected = wish.expected;
  return Object.keys(patch).length ? { cameras: { [camera]: patch } } : null;
}

function picked(roi) {
  return Object.fromEntries(ROI_KEYS.filter((key) => roi[key] !== undefined).map((key) => [key, roi[key]]));
}

function same(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}
