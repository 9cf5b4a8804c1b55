// SHA-256 of a file that is read piece by piece. The browser's own takes a whole file in memory, and only on pages that
// came over TLS or from this machine.
//
// Source: FIPS 180-4.

/** The bytes that are hashed at a time; between them the page stays usable. */
const PIECE = 1 << 20;

/** The first 32 bits of the fractional parts of the square or cube roots of the first primes. */
function roots(count: number, power: number): Uint32Array {
  const found = new Uint32Array(count);
  for (let candidate = 2, at = 0; at < count; candidate += 1) {
    let isPrime = true;
    for (let divisor = 2; divisor * divisor <= candidate; divisor += 1) isPrime &&= candidate % divisor !== 0;
    if (isPrime) {
      const root = candidate ** power;
      found[at] = Math.floor((root - Math.floor(root)) * 2 ** 32);
      at += 1;
    }
  }
  return found;
}

// Numbers with a sign, which engines add fastest.
const ROUNDS = new Int32Array(roots(64, 1 / 3));

export class Sha256 {
  private state = new Int32Array(roots(8, 1 / 2));
  private words = new Int32Array(64);
  /** The bytes of the block that is not whole. */
  private rest = new Uint8Array(64);
  private length = 0;

  update(bytes: Uint8Array): void {
    const begun = this.length % 64;
    this.length += bytes.length;
    let at = 0;
    if (begun > 0) {
      at = Math.min(64 - begun, bytes.length);
      this.rest.set(bytes.subarray(0, at), begun);
      if (begun + at < 64) return;
      this.block(this.rest, 0);
    }
    for (; at + 64 <= bytes.length; at += 64) this.block(bytes, at);
    this.rest.set(bytes.subarray(at));
  }

  /** The digest in hexadecimal digits. Nothing can follow. */
  hex(): string {
    const bits = this.length * 8;
    const end = new Uint8Array(((this.length % 64) + 9 > 64 ? 128 : 64) - (this.length % 64));
    end[0] = 0x80;
    const view = new DataView(end.buffer);
    view.setUint32(end.length - 8, Math.floor(bits / 2 ** 32));
    view.setUint32(end.length - 4, bits >>> 0);
    this.update(end);
    return [...this.state].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  private block(bytes: Uint8Array, from: number): void {
    const { words, state } = this;
    for (let at = 0; at < 16; at += 1) {
      const place = from + at * 4;
      words[at] = (bytes[place] << 24) | (bytes[place + 1] << 16) | (bytes[place + 2] << 8) | bytes[place + 3];
    }
    for (let at = 16; at < 64; at += 1) {
      const x = words[at - 15];
      const y = words[at - 2];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      words[at] = (words[at - 16] + s0 + words[at - 7] + s1) | 0;
    }
    let [a, b, c, d] = [state[0], state[1], state[2], state[3]];
    let [e, f, g, h] = [state[4], state[5], state[6], state[7]];
    for (let at = 0; at < 64; at += 1) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const first = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[at] + words[at]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + first) | 0;
      d = c;
      c = b;
      b = a;
      a = (first + second) | 0;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
  }
}

/** The digest of a file, as the admin API writes it. `progress` is told the bytes that are done. */
export async function digestOf(file: Blob, progress: (done: number) => void, signal: AbortSignal): Promise<string> {
  const hash = new Sha256();
  for (let at = 0; at < file.size; at += PIECE) {
    hash.update(new Uint8Array(await file.slice(at, at + PIECE).arrayBuffer()));
    signal.throwIfAborted();
    progress(Math.min(at + PIECE, file.size));
  }
  return `sha256:${hash.hex()}`;
}
