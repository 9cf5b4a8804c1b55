// Numbers in each element type: reading and writing them, and the rules of a cast.

const view = new DataView(new ArrayBuffer(8));

function float16ToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Round to the nearest, to even if two are equally near. */
function numberToFloat16(value) {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size >= 65520) return sign | 0x7c00;
  const exponent = Math.max(Math.floor(Math.log2(size || 1e-30)), -14);
  const units = roundToEven(size / 2 ** (exponent - 10));
  return sign | (units + ((exponent + 14) << 10));
}

function bfloat16ToNumber(bits) {
  view.setUint32(0, bits << 16);
  return view.getFloat32(0);
}

function numberToBfloat16(value) {
  view.setFloat32(0, value);
  const bits = view.getUint32(0);
  if (Number.isNaN(value)) return 0x7fc0;
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

function roundToEven(value) {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

function integer(bits, signed) {
  const least = signed ? -(2 ** (bits - 1)) : 0;
  const most = 2 ** (signed ? bits - 1 : bits) - 1;
  return (value) => {
    const number = Number(value);
    return Number.isNaN(number) ? 0 : Math.min(Math.max(Math.trunc(number), least), most);
  };
}

function bigInteger(signed) {
  const least = signed ? -(2n ** 63n) : 0n;
  const most = signed ? 2n ** 63n - 1n : 2n ** 64n - 1n;
  return (value) => {
    if (typeof value === 'number') {
      if (Number.isNaN(value)) return 0n;
      if (!Number.isFinite(value)) return value < 0 ? least : most;
      value = BigInt(Math.trunc(value));
    }
    return value < least ? least : value > most ? most : value;
  };
}

const same = (value) => value;

/**
 * Of each element type: `Elements`, the typed array of its stored form; `read`, from the stored
 * form to a number or bigint; `write`, from any number or bigint to the stored form.
 */
export const NUMBERS = {
  bool: { Elements: Uint8Array, read: same, write: (value) => (value == 0 ? 0 : 1) },
  uint8: { Elements: Uint8Array, read: same, write: integer(8, false) },
  int8: { Elements: Int8Array, read: same, write: integer(8, true) },
  uint16: { Elements: Uint16Array, read: same, write: integer(16, false) },
  int16: { Elements: Int16Array, read: same, write: integer(16, true) },
  uint32: { Elements: Uint32Array, read: same, write: integer(32, false) },
  int32: { Elements: Int32Array, read: same, write: integer(32, true) },
  uint64: { Elements: BigUint64Array, read: same, write: bigInteger(false) },
  int64: { Elements: BigInt64Array, read: same, write: bigInteger(true) },
  float16: {
    Elements: Uint16Array,
    read: float16ToNumber,
    write: (value) => numberToFloat16(Number(value)),
  },
  bfloat16: {
    Elements: Uint16Array,
    read: bfloat16ToNumber,
    write: (value) => numberToBfloat16(Number(value)),
  },
  float32: { Elements: Float32Array, read: same, write: Number },
  float64: { Elements: Float64Array, read: same, write: Number },
};
