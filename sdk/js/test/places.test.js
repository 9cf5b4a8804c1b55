import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placesForHost } from '../runtime/places.js';

test('the host finds the places of lines behind a head and two lengths', () => {
  const table = { bundle: 'bundle.js', files: ['plugin.js', 'ä.js', 'b.js'], lines: [[0, 3], [-1, 0], [2, 70000]] };
  const bytes = placesForHost(table);
  const head = Buffer.from('gristmill.places');
  assert.deepEqual(Buffer.from(bytes.subarray(0, 16)), head);
  const view = new DataView(bytes.buffer, 16);
  const numbers = Array.from({ length: 8 }, (_, at) => view.getUint32(4 * at, true));
  const names = 'bundle.js\nplugin.js\nä.js\nb.js';
  assert.deepEqual(numbers, [3, Buffer.byteLength(names), 10, 3, 0, 0, 26, 70000]);
  assert.equal(Buffer.from(bytes.subarray(16 + 32)).toString(), names);
});
