import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutStatements } from '../build/lean-bindings.mjs';

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
  assert.equal(withoutStatements(bindings.join('\n')), [bindings[0], bindings[1], bindings[8], ''].join('\n'));
});
