// The bindings of a component live in another realm than the plugin: of bytes that they return,
// `bytes instanceof Uint8Array` is false, and packages of npm ask that.

/** The same bytes, as an object of this realm. */
export function ours(bytes) {
  if (bytes instanceof Uint8Array) return bytes;
  const { buffer, byteOffset, length } = bytes;
  Object.setPrototypeOf(buffer, ArrayBuffer.prototype);
  return new Uint8Array(buffer, byteOffset, length);
}
