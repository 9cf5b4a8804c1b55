import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { assets, Internal, PluginResponse } from '../src/index.js';
import { TestHost } from '../src/testing.js';

const handle = (context, request) => PluginResponse.text(assets.open(request.query.get('name')).text());
const opened = async (host, name) => (await host.handle({ handle }, { query: [['name', name]] })).text();

test('a file of the test hides one of the folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'assets-'));
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'assets', 'labels.txt'), 'cat');
  writeFileSync(join(folder, 'secret'), 'x');
  const before = process.cwd();
  process.chdir(folder);
  try {
    assert.equal(await opened(new TestHost(), 'labels.txt'), 'cat');
    assert.equal(await opened(new TestHost().asset('labels.txt', 'dog'), 'labels.txt'), 'dog');
    for (const name of ['../secret', '', 'none']) {
      await assert.rejects(opened(new TestHost(), name), (error) => {
        assert(error instanceof Internal, `${error}`);
        return error.message.includes('TestHost.asset');
      });
    }
  } finally {
    process.chdir(before);
  }
});

test('a name is a string', () => {
  assert.throws(() => assets.open(7), { name: 'TypeError', message: /not a string/ });
});
