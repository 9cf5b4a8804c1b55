// Pairs of expressions that mean the same: one with this SDK's `np`, one with NumPy. The server's
// tests evaluate the first in a sandbox and the second with NumPy. Both have the arrays of `names`,
// which are those of `sdk/python/tests/array_table.py`.
//
// This file imports nothing, so that a test can make a script of it.

const INTS = ['uint8', 'int8', 'uint16', 'int16', 'uint32', 'int32', 'uint64', 'int64'];
const NUMBERS = [...INTS, 'float32', 'float64'];
const ALL = ['bool', ...NUMBERS];

/** The arrays of the expressions: for each dtype, one of shape [2, 3] and one of [3]. */
export function names(np) {
  const found = { np };
  for (const dtype of ALL) {
    const signed = /^[if]/.test(dtype);
    let rows = [[3, 0, 7], [1, signed ? -5 : 5, 100]];
    let row = [2, signed ? -3 : 3, 1];
    if (dtype === 'bool') [rows, row] = [[[true, false, true], [false, false, true]], [true, false, false]];
    if (dtype.startsWith('f')) [rows, row] = [[[3.5, 0, -7.25], [1, NaN, 100.125]], [2, -3.5, 0.5]];
    found[`${dtype}_a`] = np.array(rows, dtype);
    found[`${dtype}_b`] = np.array(row, dtype);
  }
  found.m = np.array([[1.5, -2, 0.25], [4, -0.5, 3]], np.float32);
  found.n = np.array([[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]], np.float64);
  found.i = np.array([2, 0, 1]);
  found.mask = np.array([[true, false, true], [false, true, false]]);
  found.none = np.zeros([0, 3], np.float32);
  found.zero = np.array(2.5, np.float32);
  found.odd = np.array([NaN, Infinity, -Infinity, -0, 1.5]);
  found.many = np.arange(70000, np.float64).reshape(7, 10000).remainder(977);
  return found;
}

