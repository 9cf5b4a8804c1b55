import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Body, fetch, FetchError, Internal, PluginResponse } from '../src/index.js';
import { TestHost } from '../src/testing.js';

const ORIGIN = 'https://api.example.com';

/** What `ask` returns within a call of this host. */
async function within(host, ask) {
  let got;
  const handle = async () => {
    got = await ask();
    return PluginResponse.json(null);
  };
  await host.handle({ handle });
  return got;
}

function echoing() {
  return new TestHost().service(ORIGIN, ({ method, url, headers, text, timeoutMs }) => ({
    headers: { 'X-Of': 'service' },
    json: { method, url, headers, text, timeoutMs },
  }));
}

test('a service answers', async () => {
  const [answer, value, text, bytes, buffer] = await within(echoing(), async () => {
    const answer = await fetch(`${ORIGIN}/a`, { headers: { 'X-Own': 7 }, timeoutMs: 250 });
    const { size } = answer.body;
    return [answer, await answer.json(), await answer.text(), await answer.bytes(), await answer.arrayBuffer(), size];
  });
  const expected = { method: 'GET', url: `${ORIGIN}/a`, headers: { 'x-own': '7' }, text: '', timeoutMs: 250 };
  assert.deepEqual([answer.status, answer.ok, value], [200, true, expected]);
  assert.deepEqual([answer.headers.get('x-OF'), answer.headers.get('x'), answer.headers.has('x-of')], ['service', null, true]);
  assert.deepEqual([...answer.headers], [['content-type', 'application/json'], ['x-of', 'service']]);
  assert.deepEqual(JSON.parse(text), expected);
  assert.deepEqual([new TextDecoder().decode(bytes), buffer.byteLength], [text, bytes.length]);
});

test('a body is a text, bytes or a body that stays on the host', async () => {
  const bytes = new TextEncoder().encode('xabcx').subarray(1, 4);
  const bodies = ['abc', bytes, bytes.slice().buffer, () => Body.fromBytes(bytes)];
  for (const body of bodies) {
    const sent = await within(echoing(), async () => {
      const given = typeof body === 'function' ? body() : body;
      return (await fetch(ORIGIN, { method: 'post', body: given })).json();
    });
    const headers = body === 'abc' ? { 'content-type': 'text/plain;charset=UTF-8' } : {};
    assert.deepEqual([sent.method, sent.text, sent.headers], ['POST', 'abc', headers]);
  }
  const options = { method: 'PUT', body: '{}', headers: new Map([['Content-Type', 'application/json']]) };
  const sent = await within(echoing(), async () => (await fetch(ORIGIN, options)).json());
  assert.deepEqual(sent.headers, { 'content-type': 'application/json' });
});

test('a time beyond all deadlines is sent as one', async () => {
  const sent = await within(echoing(), async () => (await fetch(ORIGIN, { timeoutMs: 1e300 })).json());
  assert.equal(sent.timeoutMs, Number.MAX_SAFE_INTEGER);
});

test('a URL is written in ASCII', async () => {
  const { url } = await within(echoing(), async () => (await fetch(new URL(`${ORIGIN}/größe 1?q=ä`))).json());
  assert.equal(url, `${ORIGIN}/gr%C3%B6%C3%9Fe%201?q=%C3%A4`);
  const asText = await within(echoing(), async () => (await fetch(`${ORIGIN}/größe 1%20`)).json());
  assert.equal(asText.url, `${ORIGIN}/gr%C3%B6%C3%9Fe%201%20`);
});

test('an error of a service has a kind, and is internal if nothing catches it', async () => {
  const asked = (answer, options, url = ORIGIN) =>
    within(new TestHost().service(ORIGIN, answer), () => fetch(url, options).catch((error) => error));
  for (const kind of ['not-granted', 'prohibited-address', 'connection', 'timed-out', 'too-large']) {
    const error = await asked(() => { throw new FetchError(kind, 'as told'); });
    assert.ok(error instanceof FetchError && error instanceof Internal);
    assert.deepEqual([error.kind, error.message, error.name], [kind, 'as told', 'FetchError']);
  }
  for (const url of [`${ORIGIN}.evil.test/`, 'http://api.example.com/', `${ORIGIN}:8443/`]) {
    const error = await asked(() => ({}), {}, url);
    assert.equal(error.kind, 'not-granted');
    assert.match(error.message, /host\.service\(origin, answer\)/);
  }
  const missing = await asked(() => ({ status: 404 }));
  assert.deepEqual([missing.status, missing.ok], [404, false]);
  const calling = new TestHost().handle({ handle: async () => PluginResponse.json(await fetch(ORIGIN)) });
  await assert.rejects(calling, (error) => error instanceof Internal && /no service/.test(error.message));
  assert.throws(() => new FetchError('late', 'x'), /the kinds of FetchError/);
});

test('arguments are checked', async () => {
  for (const [options, message] of [
    [{ signal: null }, /fetch has no option signal: it has method, headers, body, timeoutMs/],
    [{ redirect: 'follow' }, /no option redirect/],
    [{ timeoutMs: 0 }, /timeoutMs is not a time/],
    [{ timeoutMs: '1' }, /timeoutMs is not a time/],
    [{ body: {} }, /a string, bytes or a Body/],
  ]) {
    const error = await within(echoing(), () => fetch(ORIGIN, options).catch((caught) => caught));
    assert.ok(error instanceof TypeError, String(error));
    assert.match(error.message, message);
  }
});
