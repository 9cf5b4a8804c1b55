import json

import pytest

from gristmill_plugin import (
    Blob,
    Dtype,
    Internal,
    InvalidInput,
    Records,
    Response,
    Tensor,
    numpy,
    testing,
)


def tensor(value, pointer="/x", dtype=Dtype.FLOAT32, **keys):
    return testing.request(json={"x": value}).json_tensor(pointer, dtype, **keys)


@pytest.mark.parametrize(
    ("value", "shape"),
    [([[1, 2.5, -3e2], [4, 5, 6]], (2, 3)), (7, ()), ([], (0,)), ([[], []], (2, 0))],
)
def test_lists_are_dimensions(value, shape):
    found = tensor(value)
    assert found.shape == shape
    assert found.view().tolist() == (value if 0 not in shape and shape else found.view().tolist())


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([True, False], Dtype.BOOL),
        ([0, 255], Dtype.UINT8),
        ([-(2**63), 2**63 - 1], Dtype.INT64),
        ([2**64 - 1], Dtype.UINT64),
        ([0.5, -2.0], Dtype.FLOAT16),
        ([0.5, 3.0], Dtype.BFLOAT16),
        ([0.1], Dtype.FLOAT64),
    ],
)
def test_every_dtype_has_its_values(value, dtype):
    found = tensor(value, dtype=dtype)
    assert (found.dtype, found.view().tolist()) == (dtype, value)


def test_texts_are_strings():
    assert tensor(["a", "", "ü\n,"], dtype=Dtype.STRING).strings() == ["a", "", "ü\n,"]


def test_objects_are_rows():
    items = [{"id": "p", "b": [2, 3], "a": 1}, {"a": 4, "b": [5, 6]}]
    assert tensor(items, keys=["a", "b"]).view().tolist() == [[1, 2, 3], [4, 5, 6]]
    assert tensor(items[:1], dtype=Dtype.STRING, keys=["id"]).strings() == ["p"]
    assert tensor([], keys=["a", "b"]).shape == (0, 2)


@pytest.mark.parametrize(
    ("value", "dtype", "fault"),
    [
        ([[1, 2], [3, "4"]], Dtype.FLOAT32, "/x/1/1 is a text, not a number"),
        ([[1, 2], [3]], Dtype.FLOAT32, "/x/1 has 1 values, not 2 as the lists before it"),
        ([[1, 2], 3], Dtype.FLOAT32, "/x/1 is a number, not a list as the values before it"),
        ([1, [2]], Dtype.FLOAT32, "/x/1 is a list, not a number"),
        ([1, None], Dtype.FLOAT32, "/x/1 is null, not a number"),
        ([True], Dtype.INT8, "/x/0 is a boolean, not a number"),
        ([1], Dtype.BOOL, "/x/0 is a number, not true or false"),
        ([1], Dtype.STRING, "/x/0 is a number, not a text"),
        ([256], Dtype.UINT8, "/x/0 is out of UINT8's range"),
        ([1.5], Dtype.INT32, "/x/0 is 1.5, not an integer"),
        ([1e39], Dtype.FLOAT32, "/x/0 is out of FP32's range"),
    ],
)
def test_a_fault_says_where_it_is_and_what_is_there(value, dtype, fault):
    with pytest.raises(InvalidInput) as refused:
        tensor(value, dtype=dtype)
    assert refused.value.text == f"invalid JSON: {fault}"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ([{"a": 1}, {"b": 2}], "/x/1/a is missing"),
        ([{"a": 1}, {"a": [2, 3]}], "/x/1/a has 2 values, not 1 as in the objects before it"),
        ([{"a": [[1]]}], "/x/0/a is a list of lists, not of values"),
        ([[1]], "/x/0 is a list, not an object"),
        ({"a": 1}, "/x is an object, not a list"),
    ],
)
def test_a_fault_of_a_row_says_where_it_is(value, fault):
    with pytest.raises(InvalidInput) as refused:
        tensor(value, keys=["a"])
    assert refused.value.text == f"invalid JSON: {fault}"


def test_arguments_that_cannot_be_are_the_plugins_fault():
    with pytest.raises(Internal, match='the JSON Pointer "x" does not begin with /'):
        tensor([1], "x")
    with pytest.raises(Internal, match='the key "a" is given twice'):
        tensor([], keys=["a", "a"])
    with pytest.raises(TypeError, match="not a list of texts"):
        tensor([], keys="age")
    with pytest.raises(TypeError, match="not a Dtype"):
        tensor([1], dtype="float32")


