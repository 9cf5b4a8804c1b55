// The host's objects (tensors, pictures, bodies) that the call under way holds. They are given back
// when the call ends, not when the garbage collector finds them: it may run much later, and the
// host bounds their number.

const dispose = Symbol.dispose ?? Symbol.for('dispose');

let held = [];

/** Hold `resource` until the call ends. Returns it. */
export function hold(resource) {
  held.push(resource);
  return resource;
}

/** Whether the call holds `resource`. */
export function isHeld(resource) {
  return held.includes(resource);
}

/** No longer hold `resource`: it goes to the host with the call's result. */
export function release(resource) {
  const index = held.lastIndexOf(resource);
  if (index < 0) return false;
  held[index] = undefined;
  return true;
}

/** Give back everything that the call holds. */
export function giveBackAll() {
  const resources = held;
  held = [];
  for (let i = resources.length - 1; i >= 0; i--) {
    if (resources[i] !== undefined) resources[i][dispose]();
  }
}
