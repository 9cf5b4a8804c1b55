// Makes the bindings that componentize-js generates cheaper. The engine interprets them, and in a
// short call they are much of its time. They are made for debugging and for all hosts; each change
// below says what a plugin does not need, or what the bindings lack.

const CHANGES = [
  // Lines for debugging of the bindings.
  [/^[ \t]*_debugLog\([^;]*?\);[ \t]*\n/gm, ''],
  // Registrations of the host's objects for the garbage collector. The SDK gives back every object
  // at the end of a call (`src/resources.js`).
  [/^[ \t]*finalizationRegistry_\S+?\.(?:un)?register\([^;]*?\);[ \t]*\n/gm, ''],
  // A method's body in a function that each call makes anew.
  [
    /^ {2}(\w+)\([^)]*\) \{\n {4}function helper\(arg0(?:, )?([^)]*)\) \{\n([^]*?)\n {4}\}\n {4}return helper\(this[^)]*\);\n {2}\}/gm,
    '  $1($2) {\n      const arg0 = this;\n$3\n  }',
  ],
  // Objects of the host: no function that makes one is a constructor, and a plain assignment does.
  [/new\.target === (\S+) \? this : Object\.create\(\1\.prototype\)/g, 'Object.create($1.prototype)'],
  [
    /Object\.defineProperty\((\w+), symbolRscHandle, \{ writable: true, value: (\w+) ?\}\);/g,
    '$1[symbolRscHandle] = $2;',
  ],
  // A loop that makes an iterator.
  [
    /^( *)for \(const entry of (borrows\d+)\) \{$/gm,
    '$1for (let i = 0; i < $2.length; i++) {\n$1  const entry = $2[i];',
  ],
  // A promise for each call, also where the plugin's function is not asynchronous.
  [
    /^async function export_(\w+)\(([^)]*)\) \{\n((?:(?!\n\})[^])*?)\n {2}let ret;\n {2}const (borrows\d+) = curResourceBorrows;\n([^]*?)\n {2}return;\n\}\n/gm,
    withoutPromise,
  ],
  // A text's bytes are counted, character by character, before they are made.
  [/^function _utf8AllocateAndEncode\([^]*?^\}\n/m, encodeText],
  // Each look into the memory asks twice whether it has grown.
  [/^const dataView = .*\n/m, lookIntoMemory],
  // Arguments of the host's functions are copied into memory that nothing frees. A call that logs much
  // would fill the plugin's memory, and so would an instance that serves many calls.
  [/^(?:class|function) import_[^]*?(?=^(?:async )?function export_)/m, giveBackArguments],
  // What a call of the host gave lies in the memory as it was when the call ended.
  [/^( *)(ret = )?(\$import_\S+\(.*\));\n([^]*?)^( {2}\}|\})$/gm, lookOnce],
];

/**
 * An export that waits only for a promise. If it has none, it returns one that is fulfilled since
 * the build.
 */
function withoutPromise(all, name, args, lift, borrows, rest) {
  const call = /const (hostRet\d+) = await (.*);/;
  const now =
    `const $1 = $2;\nif (typeof $1?.then === 'function') {\n` +
    `  return later_${name}(${args}, $1, ${borrows}.splice(0));\n}`;
  return `function export_${name}(${args}) {
${lift}
  let ret;
  const ${borrows} = curResourceBorrows;
${rest.replace(call, now)}
  return FULFILLED;
}

async function later_${name}(${args}, pending, ${borrows}) {
  let ret;
${rest.replace(call, 'const $1 = await pending;')}
}
`;
}

/** Takes the place of the bindings' function of this name. */
function encodeText() {
  return `function _utf8AllocateAndEncode(s, realloc, memory) {
  if (typeof s !== 'string') throw new TypeError('expected a string, received [' + typeof s + ']');
  const { length } = s;
  if (length === 0) return { ptr: 1, len: 0 };
  // In place: an array of the bytes would be garbage. First as ASCII, then as the longest that it can be.
  let ptr = realloc(0, 0, 1, length);
  let done = TEXT_ENCODER_UTF8.encodeInto(s, new Uint8Array(memory.buffer, ptr, length));
  if (done.read < length) {
    ptr = realloc(0, 0, 1, 3 * length);
    done = TEXT_ENCODER_UTF8.encodeInto(s, new Uint8Array(memory.buffer, ptr, 3 * length));
  }
  return { ptr, len: done.written };
}
`;
}

/** Methods of the host's objects, and the host's functions. */
const IMPORTS = /^( *)(?:(?:async|static|function) )*[\w$]+\([^)]*\) \{\n[^]*?^\1\}$/gm;

function giveBackArguments(imports) {
  return imports.replace(IMPORTS, (whole) => {
    if (!whole.includes('$realloc')) return whole;
    // The conversion of an argument may call the host, too. That call gives back only its own. If a
    // conversion throws, the host is not called, and what was lent for it is given back.
    return whole
      .replaceAll('$realloc', 'lend')
      .replace(/\{\n/, '$&const from = lent.length;\ntry {\n')
      .replace(/^( *)\}$(?![^])/m, '} finally { giveBack(from); }\n$&');
  });
}

/** Also the memory of arguments: it is lent until the host has read them. */
function lookIntoMemory() {
  return `const lent = [];
const lend = (ptr, oldSize, align, size) => {
  if (size === 0) return align;
  ptr = $realloc(ptr, oldSize, align, size);
  lent.push(ptr, size, align);
  return ptr;
};
const giveBack = (from) => {
  for (let i = from; i < lent.length; i += 3) $dealloc(lent[i], lent[i + 1], lent[i + 2]);
  lent.length = from;
};
let seen;
const dataView = (memory) => {
  const { buffer } = memory;
  if (buffer === seen) return dv;
  seen = buffer;
  return (dv = new DataView(buffer));
};
`;
}

function lookOnce(all, indent, result = '', call, rest, end) {
  if (!rest.includes('dataView($memory)')) return all;
  const reading = rest.replaceAll('dataView($memory)', 'view');
  return `${indent}${result}${call};\n${indent}const view = dataView($memory);\n${reading}${end}`;
}

/** The functions that the engine looks for in the global object. */
const EXPORTS = /^ *(?:async )?function (export_\w+|bindExports)\(/gm;

/** What the bindings take from the global object in each call. */
const GLOBALS = ['Array', 'BigInt', 'DataView', 'Object', 'Uint8Array', 'Uint32Array'];

/** Change what the pinned componentize-js generates from now on. */
export async function useLeanBindings() {
  const main = import.meta.resolve('@bytecodealliance/componentize-js');
  const { splicer } = await import(new URL('../lib/spidermonkey-embedding-splicer.js', main));
  const { spliceBindings } = splicer;
  splicer.spliceBindings = (...args) => {
    const spliced = spliceBindings(...args);
    return { ...spliced, jsBindings: inFunction(leanBindings(spliced.jsBindings)) };
  };
}

/** `bindings` without what plugins do not need. */
export function leanBindings(bindings) {
  return CHANGES.reduce((text, [found, instead]) => text.replace(found, instead), bindings);
}

/** `bindings` as the body of a function, whose variables are found without a search by name. */
export function inFunction(bindings) {
  const names = [...bindings.matchAll(EXPORTS)].map((match) => match[1]);
  return [
    '(() => {',
    `const { ${GLOBALS.join(', ')} } = globalThis;`,
    'const FULFILLED = Promise.resolve();',
    bindings,
    `Object.assign(globalThis, { ${names.join(', ')} });`,
    '})();\n',
  ].join('\n');
}
