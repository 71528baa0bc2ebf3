// Crops: the part of a frame in which text was read, small.

const MARGIN = 0.06;

/** The rectangle around all lines of a reading, px of the frame, with a margin; null without lines. */
function textArea(reading, width, height) {
  const points = (reading.lines ?? []).flatMap((line) => line.quad);
  if (!points.length) return null;
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const grow = MARGIN * Math.max(Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys));
  const left = Math.max(0, Math.min(...xs) - grow);
  const top = Math.max(0, Math.min(...ys) - grow);
  return {
    x: left,
    y: top,
    width: Math.min(width, Math.max(...xs) + grow) - left,
    height: Math.min(height, Math.max(...ys) + grow) - top,
  };
}

/** A canvas with that part of a frame that is on screen. */
export function cropOf(frame, reading, side = 200) {
  const area = textArea(reading, frame.width, frame.height);
  if (!area) return null;
  const scale = frame.bitmap.width / frame.width;
  const zoom = Math.min(1, side / Math.max(area.width, area.height) / scale) * scale;
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(area.width * zoom));
  canvas.height = Math.max(1, Math.round(area.height * zoom));
  canvas
    .getContext("2d")
    .drawImage(
      frame.bitmap,
      area.x * scale,
      area.y * scale,
      area.width * scale,
      area.height * scale,
      0,
      0,
      canvas.width,
      canvas.height,
    );
  return canvas;
}
