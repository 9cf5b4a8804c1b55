// The circumstances of a call, read from the host when they are asked for.

import { Internal } from './failure.js';
import { parse } from './json.js';

/** For whom, for which pipeline and until when a call runs. */
export class Context {
  #raw;
  #settings;

  constructor(raw) {
    this.#raw = raw;
  }

  get tenant() {
    return this.#raw.tenant();
  }

  get pipeline() {
    return this.#raw.pipeline();
  }

  get model() {
    return this.#raw.model();
  }

  get requestId() {
    return this.#raw.requestId();
  }

  get settings() {
    if (this.#settings === undefined) {
      try {
        this.#settings = parse(this.#raw.settings());
      } catch (error) {
        throw new Internal(`the pipeline's settings: ${error.message}`);
      }
    }
    return this.#settings;
  }

  get timeLeftMs() {
    return Number(this.#raw.timeLeft());
  }
}
