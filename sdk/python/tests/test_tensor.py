import struct
from array import array

import pytest

from gristmill_plugin import Dtype, Internal, Tensor, shortest_float32

INTEGERS = {
    Dtype.UINT8: [0, 255],
    Dtype.INT8: [-128, 127],
    Dtype.UINT16: [0, 65535],
    Dtype.INT16: [-32768, 32767],
    Dtype.UINT32: [0, 2**32 - 1],
    Dtype.INT32: [-(2**31), 2**31 - 1],
    Dtype.UINT64: [0, 2**64 - 1],
    Dtype.INT64: [-(2**63), 2**63 - 1],
}


def floats(shape, values, dtype=Dtype.FLOAT32):
    return Tensor.from_values(shape, dtype, values)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_come_back(dtype):
    tensor = Tensor.from_values([2], dtype, INTEGERS[dtype])
    assert (tensor.dtype, tensor.shape) == (dtype, (2,))
    assert tensor.view().values.tolist() == INTEGERS[dtype]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_an_integer_out_of_range_is_refused(dtype):
    with pytest.raises((OverflowError, ValueError)):
        Tensor.from_values([1], dtype, [INTEGERS[dtype][1] + 1])


@pytest.mark.parametrize("dtype", [Dtype.FLOAT16, Dtype.BFLOAT16, Dtype.FLOAT32, Dtype.FLOAT64])
def test_floats_come_back(dtype):
    tensor = floats([3], [0.5, -2.0, 384.0], dtype)
    assert tensor.dtype is dtype
    assert list(tensor.view()) == [0.5, -2.0, 384.0]


def test_half_floats_are_rounded_to_the_nearest():
    assert floats([1], [1.001], Dtype.FLOAT16).tobytes() == struct.pack("<e", 1.001)
    # 1 + 1/256 is half way between two bfloat16; the even one is 1.
    assert list(floats([2], [1 + 1 / 256, 1 + 3 / 256], Dtype.BFLOAT16).view()) == [1, 1 + 1 / 64]


def test_booleans_and_strings_come_back():
    tensor = Tensor.from_values([3], Dtype.BOOL, [True, False, True])
    assert tensor.tobytes() == b"\1\0\1"
    assert tensor.view().values.tolist() == [True, False, True]
    texts = Tensor.from_values([2, 1], Dtype.STRING, ["grün", ""])
    assert texts.tobytes() == b"\5\0\0\0gr\xc3\xbcn\0\0\0\0"
    assert texts.strings() == ["grün", ""]
    with pytest.raises(Internal, match=r"STRING has no view: use strings\(\)"):
        texts.view()
    with pytest.raises(Internal, match="tensor is BOOL, wanted STRING"):
        tensor.strings()


def test_values_may_be_an_array_or_a_view():
    values = array("f", [1, 2])
    for given in (values, memoryview(values), (1, 2), iter([1, 2])):
        assert list(floats([2], given).view()) == [1, 2]
    assert list(Tensor.from_bytes([2], Dtype.FLOAT32, memoryview(values)).view()) == [1, 2]


def test_data_must_fit_dtype_and_shape():
    with pytest.raises(Internal, match="8 bytes long, but dtype and shape need 12"):
        floats([3], [1, 2])
    with pytest.raises(Internal, match="bool"):
        Tensor.from_bytes([1], Dtype.BOOL, b"\2")
    with pytest.raises(Internal, match="string"):
        Tensor.from_bytes([1], Dtype.STRING, b"\2\0\0\0a")


@pytest.mark.parametrize("shape", [[1.0], [-1], [2**32], ["1"]])
def test_a_shape_has_integers_of_32_bits(shape):
    with pytest.raises((TypeError, ValueError), match="shape is"):
        floats(shape, [1])


def test_arguments_of_a_wrong_type_are_named():
    tensor = floats([2], [1, 2])
    with pytest.raises(TypeError, match="dtype is 'float32', not a Dtype"):
        tensor.cast("float32")
    with pytest.raises(TypeError, match=r"start is 0\.5, not an integer"):
        tensor.slice(0.5, 1)
    with pytest.raises(ValueError, match="k is -1"):
        tensor.top_k(-1)


