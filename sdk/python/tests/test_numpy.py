import copy

import array_table
import numpy
import pytest

from gristmill_plugin import Dtype, Prepared, Processor, Response, Tensor, testing
from gristmill_plugin import numpy as np


def described(array):
    found = np.asarray(array)
    return found.dtype.name, found.shape, found.ravel().tolist()


def test_expressions_mean_what_they_mean_in_numpy():
    known, own = array_table.names(numpy), array_table.names(np)
    wrong = []
    for expression in array_table.EXPRESSIONS:
        try:
            found = described(eval(expression, dict(own)))
        except Exception as error:
            found = type(error).__name__
        wrong.append(array_table.compare(numpy, expression, known, found))
    wrong = [one for one in wrong if one]
    assert not wrong, "\n".join(wrong)
    assert len(array_table.EXPRESSIONS) > 1000


#: The functions of the Python array API standard, 2024.12.
STANDARD = """
abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh
bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
broadcast_arrays broadcast_to can_cast ceil clip concat conj copysign cos cosh count_nonzero
cumulative_prod cumulative_sum diff divide e empty empty_like equal exp expand_dims expm1 eye finfo
flip floor floor_divide full full_like greater greater_equal hypot iinfo inf isdtype isfinite isinf
isnan less less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or
logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply nan
negative newaxis nonzero not_equal ones ones_like permute_dims pi positive pow prod real reciprocal
remainder repeat reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt square
squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc
unique_all unique_counts unique_inverse unique_values unstack var vecdot where zeros zeros_like
""".split()


def test_the_functions_of_the_standard_are_there():
    assert [name for name in STANDARD if not hasattr(np, name)] == []


def test_a_fault_in_a_composed_function_has_the_line_of_the_plugin():
    wrong = np.diff(array(), axis=0) + np.nanmean(np.zeros((2, 5)), axis=0)
    with pytest.raises(ValueError, match=r"add: .*test_numpy.py, line \d+, in test_a_fault_in"):
        wrong.tolist()


ROWS = [[1.5, -2.0, 0.25], [4.0, -0.5, 3.0]]


def array():
    return np.array(ROWS, np.float32)


def test_a_fault_has_the_place_of_its_operation():
    from gristmill_plugin import tracebacks

    wrong = array() + np.zeros(7)
    after = wrong * 2
    with pytest.raises(ValueError, match=r"add: .*\(2,3\) \(7,\).*test_numpy.py, line \d+, in test_a_") as told:
        after.tolist()
    file, line = tracebacks.place(told.value)
    assert (file, line < told.tb.tb_lineno) == (__file__, True)


def test_what_the_plugin_may_still_read_is_made_once(monkeypatch):
    ran = []
    evaluate = np.arrays.evaluate
    monkeypatch.setattr(
        np.arrays, "evaluate", lambda *given: ran.append(given[1]) or evaluate(*given)
    )
    scores = array().max(axis=1)
    assert int((scores > 2).sum()) == 1
    assert scores.tolist() == [1.5, 4.0]
    assert scores.shape == (2,)
    assert len(ran) == 1 and ran[0].count("max") == 1


def test_arrays_stand_where_tensors_do():
    mask = array() > 0
    body = Response.json({"rows": array(), "any": mask.any(), "place": array().argmax()}).body
    assert body == b'{"rows":[[1.5,-2.0,0.25],[4.0,-0.5,3.0]],"any":true,"place":3}'
    tensor = array().tensor()
    assert (tensor.dtype, tensor.shape) == (Dtype.FLOAT32, (2, 3))
    assert np.asarray(Tensor.from_values([2], Dtype.INT8, [1, 2])).sum().tolist() == 3


def test_a_body_is_a_buffer():
    body = testing.request(body=array().tobytes()).body
    assert np.frombuffer(body, np.float32).reshape(2, 3).tolist() == ROWS
    assert np.frombuffer(body, "float32", 2, 4).tolist() == ROWS[0][1:]


