import assert from 'node:assert/strict';
import { test } from 'node:test';
import vm from 'node:vm';
import { inFunction, leanBindings } from '../build/lean-bindings.mjs';

const lines = (...all) => `${all.join('\n')}\n`;

test('debug lines and registrations go, everything else stays', () => {
  const bindings = [
    'const _debugLog = (...args) => {',
    '};',
    "    _debugLog(' [Instruction::CallInterface] (sync, @ enter)');",
    "  _debugLog('[Instruction::Return]', {",
    "    funcName: 'read',",
    '  });',
    '  finalizationRegistry_import$blob.unregister(arg0);',
    '  finalizationRegistry_import$blob.register(rsc0, handle1, rsc0);',
    '  ret = $import(handle0);',
    '',
  ];
  assert.equal(leanBindings(bindings.join('\n')), lines(bindings[0], bindings[1], bindings[8]));
});

// What componentize-js generates, shortened: a method of the host's object, and an export.
const GENERATED = lines(
  'let dv = new DataView(new ArrayBuffer());',
  'const dataView = mem => dv.buffer === mem.buffer ? dv : dv = new DataView(mem.buffer);',
  'function _utf8AllocateAndEncode(s, realloc, memory) {',
  '  for (let i = 0; i < s.length; i++) {',
  '  }',
  '}',
  'const TEXT_ENCODER_UTF8 = new TextEncoder();',
  "const symbolRscHandle = Symbol('handle');",
  'let curResourceBorrows = [];',
  'class import_host$Host {',
  '  byteAt(arg0) {',
  '    function helper(arg0, arg1) {',
  '      var handle0 = arg0[symbolRscHandle];',
  '      let ret;',
  '      ret = $import_byteAt(handle0, arg1);',
  '      return dataView($memory).getUint8(ret, true);',
  '    }',
  '    return helper(this, arg0);',
  '  }',
  '  log(arg0) {',
  '    function helper(arg0, arg1) {',
  '      var encodeRes = _utf8AllocateAndEncode(arg1, $realloc, $memory);',
  '      $import_log(encodeRes.ptr, encodeRes.len);',
  '      return;',
  '    }',
  '    return helper(this, arg0);',
  '  }',
  '  logTimes(arg0, arg1) {',
  '    function helper(arg0, arg1, arg2) {',
  '      var encodeRes = _utf8AllocateAndEncode(arg1, $realloc, $memory);',
  '      $import_logTimes(encodeRes.ptr, encodeRes.len, +arg2);',
  '      return;',
  '    }',
  '    return helper(this, arg0, arg1);',
  '  }',
  '}',
  'async function export_run(arg0, arg1) {',
  '  var handle1 = arg0;',
  '  var rsc0 = new.target === import_host$Host ? this : Object.create(import_host$Host.prototype);',
  '  Object.defineProperty(rsc0, symbolRscHandle, { writable: true, value: handle1});',
  '  curResourceBorrows.push({ rsc: rsc0, drop: $drop });',
  '  let ret;',
  '  const borrows4 = curResourceBorrows;',
  '  curResourceBorrows= [];',
  '  try {',
  '    try {',
  '      const hostRet5 = await run(rsc0);',
  "      ret = { tag: 'ok', val: hostRet5};",
  '    } catch (e) {',
  "      ret = { tag: 'err', val: e };",
  '    }',
  '  } finally {',
  '    for (const entry of borrows4) {',
  '      entry.drop(entry.rsc[symbolRscHandle]);',
  '    }',
  '  }',
  '  var encodeRes = _utf8AllocateAndEncode(ret.val, $realloc, $memory);',
  '  $memory.result = [ret.tag, encodeRes];',
  '  return;',
  '}',
  'let run;',
  'function bindExports() {',
  '  run = $run;',
  '}',
);

/** What a call of the bindings around `run` does, and the text that it returns. */
async function callOf($run, logged = [], taken = new Map()) {
  const dropped = [];
  const $memory = { buffer: new ArrayBuffer(256) };
  new Uint8Array($memory.buffer)[2] = 65;
  const text = (ptr, len) => new TextDecoder().decode(new Uint8Array($memory.buffer, ptr, len));
  let end = 4;
  const engine = {
    $run,
    $memory,
    $drop: (handle) => dropped.push(handle),
    $import_byteAt: (handle, at) => handle + at,
    $import_log: (ptr, len) => logged.push(text(ptr, len)),
    $import_logTimes: (ptr, len, times) => {
      assert.equal(taken.get(ptr), len);
      logged.push(text(ptr, len).repeat(times));
    },
    $realloc: (old, oldSize, align, size) => {
      taken.set(end, size);
      end += size;
      return end - size;
    },
    $dealloc: (ptr, size) => {
      assert.equal(taken.get(ptr), size);
      taken.delete(ptr);
    },
    TextEncoder,
  };
  vm.runInNewContext(inFunction(leanBindings(GENERATED)), engine);
  engine.bindExports();
  const done = engine.export_run(1, 0);
  assert.equal(typeof done.then, 'function');
  await done;
  const [tag, { ptr, len }] = $memory.result;
  return { tag, text: text(ptr, len), dropped };
}

test('the memory of arguments is given back, and no other', async () => {
  const texts = ['a line', '', 'ß€𝄞', '\ud800 alone'];
  const [logged, taken] = [[], new Map()];
  const run = (host) => {
    texts.forEach((text) => host.log(text));
    assert.equal(taken.size, 0);
    return 'ok';
  };
  assert.equal((await callOf(run, logged, taken)).text, 'ok');
  assert.deepEqual(logged, [...texts.slice(0, 3), '\ufffd alone']);
  assert.deepEqual([...taken.values()], [2]);
});

test('a call of the host while arguments are converted gives back only its own', async () => {
  const [logged, taken] = [[], new Map()];
  const run = (host) => {
    const valueOf = () => {
      host.log('inner');
      return 2;
    };
    host.logTimes('outer', { valueOf });
    assert.equal(taken.size, 0);
    return 'ok';
  };
  await callOf(run, logged, taken);
  assert.deepEqual(logged, ['inner', 'outerouter']);
});

test('an argument that cannot be converted leaves nothing lent', async () => {
  const [logged, taken] = [[], new Map()];
  const run = (host) => {
    const valueOf = () => {
      host.log('inner');
      throw new RangeError('not a number');
    };
    assert.throws(() => host.logTimes('outer', { valueOf }), { message: 'not a number' });
    assert.equal(taken.size, 0);
    host.log('after');
    return 'ok';
  };
  await callOf(run, logged, taken);
  assert.deepEqual(logged, ['inner', 'after']);
});

test('an export drops what was lent and returns a text, now or later', async () => {
  const read = (host) => `${host.byteAt(1)}é`;
  assert.deepEqual(await callOf(read), { tag: 'ok', text: '65é', dropped: [1] });
  const later = async (host) => {
    await undefined;
    return read(host);
  };
  assert.deepEqual(await callOf(later), { tag: 'ok', text: '65é', dropped: [1] });
});

test('an export says what was thrown, now or later', async () => {
  const fails = () => { throw 'no'; };
  assert.deepEqual(await callOf(fails), { tag: 'err', text: 'no', dropped: [1] });
  assert.deepEqual(await callOf(async () => fails()), { tag: 'err', text: 'no', dropped: [1] });
});

test('the changes find what they change', () => {
  const lean = leanBindings(GENERATED);
  for (const old of ['helper', 'defineProperty', 'new.target', 'await run', 'of borrows4', 'charCode']) {
    assert.ok(!lean.includes(old), `${old} is still there:\n${lean}`);
  }
});
