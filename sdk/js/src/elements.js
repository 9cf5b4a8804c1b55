// Element types, and the typed arrays that hold them.

const ARRAYS = {
  bool: Uint8Array,
  uint8: Uint8Array,
  int8: Int8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  uint32: Uint32Array,
  int32: Int32Array,
  uint64: BigUint64Array,
  int64: BigInt64Array,
  float16: Float32Array,
  bfloat16: Float32Array,
  float32: Float32Array,
  float64: Float64Array,
  string: Array,
};

const DTYPES = new Map([
  [Float32Array, 'float32'],
  [Float64Array, 'float64'],
  [Uint8Array, 'uint8'],
  [Uint8ClampedArray, 'uint8'],
  [Int8Array, 'int8'],
  [Uint16Array, 'uint16'],
  [Int16Array, 'int16'],
  [Uint32Array, 'uint32'],
  [Int32Array, 'int32'],
  [BigUint64Array, 'uint64'],
  [BigInt64Array, 'int64'],
]);
if (globalThis.Float16Array) DTYPES.set(globalThis.Float16Array, 'float16');

/** The typed array's class in which elements of `dtype` are given and returned. */
export function arrayOf(dtype) {
  return ARRAYS[dtype];
}

/** The element type of a typed array, or undefined. Buffer and other subclasses count too. */
export function dtypeOf(array) {
  const exact = DTYPES.get(array.constructor);
  if (exact !== undefined || !ArrayBuffer.isView(array)) return exact;
  for (const [kind, dtype] of DTYPES) if (array instanceof kind) return dtype;
  return undefined;
}

/** Strings in the contract's form: of each its length in bytes, a little-endian u32, and UTF-8. */
export function encodeStrings(strings) {
  const encoder = new TextEncoder();
  const texts = strings.map((text) => encoder.encode(text));
  const bytes = new Uint8Array(texts.reduce((sum, text) => sum + 4 + text.length, 0));
  const lengths = new DataView(bytes.buffer);
  let offset = 0;
  for (const text of texts) {
    lengths.setUint32(offset, text.length, true);
    bytes.set(text, offset + 4);
    offset += 4 + text.length;
  }
  return bytes;
}

/** The strings of which `encodeStrings` made `bytes`. Throws a RangeError for other bytes. */
export function decodeStrings(bytes) {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const lengths = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const strings = [];
  for (let offset = 0; offset < bytes.length; ) {
    const start = offset + 4;
    offset = start + lengths.getUint32(offset, true);
    if (offset > bytes.length) throw new RangeError('a string ends after the data');
    strings.push(decoder.decode(bytes.subarray(start, offset)));
  }
  return strings;
}