def test_a_view_has_rows_and_nested_lists():
    view = floats([2, 2, 1], [1, 2, 3, 4]).view()
    assert view.shape == (2, 2, 1)
    assert [row.tolist() for row in view.rows()] == [[1, 2], [3, 4]]
    assert view.tolist() == [[[1], [2]], [[3], [4]]]
    assert (len(view), view[3]) == (4, 4)
    empty = floats([0, 2], []).view()
    assert (empty.rows(), empty.tolist()) == ([], [])


def test_concat_stack_and_slice():
    a, b = floats([1, 2], [1, 2]), floats([1, 2], [3, 4])
    assert Tensor.concat([a, b]).view().tolist() == [[1, 2], [3, 4]]
    assert Tensor.concat([a, b], axis=1).view().tolist() == [[1, 2, 3, 4]]
    assert Tensor.stack([a, b], axis=2).view().tolist() == [[[1, 3], [2, 4]]]
    both = Tensor.concat([a, b])
    assert both.slice(1, 2).view().tolist() == [[3, 4]]
    assert both.slice(0, 1, axis=1).view().tolist() == [[1], [3]]
    texts = Tensor.from_values([2, 2], Dtype.STRING, ["a", "bb", "c", ""])
    assert texts.slice(1, 2, axis=1).strings() == ["bb", ""]


def test_tensors_that_do_not_fit_together_are_refused():
    a, b = floats([1, 2], [1, 2]), floats([1, 1], [3])
    for fault in (
        lambda: Tensor.concat([]),
        lambda: Tensor.concat([a, b]),
        lambda: Tensor.concat([a, a.cast(Dtype.INT32)]),
        lambda: Tensor.concat([a], axis=2),
        lambda: Tensor.stack([a, b]),
        lambda: a.slice(1, 2),
        lambda: a.slice(1, 0),
        lambda: Tensor.from_values([1], Dtype.STRING, ["1"]).cast(Dtype.INT32),
    ):
        with pytest.raises(Internal):
            fault()


def test_a_cast_saturates():
    nan, inf = float("nan"), float("inf")
    tensor = floats([6], [-1.9, 1.9, 300, nan, -inf, 0.0])
    assert list(tensor.cast(Dtype.UINT8).view()) == [0, 1, 255, 0, 0, 0]
    assert list(tensor.cast(Dtype.INT8).view()) == [-1, 1, 127, 0, -128, 0]
    assert list(tensor.cast(Dtype.BOOL).view()) == [True, True, True, True, True, False]


def test_rows_are_ranked_on_the_host():
    tensor = floats([2, 3], [1, 3, 3, -1, -2, -3])
    assert [(best.index, best.value) for best in tensor.argmax()] == [(1, 3), (0, -1)]
    assert [(best.index, best.value) for best in tensor.top_k(2)] == [(1, 3), (2, 3)]
    assert tensor.top_k(9, row=1)[-1].value == -3
    assert tensor.top_k(1, row=2) == []
    assert tensor.cast(Dtype.FLOAT64).argmax() == []


def test_softmax_sums_to_one_in_each_row():
    rows = floats([2, 2], [0, 0, 1000, 0]).softmax().view().tolist()
    assert rows == [[0.5, 0.5], [1, 0]]
    with pytest.raises(Internal, match="dtype INT32, wanted FLOAT32"):
        floats([1], [1]).cast(Dtype.INT32).softmax()


def test_the_shortest_float_is_the_same_float32():
    float32 = struct.Struct("f")
    for bits in range(1, 0x7F7FFFFF, 9_999_991):
        value = float32.unpack(struct.pack("I", bits))[0]
        short = shortest_float32(value)
        assert float32.unpack(float32.pack(short))[0] == value
        assert len(repr(short)) <= len(repr(value))
    assert floats([2], [0.1, 0.9999883]).view().shortest() == [0.1, 0.9999883]
