// The answer to the client.

import { written } from './answer.js';

const encoder = new TextEncoder();

/**
 * The answer to the client: a status, a media type, further headers and a body. It is not the DOM's
 * `Response`: its body is ready, and the host decides which headers the client gets.
 */
export class PluginResponse {
  constructor(body, { status = 200, contentType = 'application/octet-stream', headers = {} } = {}) {
    this.status = status;
    this.contentType = contentType;
    this.headers = Object.entries(headers).map(([name, value]) => ({ name, value: String(value) }));
    this.body = typeof body === 'string' ? encoder.encode(body) : body ?? new Uint8Array(0);
    if (!(this.body instanceof Uint8Array)) {
      throw new TypeError('the body of a PluginResponse is a string or a Uint8Array');
    }
    if (!Number.isInteger(status) || status < 200 || status > 599) {
      throw new RangeError(`status is ${status}: must be 200 to 599`);
    }
  }

  static json(value, options) {
    const body = written(value);
    if (body === undefined) {
      const what = value === undefined ? 'undefined' : `a ${typeof value}`;
      throw new TypeError(`${what} cannot be written as JSON`);
    }
    return new PluginResponse(body, { contentType: 'application/json', ...options });
  }

  static text(text, options) {
    return new PluginResponse(String(text), { contentType: 'text/plain; charset=utf-8', ...options });
  }
}
