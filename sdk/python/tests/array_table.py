"""Expressions that mean the same with `gristmill_plugin.numpy` and with NumPy.

`EXPRESSIONS` are evaluated with the names of `names(np)`, by the SDK's tests on the reference host,
and by the server's tests in a sandbox.
"""

_INTS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
_FLOATS = ["float32", "float64"]
_NUMBERS = [*_INTS, *_FLOATS]
_ALL = ["bool", *_NUMBERS]


def names(np):
    """The arrays of the expressions: for each dtype, one of shape [2, 3] and one of [3]."""
    found = {"np": np}
    for dtype in _ALL:
        kind = getattr(np, dtype)
        signed = dtype[0] in "if"
        rows = [[3, 0, 7], [1, -5 if signed else 5, 100]]
        row = [2, -3 if signed else 3, 1]
        if dtype == "bool":
            rows, row = [[True, False, True], [False, False, True]], [True, False, False]
        elif dtype[0] == "f":
            rows, row = [[3.5, 0.0, -7.25], [1.0, float("nan"), 100.125]], [2.0, -3.5, 0.5]
        found[dtype + "_a"] = np.array(rows, kind)
        found[dtype + "_b"] = np.array(row, kind)
    found["m"] = np.array([[1.5, -2.0, 0.25], [4.0, -0.5, 3.0]], np.float32)
    found["n"] = np.array([[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]], np.float64)
    found["i"] = np.array([2, 0, 1], np.int64)
    found["mask"] = np.array([[True, False, True], [False, True, False]])
    found["none"] = np.zeros((0, 3), np.float32)
    found["zero"] = np.array(2.5, np.float32)
    found["odd"] = np.array([float("nan"), float("inf"), -float("inf"), -0.0, 1.5])
    found["many"] = np.arange(70000, dtype=np.float64).reshape(7, 10000) % 977
    return found