function* pairs() {
  // Arithmetic in every pair of dtypes.
  for (const left of ALL) {
    for (const right of ALL) {
      yield [`${left}_a.add(${right}_b)`, `${left}_a + ${right}_b`];
      yield [`np.less(${left}_a, ${right}_b)`, `${left}_a < ${right}_b`];
    }
  }
  const operators = {
    subtract: '-', multiply: '*', divide: '/', floorDivide: '//', remainder: '%',
  };
  for (const dtype of NUMBERS) {
    const a = `${dtype}_a`;
    for (const [method, operator] of Object.entries(operators)) {
      yield [`${a}.${method}(${dtype}_b)`, `${a} ${operator} ${dtype}_b`];
    }
    for (const [js, python] of [['2', '2'], ['2.5', '2.5'], ['true', 'True'], ['2n', '2']]) {
      yield [`${a}.multiply(${js})`, `${a} * ${python}`];
      yield [`np.subtract(${js}, ${a})`, `${python} - ${a}`];
    }
    for (const name of ['maximum', 'minimum', 'sum', 'argmax', 'square', 'sign', 'isnan', 'floor']) {
      const args = name.endsWith('imum') ? `${a}, ${dtype}_b` : a;
      yield [`np.${name}(${args})`, `np.${name}(${args})`];
    }
    for (const name of ['sum', 'mean', 'max', 'argmin', 'any', 'std']) {
      for (const axis of [0, -1]) {
        yield [`${a}.${name}({ axis: ${axis} })`, `np.${name}(${a}, axis=${axis})`];
      }
      yield [`${a}.${name}({ axis: 1, keepdims: true })`, `np.${name}(${a}, axis=1, keepdims=True)`];
    }
    yield [`${a}.floorDivide(0)`, `${a} // 0`];
    yield [`${a}.sort({ axis: 0 })`, `np.sort(${a}, axis=0)`];
    yield [`${a}.argsort({ axis: 1 })`, `np.argsort(${a}, axis=1)`];
    yield [`${a}.unique()`, `np.unique(${a})`];
    yield [`${a}.cumsum({ axis: 0 })`, `np.cumsum(${a}, axis=0)`];
    yield [`${a}.matmul(${dtype}_b)`, `${a} @ ${dtype}_b`];
    yield [`np.where(${a}.greater(1), ${a}, ${dtype}_b)`, `np.where(${a} > 1, ${a}, ${dtype}_b)`];
  }
  for (const dtype of INTS) {
    const a = `${dtype}_a`;
    yield [`${a}.bitwiseAnd(${dtype}_b)`, `${a} & ${dtype}_b`];
    yield [`${a}.invert()`, `~${a}`];
    yield [`${a}.leftShift(2).rightShift(1)`, `${a} << 2 >> 1`];
    yield [`${a}.power(2)`, `${a} ** 2`];
    // Integral numbers are integers.
    yield [`${a}.multiply(1.0)`, `${a} * 1`];
    yield [`${a}.add(300)`, `${a} + 300`];
    yield [`${a}.notEqual(-1)`, `${a} != -1`];
    yield [`${a}.astype('float32')`, `${a}.astype(np.float32)`];
  }
  // Functions of floats.
  for (const name of [
    'exp', 'exp2', 'expm1', 'log', 'log2', 'log10', 'log1p', 'sqrt', 'sin', 'cos', 'tan', 'arcsin', 'arccos',
    'arctan', 'sinh', 'cosh', 'tanh', 'reciprocal', 'floor', 'ceil', 'trunc', 'rint', 'isnan', 'isinf',
    'isfinite', 'sign', 'absolute',
  ]) {
    for (const array of ['m', 'odd', 'none', 'zero']) yield [`${array}.${name}()`, `np.${name}(${array})`];
  }
  for (const name of ['sum', 'prod', 'mean', 'max', 'min', 'any', 'all', 'var', 'std']) {
    yield [`n.${name}({ axis: [0, 2] })`, `n.${name}(axis=(0, 2))`];
    yield [`np.${name}(n, { axis: [1, 2], keepdims: true })`, `n.${name}(axis=(1, 2), keepdims=True)`];
    for (const array of ['odd', 'zero', 'mask']) yield [`${array}.${name}()`, `${array}.${name}()`];
    for (const array of ['none', 'many']) {
      yield [`${array}.${name}({ axis: 0 })`, `${array}.${name}(axis=0)`];
      yield [`${array}.${name}({ axis: 1 })`, `${array}.${name}(axis=1)`];
    }
  }
  yield* [
    ['np.logicalNot(m)', 'np.logical_not(m)'],
    ['np.logicalAnd(m, 1)', 'np.logical_and(m, 1)'],
    ['mask.logicalXor(m.greater(0))', 'np.logical_xor(mask, m > 0)'],
    ['mask.logicalOr(m.lessEqual(-1))', 'np.logical_or(mask, m <= -1)'],
    ['bool_a.bitwiseOr(bool_b).bitwiseXor(true)', '(bool_a | bool_b) ^ True'],
    ['bool_a.subtract(bool_b)', 'bool_a - bool_b'],
    ['bool_a.negative()', '-bool_a'],
    ['m.arctan2(2)', 'np.arctan2(m, 2)'],
    ['np.hypot(m, m)', 'np.hypot(m, m)'],
    ['m.round()', 'np.round(m)'],
    ['n.divide(7).round(2)', 'np.round(n / 7, 2)'],
    ['odd.floorDivide(1.5)', 'odd // 1.5'],
    ['odd.mod(1.5)', 'odd % 1.5'],
    ['odd.pow(2)', 'odd ** 2'],
    ['odd.multiply(NaN)', 'odd * np.nan'],
    ['odd.maximum(-Infinity)', 'np.maximum(odd, -np.inf)'],
    ['odd.equal(Infinity)', 'odd == np.inf'],
    ['np.power(2, int32_a.abs())', '2 ** np.abs(int32_a)'],
    ['int32_a.power(-1)', 'int32_a ** -1'],
    ['m.power(0.5)', 'm ** 0.5'],
    ['m.clip(-1, 2)', 'np.clip(m, -1, 2)'],
    ['np.clip(m, 0)', 'np.clip(m, 0, None)'],
    ['m.clip(null, 1)', 'np.clip(m, None, 1)'],
    ['uint8_a.less(300)', 'uint8_a < 300'],
    ['int64_a.greaterEqual(-(2n ** 63n))', 'int64_a >= -(2**63)'],
    ['uint64_a.greater(-1)', 'uint64_a > -1'],
    ['int8_a.multiply(300)', 'int8_a * 300'],
    ['m.isclose(m.add(1e-9))', 'np.isclose(m, m + 1e-9)'],
    ['np.isclose(uint8_a, uint8_a.add(1), { atol: 1 })', 'np.isclose(uint8_a, uint8_a + 1, atol=1)'],
    ['np.isclose(1, np.array([Infinity, 1]))', 'np.isclose(1.0, np.array([np.inf, 1.0]))'],
    ['np.allclose(m, m.add(1))', 'np.allclose(m, m + 1)'],
    ['np.arrayEqual(m, m)', 'np.array_equal(m, m)'],
    ['m.arrayEqual(i)', 'np.array_equal(m, i)'],
    // Along axes.
    ['n.argmax({ axis: 1 })', 'n.argmax(axis=1)'],
    ['n.argmin({ axis: 0, keepdims: true })', 'n.argmin(axis=0, keepdims=True)'],
    ['none.argmax()', 'np.argmax(none)'],
    ['mask.countNonzero({ axis: 0 })', 'np.count_nonzero(mask, axis=0)'],
    ['n.sum({ axis: 3 })', 'n.sum(axis=3)'],
    ['n.sum({ axis: [0, 0] })', 'n.sum(axis=(0, 0))'],
    ['n.var({ axis: 0, ddof: 1 })', 'n.var(axis=0, ddof=1)'],
    ['np.median(m)', 'np.median(m)'],
    ['n.median({ axis: 1 })', 'np.median(n, axis=1)'],
    ['np.median([1, NaN, 3])', 'np.median(np.array([1, np.nan, 3]))'],
    ['np.cumsum(n)', 'np.cumsum(n)'],
    ['mask.cumulativeSum()', 'np.cumsum(mask)'],
    ['m.softmax()', 'np.exp(m) / np.exp(m).sum(axis=-1, keepdims=True)'],
    ['m.softmax({ axis: 0 })', 'np.exp(m) / np.exp(m).sum(axis=0, keepdims=True)'],
    ['m.sigmoid()', '1 / (1 + np.exp(-m))'],
    ['n.meanPool(mask)', '(n * mask[..., None]).sum(axis=1) / mask.sum(axis=1)[:, None]'],
    ['m.normalize()', 'm / np.linalg.norm(m, axis=-1, keepdims=True)'],
    // Indices.
    ['m.at(0)', 'm[0]'],
    ['m.at(-1)', 'm[-1]'],
    ['m.at(2)', 'm[2]'],
    ['m.at(1, 2)', 'm[1, 2]'],
    ["m.at(':', 1)", 'm[:, 1]'],
    ["m.at('...', 0)", 'm[..., 0]'],
    ['m.at(null)', 'm[None]'],
    ["m.at(':', np.newaxis, np.slice())", 'm[:, None, :]'],
    ["m.at('::-1')", 'm[::-1]'],
    ["m.at(':', '::-2')", 'm[:, ::-2]'],
    ['m.at(np.slice(5))', 'm[5:]'],
    ["m.at('-1:')", 'm[-1:]'],
    ['m.at(np.slice(null, 0))', 'm[:0]'],
    ['n.at(1, np.slice(), np.slice(null, null, -1))', 'n[1, :, ::-1]'],
    ["n.at(':', '1:3', 0)", 'n[:, 1:3, 0]'],
    ['m.at([1, 0, 1])', 'm[[1, 0, 1]]'],
    ["m.at(':', i)", 'm[:, i]'],
    ['m.at(i)', 'm[i]'],
    ['m.at([0, 1], [2, 0])', 'm[[0, 1], [2, 0]]'],
    ["n.at([0, 1], ':', [1, 0])", 'n[[0, 1], :, [1, 0]]'],
    ['m.at(mask)', 'm[mask]'],
    ['m.at(m.greater(0))', 'm[m > 0]'],
    ['n.at([true, false])', 'n[[True, False]]'],
    ['m.at([5])', 'm[[5]]'],
    ['m.at(0, 0, 0)', 'm[0, 0, 0]'],
    ['m.at([])', 'm[[]]'],
    ["m.at(i.at(':', null).remainder(2), i)", 'm[i[:, None] % 2, i]'],
    ['zero.at()', 'zero[()]'],
    ['zero.at(null)', 'zero[None]'],
    ["none.at(':', 0)", 'none[:, 0]'],
    ['m.at(true)', 'm[True]'],
    ['m.at(zero.greater(5))', 'm[zero > 5]'],
    ['m.at(1.5)', 'm[1.5]'],
    ['m.at(1n)', 'm[1]'],
    ["m.at('::0')", 'm[::0]'],
    ['m.at(Int32Array.of(1, 0))', 'm[np.array([1, 0], np.int32)]'],
    ['m.at(m.argmax({ axis: 0 }).at(0))', 'm[m.argmax(axis=0)[0]]'],
    ["many.at(6, '::1111')", 'many[6, ::1111]'],
    ['many.at(many.greater(970))', 'many[many > 970]'],
    ['m.take([2, 0], { axis: 1 })', 'np.take(m, [2, 0], axis=1)'],
    ['np.take(m, [5, 0])', 'np.take(m, [5, 0])'],
    ['m.take([7])', 'np.take(m, [7])'],
    [
      'm.takeAlongAxis(m.argsort({ axis: 1 }), { axis: 1 })',
      'np.take_along_axis(m, np.argsort(m, axis=1), axis=1)',
    ],
    ['mask.nonzero()[1]', 'np.nonzero(mask)[1]'],
    ['np.where(mask)[0]', 'np.where(mask)[0]'],
    ['np.argwhere(m.greater(0))', 'np.argwhere(m > 0)'],
    ['m.flatnonzero()', 'np.flatnonzero(m)'],
    // Shapes.
    ['m.T', 'm.T'],
    ['n.T', 'n.T'],
    ['n.mT', 'n.transpose(0, 2, 1)'],
    ['m.reshape(3, 2)', 'm.reshape(3, 2)'],
    ['m.reshape([-1])', 'm.reshape(-1)'],
    ['m.reshape(4, -1)', 'm.reshape(4, -1)'],
    ['np.reshape(n, [2, 6])', 'n.reshape((2, 6))'],
    ['n.transpose(1, 0, 2)', 'n.transpose(1, 0, 2)'],
    ['np.permuteDims(n, [2, 0, 1])', 'np.transpose(n, (2, 0, 1))'],
    ['n.transpose(0, 1)', 'n.transpose(0, 1)'],
    ['m.ravel()', 'm.ravel()'],
    ['n.swapaxes(0, 2)', 'np.swapaxes(n, 0, 2)'],
    ['n.moveaxis(0, -1)', 'np.moveaxis(n, 0, -1)'],
    ['np.moveaxis(n, 2, 0)', 'np.moveaxis(n, 2, 0)'],
    ['n.moveaxis(0, 5)', 'np.moveaxis(n, 0, 5)'],
    ['m.expandDims(1)', 'np.expand_dims(m, 1)'],
    ['m.expandDims(-2)', 'np.expand_dims(m, -2)'],
    ['m.at(null).squeeze()', 'np.squeeze(m[None])'],
    ["m.at(':', ':1').squeeze({ axis: 1 })", 'np.squeeze(m[:, :1], axis=1)'],
    ['m.squeeze({ axis: 0 })', 'np.squeeze(m, axis=0)'],
    ['i.broadcastTo([2, 3])', 'np.broadcast_to(i, (2, 3))'],
    ['m.broadcastTo(3, 2)', 'np.broadcast_to(m, (3, 2))'],
    ['np.concatenate([m, m])', 'np.concatenate([m, m])'],
    ['np.concat([m, int32_a], { axis: 1 })', 'np.concatenate([m, int32_a], axis=1)'],
    ['np.concatenate([m, i])', 'np.concatenate([m, i])'],
    ['np.concatenate([m, n], { axis: null })', 'np.concatenate([m, n], axis=None)'],
    ['np.stack([m, m], { axis: -1 })', 'np.stack([m, m], -1)'],
    ['np.stack([i, m])', 'np.stack([i, m])'],
    ['np.vstack([i, i])', 'np.vstack([i, i])'],
    ['np.hstack([i, i])', 'np.hstack([i, i])'],
    ['np.hstack([m, m])', 'np.hstack([m, m])'],
    ['np.columnStack([i, i])', 'np.column_stack([i, i])'],
    ['m.repeat(2)', 'np.repeat(m, 2)'],
    ['m.repeat(3, { axis: 0 })', 'np.repeat(m, 3, axis=0)'],
    ['i.tile(2)', 'np.tile(i, 2)'],
    ['m.tile(2, 1)', 'np.tile(m, (2, 1))'],
    ['np.tile(i, [2, 2, 1])', 'np.tile(i, (2, 2, 1))'],
    ['m.flip()', 'np.flip(m)'],
    ['n.flip({ axis: [0, 2] })', 'np.flip(n, (0, 2))'],
    ['np.stack([none, none])', 'np.stack([none, none])'],
    ['none.reshape(3, 0)', 'none.reshape(3, 0)'],
    ['np.concatenate(Array(700).fill(i))', 'np.concatenate([i] * 700)'],
    ["np.stack(Array(1200).fill(m.at(':', 0))).sum()", 'np.stack([m[:, 0]] * 1200).sum()'],
    // Order.
    ['odd.sort()', 'np.sort(odd)'],
    ['odd.argsort()', 'np.argsort(odd)'],
    ['n.sort({ axis: null })', 'np.sort(n, axis=None)'],
    ['i.sort({ descending: true })', 'np.sort(i)[::-1]'],
    ['m.topK(2)[0]', 'np.sort(m)[:, ::-1][:, :2]'],
    ['m.topK(1, { axis: 0 })[1]', 'm.argmax(axis=0, keepdims=True)'],
    ['np.unique([3, 1, 3, 2])', 'np.unique([3, 1, 3, 2])'],
    [
      'np.unique([3, 1, 3], { returnCounts: true })[1]',
      'np.unique([3, 1, 3], return_counts=True)[1]',
    ],
    ['np.searchsorted([1, 3, 5], [0, 3, 9])', 'np.searchsorted([1, 3, 5], [0, 3, 9])'],
    [
      "np.searchsorted([1, 3, 5], [[3, 4]], { side: 'right' })",
      "np.searchsorted([1, 3, 5], [[3, 4]], side='right')",
    ],
    ["many.sort({ axis: 1 }).at(':', '::977')", 'np.sort(many, axis=1)[:, ::977]'],
    // Products.
    ['m.matmul(m.T)', 'm @ m.T'],
    ['np.matmul([1.5, 2], m)', 'np.array([1.5, 2.0]) @ m'],
    ['m.matmul(m)', 'm @ m'],
    ['none.matmul(none.T)', 'none @ none.T'],
    ['zero.matmul(m)', 'zero @ m'],
    ['np.dot(zero, m)', 'np.dot(zero, m)'],
    ['m.dot(i)', 'np.dot(m, i)'],
    ['i.outer([1, 2])', 'np.outer(i, [1, 2])'],
    ['np.linalg.norm(m)', 'np.linalg.norm(m)'],
    ['np.linalg.norm(m, { axis: 0, keepdims: true })', 'np.linalg.norm(m, axis=0, keepdims=True)'],
    ['np.linalg.norm(uint8_a)', 'np.linalg.norm(uint8_a)'],
    ['many.matmul(many.T)', 'many @ many.T'],
    ['i.oneHot(3)', 'np.eye(3, dtype=np.float32)[i]'],
    ["i.oneHot(4, 'int64')", 'np.eye(4, dtype=np.int64)[i]'],
    ['np.nms([[0, 0, 2, 2], [0, 0, 2, 2.1], [5, 5, 6, 6]], [0.5, 0.9, 0.1])', 'np.array([1, 2])'],
    ['np.nms([[0, 0, 2, 2], [5, 5, 6, 6]], [0.5, 0.1], { scoreThreshold: 0.2 })', 'np.array([0])'],
    // Making.
    ['np.zeros(3)', 'np.zeros(3)'],
    ["np.ones([2, 2], 'int32')", 'np.ones((2, 2), np.int32)'],
    ['np.full([2], 7)', 'np.full((2,), 7)'],
    ['np.full([2], 0.5)', 'np.full((2,), 0.5)'],
    ['np.full(2, NaN, { dtype: np.float32 })', 'np.full(2, np.nan, np.float32)'],
    ['np.zeros([])', 'np.zeros(())'],
    ['np.arange(5)', 'np.arange(5)'],
    ['np.arange(2, 11, 3)', 'np.arange(2, 11, 3)'],
    ['np.arange(5, 0, -2)', 'np.arange(5, 0, -2)'],
    ['np.arange(0, 1, 0.25)', 'np.arange(0, 1, 0.25)'],
    ["np.arange(3, { dtype: 'float32' })", 'np.arange(3, dtype=np.float32)'],
    ['np.arange(mask.sum())', 'np.arange(mask.sum())'],
    ['np.arange(2n ** 53n, 2n ** 53n + 3n)', 'np.arange(2**53, 2**53 + 3)'],
    ['np.linspace(0, 1, 5)', 'np.linspace(0, 1, 5)'],
    ['np.linspace(2, 3, 4, { endpoint: false })', 'np.linspace(2, 3, 4, False)'],
    ["np.linspace(-1, 1, 4, 'int32')", 'np.linspace(-1, 1, 4, dtype=np.int32)'],
    ['np.eye(3)', 'np.eye(3)'],
    ['np.eye(2, { M: 4, k: 1 })', 'np.eye(2, 4, 1)'],
    ["np.eye(3, { k: -1, dtype: 'int8' })", 'np.eye(3, k=-1, dtype=np.int8)'],
    ['np.array([1, 2.5])', 'np.array([1, 2.5])'],
    ['np.array([true, 2])', 'np.array([True, 2])'],
    ['np.array([])', 'np.array([])'],
    ['np.array([[], []])', 'np.array([[], []])'],
    ['np.array([1, -1], np.uint8)', 'np.array([1, -1], np.uint8)'],
    ['np.array(3)', 'np.array(3)'],
    ['np.array(3.5)', 'np.array(3.5)'],
    ['np.array(true)', 'np.array(True)'],
    ['np.array([2n ** 63n])', 'np.array([2**63])'],
    ['np.array([-(2n ** 63n), 2n ** 62n + 1n])', 'np.array([-(2**63), 2**62 + 1])'],
    ['np.array([2 ** 60])', 'np.array([2.0**60])'],
    ['np.array([1e300, -1e22])', 'np.array([1e300, -1e22])'],
    ['np.array([0.5, -0]).reciprocal()', '1 / np.array([0.5, -0.0])'],
    ['np.array([m, m])', 'np.array([m, m])'],
    ['np.array([[i, i], [i, i]])', 'np.array([[i, i], [i, i]])'],
    ['np.array([[1, 2], [3]])', 'np.array([[1, 2], [3]])'],
    ["np.array(['a'])", "np.array(['a']) + 1"],
    ['np.zerosLike(m)', 'np.zeros_like(m)'],
    ['np.fullLike(int8_a, 3)', 'np.full_like(int8_a, 3)'],
    ["np.onesLike(m, 'int64')", 'np.ones_like(m, np.int64)'],
    ['np.array([1.5, 2.5]).astype("int32")', 'np.array([1.5, 2.5]).astype(np.int32)'],
    ['np.array([1.1, 2.675, 1e23, 5e-324])', 'np.array([1.1, 2.675, 1e23, 5e-324])'],
    ['np.asarray(Float32Array.of(0.1, 0.2))', 'np.array([0.1, 0.2], np.float32)'],
    ['np.asarray(BigInt64Array.of(1n, -(2n ** 63n)))', 'np.array([1, -(2**63)])'],
    ['np.asarray([Uint8Array.of(1, 2), Uint8Array.of(3, 4)])', 'np.array([[1, 2], [3, 4]], np.uint8)'],
    ["np.frombuffer(new Uint8Array(8), 'float32')", 'np.frombuffer(bytes(8), np.float32)'],
    // Long lists.
    ['np.array([...Array(500).keys()])', 'np.array(list(range(500)))'],
    ["np.array([...Array(500).keys()], 'uint8')", 'np.array(list(range(500)), np.uint8) + 1'],
    ["np.array([...Array(500).keys()], 'int16')", 'np.array(list(range(500)), np.int16)'],
    ['np.array([...Array(500).keys(), 0.5])', 'np.array([*range(500), 0.5])'],
    ["np.array([...Array(500).keys(), -0.5], 'int8')", 'np.minimum([*range(500), 0], 127).astype(np.int8)'],
    ['np.array(Array(300).fill([true, false]))', 'np.array([[True, False]] * 300)'],
    ['np.array(Array(300).fill(2n ** 60n + 1n))', 'np.array([2**60 + 1] * 300)'],
    ['np.array(Array(300).fill(2n ** 63n))', 'np.array([2**63] * 300)'],
    ["np.array(Array(300).fill(NaN), 'float32')", 'np.array([np.nan] * 300, np.float32)'],
    // What several operations make.
    ['m.add(n)', 'm + n'],
    ["m.at(':', null).add(i.at(null, ':', null))", 'm[:, None] + i[None, :, None]'],
    [
      'm.subtract(m.mean({ axis: 0 })).divide(m.std({ axis: 0 }))',
      '(m - m.mean(axis=0)) / m.std(axis=0)',
    ],
    ['np.where(float32_a.isnan(), 0, float32_a).sum()', 'np.where(np.isnan(float32_a), 0, float32_a).sum()'],
    ['np.where(m.greater(0), 1, 0)', 'np.where(m > 0, 1, 0)'],
    ['np.where(mask, m, n.at(0).T)', 'np.where(mask, m, n[0].T)'],
    ['m.max({ axis: 1 }).at(m.argmax({ axis: 1 }).greater(0))', 'm.max(axis=1)[m.argmax(axis=1) > 0]'],
    ['m.cumprod({ axis: 1 })', 'np.cumprod(m, axis=1)'],
    ['np.cumulativeProd(i)', 'np.cumprod(i)'],
    ['[...m][1]', 'm[1]'],
    ['[...i]', 'np.array([2, 0, 1])'],
    ['m.max() + 1.5', 'float(m.max()) + 1.5'],
    // Long chains and programs are run in parts.
    ['Array(1200).fill(0).reduce((all) => all.add(1), zero)', 'zero + 1200'],
    ['np.sum(Array.from({ length: 1100 }, (_, k) => many.at(1, k)))', 'many[1, :1100].sum()'],
  ];
}

/** Pairs of an expression in JavaScript and one with NumPy. */
export const TABLE = [...pairs()];
