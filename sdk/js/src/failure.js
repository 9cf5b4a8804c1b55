// Failures: exceptions that say why a plugin gives no answer. Each class is one case of the
// contract's `failure`.

/** The base class of the four failures. Throw one of them; any other exception is a fault. */
export class Failure extends Error {
  /** The HTTP status that the client gets. */
  get status() {
    return 500;
  }
}

/** The request cannot be understood: 400 with the message. */
export class InvalidInput extends Failure {
  get status() {
    return 400;
  }
}

/** This plugin does not take the request's media type: 415 with the message. */
export class UnsupportedMediaType extends Failure {
  get status() {
    return 415;
  }
}

/** The request is understood, but cannot be served: 422 with the message. */
export class Unprocessable extends Failure {
  get status() {
    return 422;
  }
}

/** The plugin's own fault: 500. The message goes to the server's log only. */
export class Internal extends Failure {}

for (const kind of [Failure, InvalidInput, UnsupportedMediaType, Unprocessable, Internal]) {
  Object.defineProperty(kind.prototype, 'name', { value: kind.name });
}

/** The contract's form of a failure. */
export function toContract(failure) {
  const tag =
    failure instanceof InvalidInput ? 'invalid-input'
    : failure instanceof UnsupportedMediaType ? 'unsupported-media-type'
    : failure instanceof Unprocessable ? 'unprocessable'
    : 'internal';
  return { tag, val: failure.message };
}

/** The exception of a failure in the contract's form. */
export function fromContract({ tag, val }) {
  const kinds = {
    'invalid-input': InvalidInput,
    'unsupported-media-type': UnsupportedMediaType,
    unprocessable: Unprocessable,
    internal: Internal,
  };
  return new kinds[tag](val);
}