def test_a_value_is_read_at_a_pointer():
    request = testing.request(json={"a/b": [{"~": 0.5}], "n": None})
    assert request.json("/a~1b/0/~0") == 0.5
    assert request.json("/n", 1) is None
    assert request.json("/none", 0.25) == 0.25
    with pytest.raises(InvalidInput, match="invalid JSON: /none is missing"):
        request.json("/none")
    with pytest.raises(InvalidInput, match="invalid JSON: the body is empty"):
        testing.request().json("/a", 1)


def test_base64_in_json_is_a_blob():
    request = testing.request(json={"image": "data:image/png;base64,TWFu", "n": 1})
    assert bytes(request.json_blob("/image")) == b"Man"
    for pointer, fault in [
        ("/n", "/n is a number, not a text in base64"),
        ("/none", "/none is missing"),
    ]:
        with pytest.raises(InvalidInput) as refused:
            request.json_blob(pointer)
        assert refused.value.text == f"invalid JSON: {fault}"
    with pytest.raises(InvalidInput, match="/image: base64 has '%' at position 0"):
        testing.request(json={"image": "%"}).json_blob("/image")


def test_a_file_of_a_form_is_found_by_its_name():
    part = testing.Part(b"data", name="photo", filename="a.png")
    assert bytes(testing.request(parts=[part]).file("photo").body) == b"data"
    with pytest.raises(InvalidInput, match="the form has no part 'image', but 'photo'"):
        testing.request(parts=[part]).file("image")
    with pytest.raises(InvalidInput, match="the body is not a form with a part 'image'"):
        testing.request(b"data").file("image")


def test_tensors_and_blobs_stand_in_an_answer():
    scores = Tensor.from_values([2, 2], Dtype.FLOAT32, [0.1, -2, 1e-7, 3e38])
    names = Tensor.from_values([2], Dtype.STRING, ['a"', "ü"])
    value = {"scores": scores, "rest": ["\0", {"names": names}], "image": Blob.from_bytes(b"Man")}
    body = Response.json(value).body
    assert json.loads(body) == {
        "scores": [[0.1, -2.0], [1e-7, 3e38]],
        "rest": ["\0", {"names": ['a"', "ü"]}],
        "image": "TWFu",
    }
    assert b"[[0.1,-2.0]," in body
    assert Response.json(Tensor.from_values([], Dtype.INT8, [7])).body == b"7"


def test_records_are_lists_of_objects():
    ids = Tensor.from_values([2], Dtype.INT64, [2**53 + 1, -7])
    scores = numpy.asarray(Tensor.from_values([2], Dtype.FLOAT32, [0.1, -2])) * 2
    names = Tensor.from_values([2], Dtype.STRING, ['a"', "ü"])
    body = Response.json({"items": Records({"product-id": ids}, score=scores, name=names)}).body
    assert body.decode() == (
        '{"items":[{"product-id":9007199254740993,"score":0.2,"name":"a\\""},'
        '{"product-id":-7,"score":-4.0,"name":"ü"}]}'
    )
    assert Response.json(Records(id=Tensor.from_values([0], Dtype.INT64, []))).body == b"[]"
    for records, text in [
        (Records(), "has no column"),
        (Records(id=ids, more=Tensor.from_values([], Dtype.INT8, [7])), "must have one dimension"),
        (
            Records(id=ids, more=Tensor.from_values([1], Dtype.INT8, [7])),
            'has 1 elements, but "id" has 2',
        ),
        (
            Records(id=Tensor.from_values([1], Dtype.FLOAT32, [float("nan")])),
            'the column "id": .* NaN',
        ),
    ]:
        with pytest.raises(Internal, match=text):
            Response.json(records)
    with pytest.raises(TypeError, match="the column 'id'"):
        Records(id=[1, 2])


def test_a_number_that_json_does_not_have_is_the_plugins_fault():
    scores = Tensor.from_values([1, 2], Dtype.FLOAT32, [1.0, float("nan")])
    with pytest.raises(Internal, match=r"shape \[1, 2\] has NaN at \[0, 1\]"):
        Response.json({"scores": scores})
