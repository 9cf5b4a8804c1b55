// The reference host has no arrays: a host's own code works on their elements.

function refuse() {
  throw new Error(
    'arrays are computed by the host, which unit tests do not have: `gristmill plugin test` runs the ' +
      'plugin with it',
  );
}

export const evaluate = refuse;
export const read = refuse;
