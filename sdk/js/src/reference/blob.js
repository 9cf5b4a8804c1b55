// The reference host's bodies.

/** Bytes as the contract's `blob`. */
export class ReferenceBlob {
  #bytes;

  constructor(bytes) {
    this.#bytes = bytes;
  }

  len() {
    return BigInt(this.#bytes.length);
  }

  read(offset, length) {
    const size = BigInt(this.#bytes.length);
    const start = offset < size ? offset : size;
    const end = start + length < size ? start + length : size;
    return this.#bytes.slice(Number(start), Number(end));
  }

  [Symbol.dispose ?? Symbol.for('dispose')]() {}
}
