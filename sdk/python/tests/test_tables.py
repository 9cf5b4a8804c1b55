import pytest

from gristmill_plugin import Dtype, Internal, Tensor, tables, testing

PRODUCTS = {7: [9.5, 4], "b": [2, 3]}


def test_rows_are_gathered_and_missing_ones_filled():
    with testing.table("products.csv", PRODUCTS, ["price", "rating"]):
        rows = tables.gather("products.csv", ["b", 8, 7], 2, missing=-1)
        assert rows.shape == (3, 2)
        assert rows.view().tolist() == [[2, 3], [-1, -1], [9.5, 4]]
        assert tables.gather("products.csv", [], 2).shape == (0, 2)
        chosen = tables.gather("products.csv", [7], ["rating", "price", "rating"])
        assert chosen.view().tolist() == [[4, 9.5, 4]]
    with pytest.raises(tables.NoAsset, match="testing.table") as caught:
        tables.gather("products.csv", ["b"], 2)
    assert isinstance(caught.value, Internal)


def test_keys_can_be_a_tensor():
    with testing.table("products.csv", PRODUCTS):
        ids = Tensor.from_values([2], Dtype.INT64, [7, 8])
        assert tables.gather("products.csv", ids, 2).view().tolist() == [[9.5, 4], [0, 0]]
        texts = Tensor.from_values([2], Dtype.STRING, ["b", "7"])
        assert tables.gather("products.csv", texts, 2).view().tolist() == [[2, 3], [9.5, 4]]
        with pytest.raises(tables.InvalidArgument, match="int64 or strings of one dimension"):
            tables.gather("products.csv", Tensor.from_values([1], Dtype.INT32, [7]), 2)


def test_wrong_arguments_are_named():
    with testing.table("products.csv", PRODUCTS, ["price", "rating"]):
        with pytest.raises(tables.InvalidArgument, match="has 2 columns besides the key, but .* 3"):
            tables.gather("products.csv", ["b"], 3)
        with pytest.raises(tables.InvalidArgument, match="no column 'stock': .* price, rating"):
            tables.gather("products.csv", ["b"], ["stock"])
        with pytest.raises(TypeError, match="not a list of keys"):
            tables.gather("products.csv", "b", 2)
        with pytest.raises(TypeError, match="not a number or a list of names"):
            tables.gather("products.csv", ["b"], "price")
        with pytest.raises(TypeError, match="key is 1.5, not a text"):
            tables.gather("products.csv", [1.5], 2)
    uneven = testing.table("products.csv", {"a": [1, 2], "b": [1]})
    with pytest.raises(ValueError, match="the row 'b' has 1 numbers, not 2"), uneven:
        pass
