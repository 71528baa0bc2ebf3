// Frames: the pictures of a camera as they come (multipart/x-mixed-replace), each with the number that its reading has.
//
// Read by fetch, because an <img> does not tell which frame it shows, and boxes must stand on the frame they are of.
// Whoever is slow gets the newest one: of what has come meanwhile all but the last is thrown away undecoded.

import { request } from "./door.js";

const HEAD_END = [13, 10, 13, 10];

/** Yields {seq, width, height, bitmap}; the bitmap is the taker's, to be closed. Raises DoorError. */
export async function* frames(camera, maxSide, signal) {
  const response = await request(`/v1/cameras/${encodeURIComponent(camera)}/stream?max_side_px=${maxSide}`, { signal });
  const reader = response.body.getReader();
  let bytes = new Uint8Array(0);
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    bytes = joined(bytes, value);
    const found = newest(bytes);
    bytes = found.rest;
    if (found.part) yield await decoded(found.part);
  }
}

async function decoded({ seq, size, body }) {
  const bitmap = await createImageBitmap(body);
  const [width, height] = size ? size.split("x").map(Number) : [bitmap.width, bitmap.height];
  return { seq, width, height, bitmap };
}

function joined(before, more) {
  if (!before.length) return more;
  const all = new Uint8Array(before.length + more.length);
  all.set(before);
  all.set(more, before.length);
  return all;
}

/** The last whole part of `bytes`, and what stands behind it. */
function newest(bytes) {
  let part = null;
  for (;;) {
    const end = headEnd(bytes);
    if (end < 0) break;
    const head = new TextDecoder("latin1").decode(bytes.subarray(0, end));
    const length = Number(/content-length:\s*(\d+)/i.exec(head)?.[1] ?? NaN);
    if (Number.isNaN(length)) throw new Error("a part of the stream has no length");
    if (end + 4 + length > bytes.length) break;
    part = {
      seq: Number(/x-frame-seq:\s*(\d+)/i.exec(head)?.[1] ?? -1),
      size: /x-frame-size:\s*(\d+x\d+)/i.exec(head)?.[1],
      body: new Blob([bytes.slice(end + 4, end + 4 + length)], { type: "image/jpeg" }),
    };
    bytes = bytes.subarray(end + 4 + length);
  }
  return { part, rest: bytes };
}

function headEnd(bytes) {
  const limit = Math.min(bytes.length - 3, 4096);
  for (let at = 0; at < limit; at += 1) if (HEAD_END.every((byte, k) => bytes[at + k] === byte)) return at;
  return -1;
}
