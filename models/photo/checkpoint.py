"""Reads tensors that `torch.save` wrote before PyTorch 1.6, without PyTorch.

Such a file has five pickles (a magic number, a version, the machine, the tensors, the keys of their storages), and
then the elements of each storage. A tensor is a view of a storage: offset, shape and strides.
"""

import collections
import io
import pickle
import struct
from array import array
from typing import NamedTuple

# The bytes of an element, by the storage's class.
ELEMENT_BYTES = {"FloatStorage": 4, "LongStorage": 8}


class Tensor(NamedTuple):
    """Elements of 4 bytes in row-major order."""

    shape: tuple
    elements: array


class View(NamedTuple):
    # The class and the key.
    storage: tuple
    offset: int
    shape: tuple
    strides: tuple


# What tensors need, and so all that a file can name: it can run no other code.
NAMES = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): lambda *parts: View(*parts[:4]),
    ("torch", "FloatStorage"): "FloatStorage",
    ("torch", "LongStorage"): "LongStorage",
}


class Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) not in NAMES:
            raise pickle.UnpicklingError(f"the checkpoint names {module}.{name}, which is no part of a tensor")
        return NAMES[module, name]

    def persistent_load(self, storage):
        _, kind, key, *_ = storage
        return kind, key


def tensors(checkpoint):
    """The tensors of floats in a file, by name."""
    file = io.BytesIO(checkpoint)
    _magic, _version, machine, views, keys = (Unpickler(file).load() for _ in range(5))
    if not machine["little_endian"]:
        raise SystemExit("the checkpoint is of a big-endian machine")
    kinds = {key: kind for kind, key in (view.storage for view in views.values())}
    storages = {}
    for key in keys:
        (count,) = struct.unpack("<q", file.read(8))
        # Elements are moved, never computed with, so the order of their bytes does not matter.
        storages[key] = file.read(count * ELEMENT_BYTES[kinds[key]])
    floats = {name: view for name, view in views.items() if view.storage[0] == "FloatStorage"}
    return {name: row_major(view, array("f", storages[view.storage[1]])) for name, view in floats.items()}


def row_major(view, elements):
    """The tensor of a view."""
    # Dimensions of one element change nothing.
    dimensions = [pair for pair in zip(view.shape, view.strides) if pair[0] > 1] or [(1, 1)]
    *outer, (length, stride) = dimensions
    starts = [view.offset]
    for count, step in outer:
        starts = [start + step * index for start in starts for index in range(count)]
    ordered = array("f")
    for start in starts:
        ordered.extend(elements[start : start + stride * (length - 1) + 1 : stride])
    return Tensor(tuple(view.shape), ordered)
