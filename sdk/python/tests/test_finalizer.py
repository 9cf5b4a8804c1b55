import weakref

import pytest

from gristmill_plugin import finalizer
from gristmill_plugin.finalizer import Finalizer


class Held:
    pass


def held(dropped):
    object = Held()
    object.finalizer = Finalizer(object, lambda *handle: dropped.append(handle), 3, 7)
    return object


def test_a_handle_is_given_back_with_its_object():
    dropped = []
    object = held(dropped)
    assert dropped == []
    del object
    assert dropped == [(3, 7)]


def test_a_detached_handle_is_given_back_by_its_new_owner():
    dropped = []
    object = held(dropped)
    _, drop, handle, _ = object.finalizer.detach()
    del object
    assert dropped == []
    drop(*handle)
    assert dropped == [(3, 7)]


def test_callers_in_python_get_the_class_of_the_standard_library(monkeypatch):
    original = weakref.finalize
    monkeypatch.setattr(weakref, "finalize", original)
    finalizer.install()
    try:
        assert weakref.finalize is original
        with pytest.raises(AttributeError, match="'weakref' has no attribute 'finalise'"):
            weakref.finalise  # noqa: B018
    finally:
        del weakref.__getattr__
