// What is known of a recording between its pieces. The client keeps it, as a text in base64.

import { Body, InvalidInput, Tensor } from 'gristmill-plugin';
import { RATE } from './audio.js';

/** The samples of a run of the model, and those before them that it gets as well. */
export const CHUNK = 512;
export const CONTEXT = 64;

// As Silero's own `get_speech_timestamps` has them. The last three are samples.
const SPEECH = 0.5;
const SILENCE = 0.35;
const SILENCE_MIN = 0.1 * RATE;
const SPEECH_MIN = 0.25 * RATE;
const MARGIN = 0.03 * RATE;

/** Nothing is open. */
const NONE = -1;

const MEMORY_SHAPE = [2, 1, 128];
const MEMORY_BYTES = 4 * 2 * 128;
/** Three numbers of 8 bytes: position, start, quiet. Then the memory and the tail. */
const NUMBERS_BYTES = 3 * 8;
const TAIL_AT = NUMBERS_BYTES + MEMORY_BYTES;

export class Stream {
  constructor() {
    /** The samples that the model has heard. */
    this.position = 0;
    /** Where the speech under way began, and where it fell silent. */
    this.start = NONE;
    this.quiet = NONE;
    /** What the model remembers. */
    this.memory = Tensor.from(new Float32Array(MEMORY_BYTES / 4), MEMORY_SHAPE);
    /** The last samples that the model has heard, and those that wait for a whole chunk. */
    this.tail = Tensor.from(new Int16Array(CONTEXT));
  }

  static decode(text) {
    const body = Body.fromBase64(text);
    const tailBytes = body.size - TAIL_AT;
    const waiting = tailBytes / 2 - CONTEXT;
    if (!(Number.isInteger(waiting) && waiting >= 0 && waiting < CHUNK)) throw refused();
    const [position, start, quiet] = new Float64Array(body.bytes(0, NUMBERS_BYTES).slice().buffer);
    const memory = new Float32Array(body.bytes(NUMBERS_BYTES, MEMORY_BYTES).slice().buffer);
    if (!memory.every(Number.isFinite)) throw refused();
    const isPlace = (value) => Number.isSafeInteger(value) && value >= NONE && value < position;
    const isStart = position === 0 && start === NONE && quiet === NONE;
    const isAligned = Number.isSafeInteger(position) && position > 0 && position % CHUNK === 0;
    if (!isStart && !(isAligned && isPlace(start) && isPlace(quiet))) throw refused();
    const stream = new Stream();
    Object.assign(stream, { position, start, quiet });
    stream.memory = Tensor.from(memory, MEMORY_SHAPE);
    stream.tail = Tensor.fromBytes(body.slice(TAIL_AT), [tailBytes / 2], 'int16');
    return stream;
  }

  /** A body, which an answer has in base64. */
  encode() {
    const tail = this.tail.bytes();
    const bytes = new Uint8Array(TAIL_AT + tail.length);
    bytes.set(new Uint8Array(Float64Array.of(this.position, this.start, this.quiet).buffer));
    bytes.set(this.memory.bytes(), NUMBERS_BYTES);
    bytes.set(tail, TAIL_AT);
    return Body.fromBytes(bytes);
  }

  /** The speech that ends within the next chunks, which have these probabilities. */
  follow(probabilities) {
    const ended = [];
    for (let at = 0; at < probabilities.length; at++) {
      const probability = probabilities[at];
      if (probability >= SPEECH) {
        if (this.start === NONE) this.start = this.position;
        this.quiet = NONE;
      } else if (probability < SILENCE && this.start !== NONE) {
        if (this.quiet === NONE) this.quiet = this.position;
        if (this.position - this.quiet >= SILENCE_MIN) ended.push(...this.#close(this.quiet, MARGIN));
      }
      this.position += CHUNK;
    }
    return ended;
  }

  /** The speech under way, which ends with the recording at its sample `length`. */
  end(length) {
    return this.start === NONE ? [] : this.#close(length, 0);
  }

  /** The speech that ends here, in seconds, unless it was too short. */
  #close(end, margin) {
    const { start } = this;
    this.start = NONE;
    this.quiet = NONE;
    if (end - start <= SPEECH_MIN) return [];
    return [{ start: Math.max(start - MARGIN, 0) / RATE, end: (end + margin) / RATE }];
  }
}

function refused() {
  return new InvalidInput('the state is not one of an answer');
}
