import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IMAGENET, Pixels } from '../src/index.js';
import { TestHost } from '../src/testing.js';

const gray = (width, height, bytes) => Pixels.fromBytes(width, height, Uint8Array.from(bytes), 'gray');

test('nearest takes one pixel, bilinear is antialiased when it shrinks', () => {
  const picture = gray(4, 1, [0, 100, 0, 100]);
  assert.deepEqual([...picture.resize(2, 1, 'nearest').data()], [100, 100]);
  assert.deepEqual([...picture.resize(1, 1).data()], [50]);
  assert.deepEqual([...gray(2, 1, [0, 100]).resize(4, 1).data()], [0, 25, 75, 100]);
});

test('every filter keeps a picture of one value', () => {
  for (const filter of ['nearest', 'bilinear', 'bicubic', 'lanczos3']) {
    const resized = gray(5, 3, new Array(15).fill(77)).resize(7, 2, filter);
    assert.deepEqual([...new Set(resized.data())], [77], filter);
  }
});

test('the shorter side gets the size', () => {
  const resized = gray(4, 2, new Array(8).fill(0)).resizeShorter(3);
  assert.deepEqual([resized.width, resized.height], [6, 3]);
});

test('sizes are rounded as by torchvision', () => {
  const resized = (width, height) => gray(width, height, new Uint8Array(width * height)).resizeShorter(224);
  assert.equal(resized(640, 480).width, 298);
  assert.equal(resized(480, 640).height, 298);
  // int(round(margin / 2.0)) of a margin of 0, 1, ..
  const row = (length) => gray(length, 1, Array.from({ length }, (_, index) => index));
  const starts = Array.from({ length: 8 }, (_, n) => row(9 + n).cropCenter(9, 1).data()[0]);
  assert.deepEqual(starts, [0, 0, 1, 2, 2, 2, 3, 4]);
});

