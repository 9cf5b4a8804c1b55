// Shapes on a picture, as the host draws them. It has no font: each character of a label but a space
// is a box.

import { refusal } from './refusal.js';

/** What a call may draw at most, as in the host. */
const SHAPES_MAX = 4096;
const POLYGON_POINTS_MAX = 1024;
const POINTS_MAX = 65_536;
const LABEL_CHARS_MAX = 256;
const THICKNESS_MAX = 64;
const LABEL_SIZE_MAX = 64;

/** The rows of a character. The lowest bit is the pixel to the left. */
const CHARACTER = [0x7e, 0x42, 0x42, 0x42, 0x42, 0x42, 0x7e, 0];

const AREAS = { rectangle: sides, polygon: outline, label: boxes };

/** Draws `shapes` into `data` of `width` x `height` pixels; `pixelOf` makes a pixel of a colour. */
export function drawInto(data, [width, height], shapes, pixelOf) {
  check(shapes);
  for (const { tag, val } of shapes) {
    const pixel = pixelOf(val.color);
    for (const [left, top, right, bottom] of AREAS[tag](val, [width, height])) {
      for (let y = Math.max(top, 0); y < Math.min(bottom, height); y++) {
        for (let x = Math.max(left, 0); x < Math.min(right, width); x++) {
          data.set(pixel, (y * width + x) * pixel.length);
        }
      }
    }
  }
}

function check(shapes) {
  const refuse = (text) => {
    throw refusal('invalid-argument', text);
  };
  if (shapes.length > SHAPES_MAX) refuse(`${shapes.length} shapes; the limit is ${SHAPES_MAX}`);
  const counts = shapes.map(({ val }) => val.points?.length ?? 0);
  const points = counts.reduce((total, count) => total + count, 0);
  if (points > POINTS_MAX) refuse(`${points} points of polygons; the limit is ${POINTS_MAX}`);
  shapes.forEach(({ tag, val }, index) => {
    const wrong = (why) => refuse(`shapes[${index}]: ${why}`);
    if (counts[index] > POLYGON_POINTS_MAX) wrong(`${counts[index]} points; the limit is ${POLYGON_POINTS_MAX}`);
    if (tag === 'label' && [...val.text].length > LABEL_CHARS_MAX) {
      wrong(`the text has more than ${LABEL_CHARS_MAX} characters`);
    }
    const [name, max] = tag === 'label' ? ['size', LABEL_SIZE_MAX] : ['thickness', THICKNESS_MAX];
    if (!(val[name] >= 1 && val[name] <= max)) wrong(`${name} is ${val[name]}; it must be 1 to ${max}`);
  });
}

function* sides({ x, y, width, height, thickness }) {
  const [right, bottom] = [x + width, y + height];
  if (2 * thickness >= Math.min(width, height)) {
    yield [x, y, right, bottom];
    return;
  }
  yield [x, y, right, y + thickness];
  yield [x, bottom - thickness, right, bottom];
  yield [x, y + thickness, x + thickness, bottom - thickness];
  yield [right - thickness, y + thickness, right, bottom - thickness];
}

function* outline({ points, thickness }, size) {
  for (let i = 0; i < points.length; i++) {
    yield* line(points[i], points[(i + 1) % points.length], thickness, size);
  }
  const before = Math.floor((thickness - 1) / 2);
  for (const [x, y] of points) {
    yield [x - before, y - before, x - before + thickness, y - before + thickness];
  }
}

/** A bar at each place along the side in which the line is longer. */
function* line(a, b, thickness, size) {
  const isFlat = Math.abs(b[0] - a[0]) >= Math.abs(b[1] - a[1]);
  const [along, cross] = isFlat ? [0, 1] : [1, 0];
  const [start, end] = a[along] <= b[along] ? [a, b] : [b, a];
  const length = end[along] - start[along];
  const slope = length === 0 ? 0 : (end[cross] - start[cross]) / length;
  const bar = Math.floor(thickness * Math.sqrt(1 + slope * slope) + 0.5);
  const last = Math.min(end[along], size[along] - 1);
  for (let place = Math.max(start[along], 0); place <= last; place++) {
    const middle = Math.floor(start[cross] + (place - start[along]) * slope + 0.5);
    const edge = middle - Math.floor((bar - 1) / 2);
    yield isFlat ? [place, edge, place + 1, edge + bar] : [edge, place, edge + bar, place + 1];
  }
}

function* boxes({ x, y, text, size }) {
  for (const [index, character] of [...text].entries()) {
    if (/\s/.test(character)) continue;
    for (const [row, bits] of CHARACTER.entries()) {
      for (let column = 0; column < 8; column++) {
        if (((bits >> column) & 1) === 0) continue;
        const [left, top] = [x + (8 * index + column) * size, y + row * size];
        yield [left, top, left + size, top + size];
      }
    }
  }
}
