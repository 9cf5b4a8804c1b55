// How the reference host refuses: as the bindings of a component do, with the contract's error as
// `payload`.

/** An error with the contract's variant case `tag` and its value. */
export function refusal(tag, val) {
  return Object.assign(new Error(typeof val === 'string' ? val : tag), { payload: { tag, val } });
}
