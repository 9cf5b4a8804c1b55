import struct

import pytest

from gristmill_plugin import Dtype, Internal, Tensor, store, testing


def row(*values):
    return struct.pack(f"<{len(values)}f", *values)


def test_values_are_found_by_their_keys():
    with testing.store("features", {"a": b"one"}):
        assert store.get("features", "a") == b"one"
        assert store.get("features", "b") is None
        none, blob = store.get_many("features", ["b", "a"])
        assert none is None
        assert bytes(blob) == b"one"
    with pytest.raises(store.NotGranted, match="testing.store"):
        store.get("features", "a")


def test_rows_are_gathered_and_missing_ones_filled():
    with testing.store("features", {"a": row(1, 2), "short": row(1), "empty": b""}):
        rows = store.gather("features", ["a", "none", "empty"], 2, missing=-1)
        assert rows.shape == (3, 2)
        assert rows.view().tolist() == [[1, 2], [-1, -1], [-1, -1]]
        assert store.gather("features", [], 2).shape == (0, 2)
        with pytest.raises(store.InvalidArgument, match="'short' has 4 bytes, but 2 float32 have 8"):
            store.gather("features", ["a", "short"], 2)
        with pytest.raises(TypeError, match="not a list of texts"):
            store.gather("features", "a", 2)


def test_rows_are_gathered_by_the_elements_of_a_tensor():
    with testing.store("features", {"item:7": row(1, 2), "item:-8": row(3, 4)}):
        ids = Tensor.from_values([3], Dtype.INT64, [-8, 9, 7])
        rows = store.gather("features", ids, 2, prefix="item:")
        assert rows.view().tolist() == [[3, 4], [0, 0], [1, 2]]
        texts = Tensor.from_values([1], Dtype.STRING, ["7"])
        assert store.gather("features", texts, 2, prefix="item:").view().tolist() == [[1, 2]]
        assert store.gather("features", ["7"], 2, prefix="item:").view().tolist() == [[1, 2]]
        with pytest.raises(store.InvalidArgument, match="must be int64 or strings of one dimension"):
            store.gather("features", Tensor.from_values([1], Dtype.INT32, [7]), 2)


def test_values_are_changed_where_that_is_granted():
    with testing.store("sessions") as sessions:
        store.set("sessions", "k", "v", ttl_ms=1000)
        assert sessions.values["k"] == b"v"
        assert store.increment("sessions", "n") == 1
        assert store.increment("sessions", "n", -3) == -2
        with pytest.raises(store.InvalidArgument, match="not a whole number"):
            store.increment("sessions", "k")
        with pytest.raises(ValueError, match="delta"):
            store.increment("sessions", "n", 2**63)
    with testing.store("features", read_only=True), pytest.raises(store.ReadOnly):
        store.set("features", "k", b"v")


def test_a_store_that_does_not_answer():
    with testing.store("features", {"a": b"one"}) as features:
        features.fault = "no answer within 50 ms"
        with pytest.raises(store.Unavailable, match="within 50 ms") as caught:
            store.get("features", "a")
        assert isinstance(caught.value, Internal)
        assert caught.value.text == "no answer within 50 ms"