def test_single_elements_are_numbers_where_python_wants_them():
    labels = ["a", "b", "c"]
    assert labels[array()[0].argmax()] == "a"
    assert f"{array()[1, 0]:.1f}" == "4.0"
    assert float(array()[0, 0]) == 1.5 and int(array().max()) == 4 and range(array()[1, 2].astype(int))
    assert bool(array().any()) and 4.0 in array() and len(array()) == 2
    assert [row.tolist() for row in array()] == ROWS and list(array()[0]) == ROWS[0]
    with pytest.raises(ValueError, match="ambiguous"):
        bool(array())
    with pytest.raises(TypeError, match="integer"):
        labels[array()[0, 0]]


@pytest.mark.parametrize(
    ("make", "kind", "why"),
    [
        (lambda: array().__setitem__(0, 1), TypeError, r"np.where\(mask, value, a\)"),
        (lambda: array().sort(), TypeError, r"a = np.sort\(a\)"),
        (lambda: array().astype("complex"), TypeError, "'complex' is not a dtype: one of bool"),
        (lambda: np.array([[1], 2]), ValueError, "different depths"),
        (lambda: np.array([[1], [2, 3]]), ValueError, "different lengths: 2 after 1"),
        (lambda: np.array([1, "a"]), TypeError, "an array of str: numbers only, got 'a'"),
        (lambda: np.array([300], np.uint8).tolist(), (ValueError, OverflowError), "300|out of bounds"),
        (lambda: np.array(list(range(300)), np.uint8), OverflowError, "uint8"),
        (lambda: np.frombuffer(b"abc", np.float32), ValueError, "multiple of element size"),
        (lambda: np.one_hot([3], 3).tolist(), ValueError, "one_hot: class 3 is not one of 3"),
        (lambda: array().item(), ValueError, "size 1"),
        (lambda: array()[0].item(3), IndexError, "out of bounds"),
    ],
)
def test_faults_name_the_cure(make, kind, why):
    with pytest.raises(kind, match=why):
        make()


@pytest.mark.parametrize(
    "statements",
    [
        "a = np.ones(3, np.float32); a -= [0.5, 0.25, 0.1]; a /= np.array([2.0])",
        "a = np.ones(3, np.float32); a *= np.float64(0.1)",
        "a = np.ones(3, np.int8); a += np.array([1, 2, 3], np.int16)",
        "a = np.ones((2, 2)); a += 1; a **= 2",
        "a = np.ones((2, 2), np.float32); a @= np.ones((2, 2))",
        "a = np.ones(3, np.int64); a *= np.ones(3)",
        "a = np.ones(3, np.uint8); a += np.array([1, 2, 3])",
        "a = np.array([True, False]); a |= True",
        "a = np.zeros(2).astype('float', copy=False).astype('<f4')",
        "a = np.array([1, 2], np.dtype('int16'), ndmin=2, copy=True)",
        "a = np.expand_dims(np.ones((2, 3)), (0, -1))",
        "a = {2: np.ones(2), 1: np.zeros(1)}[np.array([1, 2, 9]).argmax()]",
        "a = np.array([round(np.float64(2.675), 2), round(np.float64(2.5))])",
        "a = np.full(2, np.ones((2, 3), np.float32).nbytes)",
        "a = np.swapaxes(np.ones((1, 2)), 0, 5)",
    ],
)
def test_statements_mean_what_they_mean_in_numpy(statements):
    def outcome(module):
        found = {"np": module}
        try:
            exec(statements, found)
            array = found["a"]
            return str(array.dtype), array.shape, array.tolist()
        except (TypeError, ValueError):
            return "refused"

    assert outcome(np) == outcome(numpy)


def test_a_dtype_is_one_object():
    assert np.dtype("<f4") is np.float32
    assert copy.deepcopy(np.float32) is np.float32


def test_an_array_is_no_key_and_what_is_absent_has_a_cure():
    with pytest.raises(TypeError, match=r"a single element is one, as a\[0\]"):
        hash(array())
    with pytest.raises(AttributeError, match=r"has no random: Python's module random .*numpy\.md"):
        _ = np.random
    with pytest.raises(AttributeError, match=r"linalg has no inv; sdk/guides/numpy\.md lists"):
        _ = np.linalg.inv