test('crop, from a corner and from the centre', () => {
  const picture = gray(4, 2, [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual([...picture.crop(2, 0, 2, 2).data()], [3, 4, 7, 8]);
  assert.deepEqual([...picture.cropCenter(2, 2).data()], [2, 3, 6, 7]);
  assert.throws(() => picture.crop(3, 0, 2, 1), { name: 'ImageError' });
  assert.throws(() => picture.cropCenter(5, 1), { name: 'ImageError' });
});

test('pad has one fill value for each channel', () => {
  const picture = Pixels.fromBytes(1, 1, Uint8Array.of(1, 2, 3)).pad({ left: 1, bottom: 1 }, [7, 8, 9]);
  assert.deepEqual([...picture.data()], [7, 8, 9, 1, 2, 3, 7, 8, 9, 7, 8, 9]);
});

test('letterbox, and its boxes in the picture', () => {
  const { pixels, placement } = gray(4, 2, new Array(8).fill(200)).letterbox(8, 8, { fill: 114 });
  assert.deepEqual([pixels.width, pixels.height], [8, 8]);
  assert.deepEqual([...pixels.data().subarray(8, 24)], [...new Array(8).fill(114), ...new Array(8).fill(200)]);
  assert.deepEqual({ ...placement }, { scaleX: 2, scaleY: 2, left: 0, top: 2, width: 4, height: 2 });
  assert.deepEqual(placement.toOriginal([2, 4, 6, 6]), [1, 1, 3, 2]);
  assert.deepEqual(placement.toOriginal([-4, 0, 20, 8]), [0, 0, 4, 2]);
});

test('statistics of each channel', () => {
  assert.deepEqual(gray(3, 1, [7, 255, 2]).statistics(), [{ min: 2, max: 255, mean: 88 }]);
  const coloured = Pixels.fromBytes(2, 1, Uint8Array.of(0, 51, 255, 1, 2, 3));
  assert.deepEqual(coloured.statistics(), [
    { min: 0, max: 1, mean: 0.5 },
    { min: 2, max: 51, mean: 26.5 },
    { min: 3, max: 255, mean: 129 },
  ]);
});

test('to a tensor: layouts, channel orders, scale, mean and std', () => {
  const picture = Pixels.fromBytes(2, 1, Uint8Array.of(255, 0, 51, 0, 255, 0));
  const planes = picture.toTensor();
  assert.deepEqual(planes.shape, [1, 3, 1, 2]);
  assert.deepEqual([...planes.data()].map((v) => +v.toFixed(6)), [1, 0, 0, 1, 0.2, 0]);
  const bytes = picture.toTensor({ dtype: 'uint8', layout: 'nhwc', color: 'bgr' });
  assert.deepEqual(bytes.shape, [1, 1, 2, 3]);
  assert.deepEqual([...bytes.data()], [51, 0, 255, 0, 255, 0]);
  const normal = picture.toTensor(IMAGENET).data();
  assert.ok(Math.abs(normal[0] - (1 - 0.485) / 0.229) < 1e-6);
  assert.throws(() => picture.toTensor({ dtype: 'int64' }), { name: 'ImageError' });
});

/** The rows of a black picture with shapes on it. */
function rows(width, height, ...shapes) {
  const drawn = gray(width, height, new Array(width * height).fill(0)).draw(shapes).data();
  const row = (y) => [...drawn.subarray(y * width, (y + 1) * width)];
  return Array.from({ length: height }, (_, y) => row(y).map((value) => (value ? '#' : '.')).join(''));
}

test('shapes are drawn as by the host', () => {
  // As in host/imaging/tests/it/draw.rs.
  const white = { color: [255, 255, 255] };
  assert.deepEqual(
    rows(8, 6, { box: [-2, -1.2, 5.3, 5], ...white }),
    ['#####...', '...##...', '...##...', '#####...', '#####...', '........'],
  );
  assert.deepEqual(
    rows(8, 6, { points: [[1, 1], [6, 1], [1, 4]], thickness: 1, ...white }),
    ['........', '.######.', '.#..##..', '.###....', '.#......', '........'],
  );
  assert.deepEqual(
    rows(9, 6, { points: [[1, 1], [7, 3]], ...white }),
    ['.........', '.##......', '.#####...', '...######', '......###', '.........'],
  );
  const far = 1e30;
  assert.deepEqual(rows(4, 2, { points: [[-far, -far], [far, far]], thickness: 1, ...white }), ['#...', '.#..']);
  assert.deepEqual(rows(4, 3, { label: 'A', at: [-1, 0], size: 1, ...white }), ['####', '#...', '#...']);
  assert.deepEqual(rows(2, 1, { label: ' ', at: [0, 0] }, { box: [1, 1, 0, 0] }), ['..']);
  assert.throws(() => rows(1, 1, { points: [], thickness: 65 }), {
    name: 'ImageError',
    message: 'shapes[0]: thickness is 65; it must be 1 to 64',
  });
  assert.throws(() => rows(1, 1, { label: 'A'.repeat(257), at: [0, 0] }), /more than 256 characters/);
  assert.throws(() => rows(1, 1, { box: [0, 0, NaN, 1] }), /NaN is not a number/);
  assert.throws(() => rows(1, 1, { box: [0, 0, 1, 1], color: [0, 0, 256] }), /0 to 255/);
  const coloured = Pixels.fromBytes(2, 1, new Uint8Array(6)).draw([{ box: [0, 0, 1, 1] }]);
  assert.deepEqual([...coloured.data()], [255, 0, 0, 0, 0, 0]);
});

test('many parts are cropped at once', () => {
  const picture = gray(3, 2, [1, 2, 3, 4, 5, 6]);
  const boxes = [[0, 0, 1, 2], [1, 0, 2, 2]];
  assert.deepEqual(picture.cropMany(boxes).map((part) => [...part.data()]), [[1, 4], [2, 3, 5, 6]]);
  const small = picture.cropMany(boxes, [1, 1], 'nearest');
  assert.deepEqual(small.map(({ width, height, color }) => [width, height, color]), new Array(2).fill([1, 1, 'gray']));
  assert.throws(() => picture.cropMany([boxes[0], [2, 0, 2, 2]]), {
    name: 'ImageError',
    message: /^boxes\[1\]: crop 2x2 at \(2, 0\)/,
  });
  assert.throws(() => picture.cropMany(new Array(1025).fill(boxes[0])), /1025 boxes/);
});

test('a file has a format and a quality', () => {
  const picture = gray(1, 1, [90]);
  assert.throws(() => picture.encode('jpeg', { quality: 0 }), { name: 'ImageError', message: /1 to 100, not 0/ });
  assert.throws(() => picture.encode('gif'), /format is gif/);
});

test('a file of another format is an unsupported media type', async () => {
  const plugin = { preprocess: (context, request) => Pixels.decode(request) };
  await assert.rejects(new TestHost().preprocess(plugin, { body: 'no picture' }), {
    status: 415,
    message: 'not a JPEG, PNG, WebP, BMP or GIF',
  });
});
