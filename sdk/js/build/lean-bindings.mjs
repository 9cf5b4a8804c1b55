// Makes the bindings that componentize-js generates cheaper. They log each call for debugging of
// the bindings, and register each of the host's objects for the garbage collector. In an engine
// that interprets, this is much of a call's time. The SDK gives back every object at the end of a
// call (`src/resources.js`), so the garbage collector has nothing to do.

const STATEMENTS = [
  /^[ \t]*_debugLog\([^;]*?\);[ \t]*\n/gm,
  /^[ \t]*finalizationRegistry_\S+?\.(?:un)?register\([^;]*?\);[ \t]*\n/gm,
];

/** Change what the pinned componentize-js generates from now on. */
export async function useLeanBindings() {
  const main = import.meta.resolve('@bytecodealliance/componentize-js');
  const { splicer } = await import(new URL('../lib/spidermonkey-embedding-splicer.js', main));
  const { spliceBindings } = splicer;
  splicer.spliceBindings = (...args) => {
    const spliced = spliceBindings(...args);
    return { ...spliced, jsBindings: withoutStatements(spliced.jsBindings) };
  };
}

/** `bindings` without the statements that plugins do not need. */
export function withoutStatements(bindings) {
  return STATEMENTS.reduce((text, statement) => text.replace(statement, ''), bindings);
}