def test_long_chains_are_run_in_between():
    total = array()
    for _ in range(2000):
        total = total + 1
    assert float(total[0, 0]) == 2001.5


def test_what_numpy_does_not_have():
    values, places = np.top_k([[3, 1, 2], [1, 9, 9]], 2)
    assert (values.tolist(), places.tolist()) == ([[3, 2], [9, 9]], [[0, 2], [1, 2]])
    boxes = [[0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30], [0, 0, 1, 1]]
    assert np.nms(boxes, [0.8, 0.9, 0.7, 0.1]).tolist() == [1, 2, 3]
    assert np.nms(boxes, [0.8, 0.9, 0.7, 0.1], 0.9, 0.5, 2).tolist() == [1, 0]
    assert np.softmax([[0.0, 0.0]]).tolist() == [[0.5, 0.5]]
    assert np.sigmoid([0.0, 1000.0, -1000.0]).tolist() == [0.5, 1.0, 0.0]
    assert np.normalize([[3.0, 4.0], [0.0, 0.0]]).tolist() == [[0.6, 0.8], [0.0, 0.0]]
    hidden = [[[1.0, 2.0], [3.0, 6.0], [9.0, 9.0]], [[5.0, 7.0], [9.0, 9.0], [9.0, 9.0]]]
    assert np.mean_pool(hidden, [[1, 1, 0], [1, 0, 0]]).tolist() == [[2, 4], [5, 7]]
    assert np.mean_pool(hidden, [[0, 0, 0], [0, 0, 1]]).tolist() == [[0, 0], [9, 9]]
    similar = np.normalize([[3.0, 4.0]]) @ np.normalize([[6.0, 8.0], [-4.0, 3.0]]).T
    assert np.round(similar, 6).tolist() == [[1, 0]]
    assert np.one_hot([1, 0], 2).tolist() == [[0, 1], [1, 0]]


def test_many_operations_are_run_in_parts():
    long = np.arange(30000)
    parts = [long[at : at + 2] * 2 for at in range(3000)]
    assert np.stack(parts).sum().tolist() == sum(4 * at + 2 for at in range(3000))
    assert [int(parts[at][1]) for at in (0, 1500, 2999)] == [2, 3002, 6000]


def test_a_small_result_is_read_once(monkeypatch):
    ran = []
    read = np.arrays.read
    monkeypatch.setattr(np.arrays, "read", lambda *given: ran.append(given[1]) or read(*given))
    most = array().max()
    assert (float(most), f"{most:.1f}", most.tolist(), bool(most == 4)) == (4.0, "4.0", 4.0, True)
    assert len(ran) == 1
    assert (array() == None).__class__ is bool and np.float32 != None and np.int64 == int  # noqa: E711


MEAN = np.array([0.5, 0.25], np.float32)
SCALE = 1 / (MEAN * 2)
TABLE = np.array(list(range(1000)), np.float32)


class Scaled(Processor):
    def preprocess(self, context, request):
        rows = np.asarray(request.json_tensor("/rows")) - MEAN
        assert SCALE.shape == (2,) and float(TABLE[999]) == 999
        return Prepared({"input": rows * SCALE, "mean": MEAN[None], "first": TABLE[:2]})

    def postprocess(self, context, outputs, state):
        return Response.json({"mean": MEAN, "table": TABLE.sum()})


def test_arrays_of_the_module_keep_nothing_of_a_call():
    for _ in range(2):
        prepared = testing.preprocess(
            Scaled(), testing.context(), testing.request(json={"rows": [[1, 1]]})
        )
        assert prepared.inputs["input"].view().tolist() == [[0.5, 1.5]]
        assert prepared.inputs["mean"].view().tolist() == [[0.5, 0.25]]
        assert testing.postprocess(Scaled(), testing.context(), {}).body == b'{"mean":[0.5,0.25],"table":499500.0}'
        assert [one._tensor for one in (MEAN, SCALE, TABLE)] == [None] * 3
