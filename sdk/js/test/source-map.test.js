import assert from 'node:assert/strict';
import { test } from 'node:test';
import { originalLines } from '../build/source-map.mjs';

test('each line of the bundle has the place of its first code', () => {
  // Line 1: source 0, line 1. Line 2: nothing. Line 3: source 1, line 3. Line 4: source 0, line 2.
  assert.deepEqual(originalLines('AAAA;;ACEA,CACA;ADFA'), [[0, 1], [-1, 0], [1, 3], [0, 2]]);
});