def _expressions():
    # Arithmetic in every pair of dtypes.
    for left in _ALL:
        for right in _ALL:
            yield f"{left}_a + {right}_b"
            yield f"{left}_a < {right}_b"
    for dtype in _NUMBERS:
        for op in ["-", "*", "/", "//", "%"]:
            yield f"{dtype}_a {op} {dtype}_b"
        for number in ["2", "2.5", "True"]:
            yield f"{dtype}_a * {number}"
            yield f"{number} - {dtype}_a"
        for function in ["maximum", "minimum", *(["power"] if dtype[0] in "uf" else [])]:
            yield f"np.{function}({dtype}_a, {dtype}_b)"
        yield f"{dtype}_a // 0"
        yield f"{dtype}_a % 0"
        yield f"{dtype}_a // -3" if dtype[0] in "if" else f"{dtype}_a // 3"
        yield f"{dtype}_a % -3" if dtype[0] in "if" else f"{dtype}_a % 3"
        for function in ["negative", "absolute", "sign", "square", "floor", "isnan", "isfinite"]:
            yield f"np.{function}({dtype}_a)"
        for axis in ["None", "0", "1", "-1"]:
            for function in ["sum", "prod", "mean", "max", "argmax", "argmin", "any", "std"]:
                yield f"np.{function}({dtype}_a, axis={axis})"
        yield f"np.sort({dtype}_a, axis=0)"
        yield f"np.argsort({dtype}_a, axis=1)"
        yield f"np.unique({dtype}_a)"
        yield f"np.nonzero({dtype}_a)[0]"
        yield f"np.cumsum({dtype}_a, axis=0)"
        yield f"np.matmul({dtype}_a, {dtype}_b)"
        yield f"np.where({dtype}_a > 1, {dtype}_a, {dtype}_b)"
    for dtype in _INTS:
        for op in ["&", "|", "^"]:
            yield f"{dtype}_a {op} {dtype}_b"
        yield f"~{dtype}_a"
        yield f"{dtype}_a << 2"
        yield f"{dtype}_a >> 1"
        yield f"{dtype}_a ** 3"
        yield f"{dtype}_a.astype(np.float32)"
        yield f"{dtype}_a + 300"
    for op in ["&", "|", "^", "+", "*"]:
        yield f"bool_a {op} bool_b"
    yield from ["~bool_a", "bool_a - bool_b", "-bool_a", "bool_a.sum()", "bool_a.mean(axis=1)"]
    yield from ["np.logical_not(m)", "np.logical_and(m, 1)", "np.logical_xor(mask, m > 0)"]
    # Functions of floats.
    for function in (
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan"),
        *("arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "reciprocal"),
        *("floor", "ceil", "trunc", "rint", "isnan", "isinf", "isfinite", "sign", "absolute"),
    ):
        yield f"np.{function}(m)"
        yield f"np.{function}(odd)"
        yield f"np.{function}(none)"
        yield f"np.{function}(zero)"
    yield from [f"np.{function}(int32_a)" for function in ["exp", "sqrt", "log1p", "sin", "trunc"]]
    yield from ["np.arctan2(m, 2)", "np.arctan2(odd, odd[::-1])", "np.hypot(m, m)"]
    yield from ["np.round(m)", "np.round(np.array([0.5, 1.5, 2.5, -0.5]))", "np.round(n / 7, 2)"]
    yield from ["odd // 1.5", "odd % 1.5", "odd ** 2", "odd * 0", "odd / 0", "np.maximum(odd, 0)"]
    yield from ["np.clip(m, -1, 2)", "m.clip(0, None)", "np.clip(uint8_a, 2, 6)"]
    # Reductions.
    for function in ["sum", "prod", "mean", "max", "min", "any", "all", "var", "std"]:
        yield f"np.{function}(n, axis=(0, 2))"
        yield f"np.{function}(n, axis=(1, 2), keepdims=True)"
        yield f"np.{function}(odd)"
        yield f"np.{function}(none, axis=1)"
        yield f"np.{function}(none, axis=0)"
        yield f"np.{function}(zero)"
        yield f"np.{function}(many, axis=1)"
        yield f"np.{function}(many, axis=0)"
    yield from ["n.argmax(axis=1)", "n.argmin(axis=0, keepdims=True)", "np.argmax(odd)"]
    yield from ["np.argmax(none, axis=1)", "np.argmax(none)", "np.count_nonzero(mask, axis=0)"]
    yield from ["n.sum(axis=3)", "n.sum(axis=(0, 0))", "n.var(axis=0, ddof=1)", "np.median(m)"]
    yield from ["np.median(n, axis=1)", "np.cumsum(n)", "np.cumsum(n, axis=1)", "np.cumsum(mask)"]
    # Indices.
    yield from (
        *("m[0]", "m[-1]", "m[2]", "m[:, 1]", "m[1, 2]", "m[..., 0]", "m[None]", "m[:, None, :]"),
        *("m[::-1]", "m[:, ::-2]", "m[5:]", "m[-1:]", "m[:0]", "n[1, :, ::-1]", "n[:, 1:3, 0]"),
        *("m[[1, 0, 1]]", "m[:, i]", "m[i]", "m[[0, 1], [2, 0]]", "n[:, [0, 2], :]", "n[..., [1]]"),
        *("n[[0, 1], :, [1, 0]]", "n[0, [2, 0]]", "m[mask]", "m[m > 0]", "n[[True, False]]"),
        *("n[:, [True, False, True]]", "m[[-1]]", "m[[5]]", "m[0, 0, 0]", "m[mask[:, :2]]"),
        *("m[[]]", "m[i[:, None] % 2, i]", "zero[()]", "zero[None]", "none[:, 0]", "m[..., None]"),
        *("n[0, :, [0, 1]]", "n[[0, 1], 1]", "n[:, 1, [0, 1]]", "n[0, [1], None, 0]", "m[True]"),
        *("m[False]", "m[zero > 5]", "m[zero < 5, 0]", "m[1.0]", "m[range(2)]", "n[[1], ..., [0]]"),
        *("m[::0]", "n[1][2][1]", "many[:, 9999]", "many[6, ::1111]", "many[many > 970]"),
        *("np.take(m, [2, 0], axis=1)", "np.take(m, [5, 0])", "np.take(m, [[0, 1]], axis=0)"),
        *("np.take(m, [7])", "np.take_along_axis(m, np.argsort(m, axis=1), axis=1)"),
        *("np.nonzero(mask)[1]", "np.argwhere(m > 0)", "np.flatnonzero(m)", "np.nonzero(odd)[0]"),
    )
    # Shapes.
    yield from (
        *(
            "m.T",
            "n.T",
            "m.reshape(3, 2)",
            "m.reshape(-1)",
            "m.reshape(4, -1)",
            "n.reshape((2, 6))",
        ),
        *("n.transpose(1, 0, 2)", "np.transpose(n, (2, 0, 1))", "n.transpose(0, 1)", "m.ravel()"),
        *("np.swapaxes(n, 0, 2)", "np.moveaxis(n, 0, -1)", "np.moveaxis(n, 2, 0)"),
        *("np.expand_dims(m, 0)", "np.expand_dims(m, 1)", "np.expand_dims(m, -1)"),
        *("np.expand_dims(m, -2)", "np.squeeze(m[None])", "np.squeeze(m[:, :1], axis=1)"),
        *("np.squeeze(m, axis=0)", "np.broadcast_to(i, (2, 3))", "np.broadcast_to(m, (3, 2))"),
        *("np.concatenate([m, m])", "np.concatenate([m, int32_a], axis=1)", "np.stack([m, m], 1)"),
        *("np.concatenate([m, i])", "np.concatenate([m, n], axis=None)", "np.stack([m, m], -1)"),
        *("np.vstack([i, i])", "np.hstack([i, i])", "np.hstack([m, m])", "np.stack([i, m])"),
        *(
            "np.column_stack([i, i])",
            "np.repeat(m, 2)",
            "np.repeat(m, 3, axis=0)",
            "m.repeat(2, 1)",
        ),
        *(
            "np.tile(i, 2)",
            "np.tile(m, (2, 1))",
            "np.flip(m)",
            "np.flip(m, 1)",
            "np.flip(n, (0, 2))",
        ),
        *("np.concatenate([none, m])", "np.stack([none, none])", "none.T", "none.reshape(3, 0)"),
    )
    # Order.
    yield from (
        *("np.sort(odd)", "np.argsort(odd)", "np.sort(n, axis=None)", "np.sort(m, axis=0)"),
        *("np.argsort(m, axis=None)", "np.unique([3, 1, 3, 2])", "np.sort(many, axis=1)[:, ::977]"),
        *("np.unique([3, 1, 3], return_counts=True)[1]", "np.unique(odd)", "np.unique(none)"),
        *(
            "np.sort(many.ravel())[::7001]",
            "np.searchsorted([1, 3, 5], [0, 3, 9])",
            "np.sort(none)",
        ),
        *("np.searchsorted([1, 3, 5], [[3, 4]], side='right')", "np.sort(mask)"),
        *("np.argsort(many.ravel() // 1, kind='stable')[::999]",),
    )
    # Products.
    yield from (
        *(
            "m @ m.T",
            "m @ np.array([1, 2, 3])",
            "np.array([1.0, 2.0]) @ m",
            "n @ n.transpose(0, 2, 1)",
        ),
        *("m @ m", "i @ i", "n @ np.array([[1.0], [2.0]])", "np.dot(i, i)"),
        *("np.outer(i, [1, 2])", "none @ none.T", "none.T @ none", "zero @ m", "np.linalg.norm(m)"),
        *("np.linalg.norm(m, axis=1)", "np.linalg.norm(m, axis=0, keepdims=True)"),
        *("many @ many.T", "uint8_a @ uint8_a.T", "np.dot(zero, m)", "np.dot(m, i)"),
        *(
            "np.linalg.norm(uint8_a)",
            "np.linalg.norm(int32_b * 100)",
            "n.mT",
            "np.linalg.norm(i, 2)",
        ),
    )
    # Making.
    yield from (
        *("np.zeros(3)", "np.ones((2, 2), np.int32)", "np.full((2,), 7)", "np.full((2,), 0.5)"),
        *("np.arange(5)", "np.arange(2, 11, 3)", "np.arange(5, 0, -2)", "np.arange(0, 1, 0.25)"),
        *("np.arange(3, dtype=np.float32)", "np.linspace(0, 1, 5)", "np.linspace(2, 3, 4, False)"),
        *("np.linspace(0, 1, 1)", "np.eye(3)", "np.eye(2, 4, 1)", "np.eye(3, k=-1, dtype=np.int8)"),
        *("np.array([1, 2.5])", "np.array([True, 2])", "np.array([])", "np.array([[], []])"),
        *("np.array([1, -1], np.uint8)", "np.array(3)", "np.array([2**63])", "np.zeros_like(m)"),
        *("np.full_like(int8_a, 3)", "np.asarray(range(4))", "np.array([m, m])", "np.identity(2)"),
        *(
            "np.array([[1, 2], [3]])",
            "np.array(['a'])[0] + 1",
            "np.array([1.5, 2.5]).astype(np.int32)",
        ),
        *("np.frombuffer(bytes(8), np.float32)", "np.isclose(m, m + 1e-9)", "m.astype('float64')"),
        *(
            "np.arange(2**53, 2**53 + 3)",
            "np.arange(1, 2, 0.1)",
            "np.linspace(-1, 1, 4, dtype=np.int32)",
        ),
        *(
            "np.arange(mask.sum())",
            "np.array([0.30000000000000004]) == 0.1 + 0.2",
            "np.rint(int32_a)",
        ),
        *("np.array([1.1, 2.675, 1e23, 5e-324, 1.7976931348623157e308])", "np.round(int64_a)"),
        *("np.isclose(1.0, np.array([np.inf, 1.0]))", "np.isclose(uint8_a, uint8_a + 1, atol=1)"),
        *("np.median(np.array([1, np.nan, 3]))", "uint8_a < 300", "uint8_a != -1", "300 > int8_a"),
        *("int64_a >= -(2**63)", "uint64_a > -1", "np.squeeze(m, 5)", "np.squeeze(zero)"),
        *("np.moveaxis(n, 0, 5)", "np.stack([m[:, 0]] * 1200).sum()", "np.concatenate([i] * 700)"),
        *("np.where(m > 0, 1, 0)", "np.where(mask, m, 0)", "np.where(mask, m, n[0].T)"),
    )
    # What is made of other functions.
    for dtype in _ALL:
        yield f"np.diff({dtype}_a)"
        yield f"np.cumprod({dtype}_b)"
        yield f"np.tril({dtype}_a)"
        yield f"np.pad({dtype}_a, 1)"
        yield f"np.isin({dtype}_a, [1, 3, 7])"
        yield f"np.unique({dtype}_b, return_index=True)[1]"
        yield f"np.positive({dtype}_a)" if dtype != "bool" else "np.diff(mask, axis=0)"
        yield f"np.result_type({dtype}_a, np.float32) == np.float64"
        yield f"np.can_cast(np.{dtype}, np.int16)"
        yield f"np.isdtype({dtype}_a.dtype, 'integral')"
        yield f"np.isdtype({dtype}_a.dtype, ('bool', np.float32))"
    for dtype in _NUMBERS:
        yield f"np.percentile({dtype}_b, 40)"
        yield f"np.quantile({dtype}_a[:1], [0, 0.3, 1], axis=1)"
        yield f"np.ptp({dtype}_a, axis=0)"
        yield f"np.einsum('ij,kj->ik', {dtype}_a, {dtype}_a)"
        yield f"np.tensordot({dtype}_a, {dtype}_a, ([0], [0]))"
        yield f"np.trace({dtype}_a)"
        yield f"np.sum({dtype}_a, axis=1, dtype=np.float32)"
        yield f"np.mean({dtype}_b, dtype=np.float64)"
    for dtype in _INTS:
        yield f"np.iinfo(np.{dtype}).max + 0.0"
        yield f"np.iinfo(np.{dtype}).min + 0.0"
        yield f"np.bincount({dtype}_a[0])"
    for name in ["eps", "max", "min", "tiny", "smallest_normal", "bits"]:
        yield from [f"float(np.finfo(np.{dtype}).{name})" for dtype in ["float16", *_FLOATS]]
    for function in (
        *("arcsinh", "arccosh", "arctanh", "cbrt", "signbit", "nan_to_num", "real", "conj"),
        *("radians", "degrees", "nansum", "nanmean", "nanmax", "nanmin", "diff", "ptp"),
    ):
        yield f"np.{function}(m)"
        yield f"np.{function}(odd)"
        yield f"np.{function}(n / 20)"
    for function in ["copysign", "fmax", "fmin", "logaddexp"]:
        yield f"np.{function}(m, m[::-1])"
        yield f"np.{function}(odd, odd[::-1])"
    yield from (
        *(
            "np.roll(m, 1)",
            "np.roll(m, -1, axis=1)",
            "np.roll(m, 5, 0)",
            "np.roll(n, (1, 2), (0, 1))",
        ),
        *("np.roll(none, 1)", "np.roll(m, 1, axis=5)", "np.roll(n, 1, (0, 2))", "np.flipud(n)"),
        *("np.fliplr(m)", "np.pad(m, ((0, 1), (2, 0)))", "np.pad(m, (1, 2), constant_values=7)"),
        *("np.pad(m, 2, mode='edge')", "np.pad(m, 5, mode='reflect')", "np.pad(m, 4, 'symmetric')"),
        *("np.pad(m, 4, 'wrap')", "np.pad(m, -1)", "np.pad(none, 1)", "np.pad(none, 1, 'edge')"),
        *("np.pad(m, ((1, 1),))", "np.pad(m, 1, 'odd')", "np.pad(m, ((0, 0), (0, 0), (1, 1)))"),
        *("np.pad(i, 1, constant_values=(4, 5))", "np.triu(n)", "np.triu(m, 1)", "np.tril(i)"),
        *("np.tril(n, -1)", "np.diag(m)", "np.diag(m, 1)", "np.diag(m, -1)", "np.diag(i)"),
        *(
            "np.diag(i, -2)",
            "np.diag(i, 1)",
            "np.diag(n)",
            "np.diagonal(n, 1, 1, 2)",
            "np.trace(n)",
        ),
        *(
            "np.diagonal(m, 5)",
            "np.diagonal(n, axis1=0, axis2=0)",
            "np.trace(m, 1)",
            "np.diag(m, 9)",
        ),
        *("np.meshgrid(i, [1, 2])[0]", "np.meshgrid(i, [1, 2], indexing='ij')[1]"),
        *("np.meshgrid(i, [1, 2], [5.0])[2]", "np.broadcast_arrays(m, i)[1]"),
        *(
            "np.broadcast_arrays(m, m.T)[0]",
            "np.split(m, 3, axis=1)[2]",
            "np.split(m, 2, axis=1)[0]",
        ),
        *("np.array_split(i, 2)[0]", "np.array_split(i, [1])[1]", "np.array_split(n, 0)[0]"),
        *("np.split(np.arange(7), [2, 5])[1]", "np.atleast_1d(2.5)", "np.atleast_3d(i)"),
        *("np.atleast_3d(m)", "np.dstack([m, m])", "np.append(m, [[1, 2, 3]], axis=0)"),
        *("np.append(i, 4)", "np.ndim(n)", "np.shape(n)", "np.size(n)", "np.copy(m)"),
        *("np.unstack(n, axis=1)[2]", "np.matrix_transpose(n)", "np.astype(m, np.int32)"),
        *(
            "np.select([m > 3, m > 0], [m, -m], 9)",
            "np.select([mask], [1])",
            "np.select([mask], [])",
        ),
        *(
            "np.average(m)",
            "np.average(m, axis=1, weights=[1, 2, 3])",
            "np.average(m, weights=mask)",
        ),
        *("np.average(m, axis=0, weights=[1, 2, 3])", "np.nansum(float32_a, axis=1)"),
        *("np.nanmean(float64_a, axis=0)", "np.nanmax(float32_a, axis=1, keepdims=True)"),
        *("np.nanmin(np.array([np.nan, np.nan]))", "np.nanmax(int32_a)", "np.diff(m, 2)"),
        *("np.diff(n, axis=0)", "np.diff(m, 0)", "np.diff(m, -1)", "np.diff(m, 9)"),
        *("np.nan_to_num(odd, nan=1.0, posinf=2.0, neginf=-2.0)", "np.nan_to_num(float32_a)"),
        *("np.percentile(m, 50)", "np.percentile(m, [25, 50, 75])", "np.percentile(m, 90, axis=1)"),
        *(
            "np.percentile(n, [10, 99], axis=(1))",
            "np.percentile(m, 101)",
            "np.percentile(odd, 50)",
        ),
        *("np.percentile(odd[1:], 30)", "np.quantile(m, 0.5, axis=0, keepdims=True)"),
        *("np.quantile(m, -0.1)", "np.quantile(none, 0.5)", "np.quantile(mask, 0.5)"),
        *(
            "np.quantile(many, 0.123, axis=1)",
            "np.quantile(zero, 0.5)",
            "np.quantile(m, [], axis=0)",
        ),
        *(
            "np.isin(m, [0.25, 4])",
            "np.isin(i, 2, invert=True)",
            "np.isin(odd, odd)",
            "np.isin(m, [])",
        ),
        *(
            "np.unique([3, 1, 3, 2], return_index=True)[1]",
            "np.unique([[3, 1], [3, 2]], return_inverse=True)[1]",
        ),
        *("np.unique([3, 1, 3], True, True, True)[3]", "np.unique_all(i).inverse_indices"),
        *(
            "np.unique_counts([3, 1, 3]).counts",
            "np.unique_inverse([[3, 1], [3, 2]]).inverse_indices",
        ),
        *("np.unique_values([3, 1, 3])", "np.digitize([0.5, 1, 5], [0, 1, 2])"),
        *("np.digitize([0.5, 1, 5], [0, 1, 2], right=True)", "np.bincount([1, 1, 4], minlength=3)"),
        *(
            "np.bincount([1], minlength=3)",
            "np.bincount([-1])",
            "np.bincount(m)",
            "np.bincount(i[:0])",
        ),
        *("np.histogram(m)[0]", "np.histogram(m, 4)[1]", "np.histogram(m, [0, 1, 4])[0]"),
        *("np.histogram(many, 7, (0, 900))[0]", "np.histogram([3, 3])[0]", "np.histogram(i, 3)[0]"),
        *("np.interp([0, 1.5, 3, 9], [1, 2, 3], [10, 20, 30])", "np.interp(odd, [0, 2], [1, 5])"),
        *("np.interp([0, 9], [1, 2], [5, 6], left=-1, right=-2)", "np.interp(0.5, [1], [7])"),
        *("np.inner(i, i)", "np.inner(m, i)", "np.inner(m, m)", "np.inner(m, 2)", "np.vdot(m, m)"),
        *("np.vecdot(m, m)", "np.vecdot(m, i)", "np.vecdot(n, n, axis=1)", "np.vecdot(m, [1, 2])"),
        *(
            "np.tensordot(n, n, 3)",
            "np.tensordot(m, i, 1)",
            "np.tensordot(m, m)",
            "np.tensordot(m, n, 1)",
        ),
        *("np.tensordot(n, n, ([0, 2], [0, 2]))", "np.tensordot(m, i, 0)", "np.tensordot(i, i)"),
        *(
            "np.einsum('ij->ji', m)",
            "np.einsum('ij->j', m)",
            "np.einsum('ij', m)",
            "np.einsum('ij->', m)",
        ),
        *(
            "np.einsum('ij,jk', m, m.T)",
            "np.einsum('bij,bkj->bik', n, n)",
            "np.einsum('i,i->i', i, i)",
        ),
        *(
            "np.einsum('i,j->ij', i, i)",
            "np.einsum('ii->i', n[0, :2])",
            "np.einsum('ii', n[0, :2])",
        ),
        *("np.einsum('ijk,jl,k->il', n, m.T, [1, 2])", "np.einsum('ij,ij->', m, m)"),
        *("np.einsum('ij,jk->ik', m, m)", "np.einsum('ij->ik', m)", "np.einsum('i', m)"),
        *("np.einsum('iij->ij', np.ones((2, 2, 3)))", "np.einsum('bi,bi->b', m, m)"),
        *(
            "np.cumprod(m, axis=1)",
            "np.cumprod(n)",
            "np.cumulative_prod(i)",
            "np.cumprod(none, axis=0)",
        ),
        *("np.result_type(np.int8, np.uint8) == np.int16", "np.result_type(m, 2.5) == np.float32"),
        *("np.can_cast(np.float64, np.float32)", "np.can_cast(np.int32, np.float64)"),
        *("np.isdtype(np.float32, 'real floating')", "np.isdtype(np.int8, 'text')"),
        *(
            "np.finfo(np.int32).eps",
            "np.iinfo(np.float32).max",
            "np.iinfo(np.int64).max == 2**63 - 1",
        ),
    )
    # What a second reader found.
    yield from (
        *(
            "np.average(uint8_a, weights=uint8_a)",
            "np.average(int32_a * 2**30, weights=[[4] * 3] * 2)",
        ),
        *("np.logaddexp(uint32_a, uint32_b)", "np.logaddexp(m, 1.0)", "np.fmax(m, 1.0)"),
        *("np.fmin(int8_a, 1)", "np.logaddexp(int32_a, -(2**31))", "np.diff(m, axis=2)"),
        *("np.diff(np.array(3))", "np.roll(m, 1, -3)", "np.split(m, 3, axis=-1)[1]"),
        *("np.array_split(m, 2, 4)[0]", "np.quantile(m, 0.5, axis=3)", "np.arcsinh(m * 1e-5)"),
        *("np.arcsinh(np.array([1e-20, -1e-9, 1e200]))", "np.arccosh(m * 1e-5 + 1)"),
        *("np.arccosh(np.array([1, 1 + 1e-9, 1e200, -3.0]))", "np.arccosh(float32_a * 1e20)"),
        *(
            "np.pad(i, 100000, 'edge')[::5000]",
            "np.pad(i[:1], 3, 'reflect')",
            "np.pad(i, 0, 'odd')",
        ),
        *("np.pad(i[:1], 3, 'symmetric')", "np.pad(m, 7, 'reflect')", "np.pad(m, 7, 'symmetric')"),
        *(
            "np.histogram([1, 2, 3], 3, (3, 1))[0]",
            "np.histogram(m, [2, 1])[0]",
            "np.histogram(m, 0)[0]",
        ),
        *("np.histogram(none)[1]", "np.histogram(odd)[0]", "np.digitize([0.5, 1, 5], [3, 2, 1])"),
        *("np.digitize([0.5, 1, 5], [1, 3, 2])", "np.digitize([0.5, 1, 3], [3, 2, 1], right=True)"),
        *(
            "np.interp([1.5], [1, 2], [np.inf, np.inf])",
            "np.interp([2.5], [1, 2, 3], [0, np.inf, 0])",
        ),
        *(
            "np.interp(m, [1, 2], [3, 4])",
            "np.interp([1], [1, 2], [3])",
            "np.interp(2, [1, 2, 3], [0, 7, 0])",
        ),
        *("np.quantile(np.array([1, np.inf, np.inf, -np.inf]), 0.9)", "np.select([], [])"),
        *(
            "np.moveaxis(n, (0, 1), (1, 2))",
            "np.moveaxis(n, [0, 0], [1, 2])",
            "np.moveaxis(n, (0,), 2)",
        ),
    )
    # What several operations make.
    yield from (
        *("m + n", "m[:, None] + i[None, :, None]", "(m - m.mean(axis=0)) / m.std(axis=0)"),
        *("(n.reshape(2, 6) @ np.ones((6, 1)))[:, 0] > 40", "1 / (1 + np.exp(-m))"),
        *("np.where(np.isnan(float32_a), 0, float32_a).sum()", "(m > 0).sum(axis=1) / 3"),
        *("m.max(axis=1)[m.argmax(axis=1) > 0]", "2 ** int32_a", "int32_a ** -1", "m ** 0.5"),
    )


EXPRESSIONS = list(_expressions())


def compare(np, expression, known, found):
    """What differs between NumPy's result and another one; none if nothing does.

    `found` is a dtype, a shape and a flat list, or the name of an error's class and its text.
    """
    try:
        with np.errstate(all="ignore"):
            wanted = np.asarray(eval(expression, dict(known)))
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        own = found.partition(":")[0] if isinstance(found, str) else None
        if own and (own in kinds or "ValueError" in (own, *kinds)):
            return None
        return f"{expression}: NumPy raises {error!r}, found {found}"
    if isinstance(found, str):
        return f"{expression}: found {found}, NumPy has {wanted!r}"
    dtype, shape, values = found
    if (dtype, tuple(shape)) != (wanted.dtype.name, wanted.shape):
        return f"{expression}: found {dtype} {shape}, NumPy has {wanted.dtype} {wanted.shape}"
    have = np.array(values, wanted.dtype).reshape(wanted.shape)
    if wanted.dtype.kind != "f":
        same = np.array_equal(have, wanted)
    else:
        close = 3e-6 if dtype == "float32" else 1e-12
        same = np.allclose(have, wanted, rtol=close, atol=close, equal_nan=True)
    return None if same else f"{expression}: found {have.tolist()}, NumPy has {wanted.tolist()}"
