// The reference host's bodies.

import { decode } from './base64.js';
import { ReferenceTensor } from './tensor.js';

/** Bytes as the contract's `blob`. */
export class ReferenceBlob {
  #bytes;

  constructor(bytes) {
    this.#bytes = bytes;
  }

  static fromBytes(bytes) {
    return new ReferenceBlob(Uint8Array.from(bytes));
  }

  static fromBase64(text) {
    return new ReferenceBlob(decode(text));
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

  tensor(dtype, shape) {
    return ReferenceTensor.create(dtype, shape, this.#bytes);
  }

  slice(offset, length) {
    return new ReferenceBlob(this.read(offset, length));
  }

  [Symbol.dispose ?? Symbol.for('dispose')]() {}
}
