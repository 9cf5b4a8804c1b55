// Resizing as a separable convolution. When it shrinks, the filter grows with the step, so that
// every source pixel counts (antialiasing). `nearest` takes one pixel.

const FILTERS = {
  bilinear: { support: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) },
  bicubic: { support: 2, weight: (x) => cubic(Math.abs(x)) },
  lanczos3: { support: 3, weight: (x) => (Math.abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0) },
};

function cubic(x) {
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

function sinc(x) {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** `data` of `width` x `height` pixels in another size; `filter` is one of the contract's. */
export function resample(data, channels, [width, height], [newWidth, newHeight], filter) {
  const columns = taps(width, newWidth, filter);
  const rows = taps(height, newHeight, filter);
  const narrow = new Uint8Array(newWidth * height * channels);
  convolve(data, narrow, columns, (line, position, channel) =>
    (line * width + position) * channels + channel, (line, position, channel) =>
    (line * newWidth + position) * channels + channel, height, channels);
  const result = new Uint8Array(newWidth * newHeight * channels);
  convolve(narrow, result, rows, (line, position, channel) =>
    (position * newWidth + line) * channels + channel, (line, position, channel) =>
    (position * newWidth + line) * channels + channel, newWidth, channels);
  return result;
}

/** For each new position the first source position, and the weights from there on. */
function taps(size, newSize, filter) {
  const step = size / newSize;
  return Array.from({ length: newSize }, (_, position) => {
    const centre = (position + 0.5) * step;
    if (filter === 'nearest') return { first: Math.min(Math.floor(centre), size - 1), weights: [1] };
    const { support, weight } = FILTERS[filter];
    const stretch = Math.max(step, 1);
    const first = Math.max(0, Math.floor(centre - support * stretch + 0.5));
    const last = Math.min(size, Math.floor(centre + support * stretch + 0.5));
    const weights = [];
    for (let i = first; i < last; i++) weights.push(weight((i + 0.5 - centre) / stretch));
    const sum = weights.reduce((a, b) => a + b, 0);
    return { first, weights: weights.map((value) => value / sum) };
  });
}

function convolve(from, to, positions, source, target, lines, channels) {
  for (let line = 0; line < lines; line++) {
    positions.forEach(({ first, weights }, position) => {
      for (let channel = 0; channel < channels; channel++) {
        let sum = 0;
        for (let i = 0; i < weights.length; i++) {
          sum += weights[i] * from[source(line, first + i, channel)];
        }
        to[target(line, position, channel)] = Math.min(255, Math.max(0, Math.round(sum)));
      }
    });
  }
}
